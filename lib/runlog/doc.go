// Package runlog is the log of an attempt: how what a target writes is kept within bounds while it is written, the form that it is stored in, and
// which part of it is shown.
//
// Kept are the beginning and the end of what was written, and how much was between. A position in a log counts bytes from the first that
// was ever written, also those that are not kept: so it stays right while the attempt goes on writing. Each line has the time at which
// its first byte came.
package runlog
