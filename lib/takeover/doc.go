// Package takeover holds what taking over jobs from another scheduler comes to, whichever it was: jobs, and notes about what
// is not as it was. lib/crontab, lib/cronjob and lib/eventbridge read their formats into it; "belfry import" shows and applies
// it.
//
// Nothing is dropped in silence. Whatever a reader finds becomes a job or a note, and a note on something that fired and
// will not any more says that it is Lost. A job is one that the API takes: readers Check it before they hand it out.
package takeover
