package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
)

// callbackFlags name the jobs that are called for all jobs that name none themselves.
type callbackFlags struct{ failed, missed, recovered calleeFlag }

// flags are of whatever writes the ends of runs, or records missed fires.
func (c *callbackFlags) flags(cmd *cobra.Command) {
	const rest = "; TENANT=JOB for one tenant alone; more than once or with commas for several; the same in all processes that share a store"
	f := cmd.Flags()
	f.Var(&c.failed, "on-failed", "`JOB` to call when a run is given up, of each job that names none for that"+rest)
	f.Var(&c.missed, "on-missed", "`JOB` to call when catch_up has dropped fires, of each job that names none for that"+rest)
	f.Var(&c.recovered, "on-recovered", "`JOB` to call when a run has succeeded and the one before was given up, of each job that names none for that"+rest)
}

func (c *callbackFlags) named() bool {
	return len(c.failed.of)+len(c.missed.of)+len(c.recovered.of) > 0
}

func (c *callbackFlags) read() dispatch.DefaultCallbacks {
	return dispatch.DefaultCallbacks{Failed: c.failed.of, Missed: c.missed.of, Recovered: c.recovered.of}
}

// calleeFlag is a flag of such jobs, by tenant.
type calleeFlag struct {
	texts []string
	of    dispatch.DefaultCallee
}

// Set adds what a flag says; commas separate several.
func (c *calleeFlag) Set(text string) error { return c.Replace(append(c.GetSlice(), text)) }

// Append adds one.
func (c *calleeFlag) Append(text string) error { return c.Set(text) }

// Replace puts others in place of all.
func (c *calleeFlag) Replace(texts []string) error {
	of, err := dispatch.ParseDefaultCallee(texts...)
	if err != nil {
		return misused("%w", err)
	}
	c.of, c.texts = of, nil
	if all := strings.Join(texts, ","); all != "" {
		c.texts = strings.Split(all, ",")
	}
	return nil
}

// GetSlice gives them as they are written.
func (c *calleeFlag) GetSlice() []string { return append([]string(nil), c.texts...) }

func (c *calleeFlag) String() string { return strings.Join(c.texts, ",") }

// Type names the flag's kind for programs.
func (c *calleeFlag) Type() string { return "jobs" }
