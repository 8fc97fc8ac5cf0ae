package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/belfry-scheduler/belfry/lib/client"
)

// Exit codes. A script may go by them, so a number keeps its meaning; exitCodes says it.
const (
	exitOK       = 0
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 3 // a job, run or other thing that was named is not there
	exitNoAnswer = 4 // the server could not be reached, or gave no answer
	exitRefused  = 5 // credentials are missing, wrong, expired or not enough
	exitOutcome  = 6 // the run that was waited for ended, and not as succeeded
	exitConflict = 7 // what stands does not allow it: it exists already, has ended, was changed meanwhile
	exitDiffers  = 8 // a dry run found that something would change, and was asked to tell by its exit code
	exitTimeout  = 9 // what was waited for did not come in the time that was given; it may still come

	exitInterrupted = 130 // an interrupt ended the waiting; what was waited for goes on
)

// exit is an error with an exit code of its own.
type exit struct {
	code int
	error
}

func (e exit) Unwrap() error { return e.error }

// exiting gives an error the exit code that the command ends with, where the one that exitCode finds would say too little.
func exiting(code int, err error) error { return exit{code, err} }

// usageError is a mistake in the command line that only the command itself could find.
type usageError struct{ error }

func misused(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errSaid ends a command that has said on stderr what went wrong.
var errSaid = errors.New("said already")

// exitCode is the code that an error of a command ends the process with.
func exitCode(err error) int {
	var chosen exit
	var usage usageError
	var refused *client.Error
	var lost *client.Unreachable
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &chosen):
		return chosen.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &lost):
		return exitNoAnswer
	case !errors.As(err, &refused):
		return exitFailed
	}
	switch refused.Status {
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitRefused
	case http.StatusConflict, http.StatusPreconditionFailed:
		return exitConflict
	}
	return exitFailed
}
