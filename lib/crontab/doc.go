// Package crontab reads crontabs, of users and of the system (/etc/crontab, /etc/cron.d), as jobs. docs/migrate-crontab.md says
// for people what becomes of what.
//
// Nothing is dropped in silence: each line that is neither empty nor a comment gives a job, a setting or a note, and a
// line that is not kept gives a note that says why. A job does what cron would have done: its command goes to the same
// shell with the same environment, folder and standard input, at the same times of the same zone; it is not tried again
// when it fails, and fires missed while Belfry was down are not made up.
//
// Names come from the command, not from its place in the file, so that importing a file again finds the same jobs, and an
// edited schedule changes a job rather than making another.
package crontab
