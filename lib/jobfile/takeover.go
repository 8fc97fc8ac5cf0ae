package jobfile

import (
	"maps"
	"slices"

	"github.com/belfry-scheduler/belfry/lib/crontab"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/takeover"
)

// Taken is what was found in a file of another scheduler.
type Taken struct {
	Jobs     []takeover.Job
	Settings []crontab.Setting // of a crontab: lines that are about the jobs below them
	Notes    []takeover.Note
}

// Changes are what whoever takes over jobs wants of them.
type Changes struct {
	Prefix string            // begins their names
	Labels map[string]string // beside those that they have
	Paused *bool             // nil: as the file has it
}

// Adjust makes the changes. A job that the API would not take then is lost, with a note.
func (t *Taken) Adjust(c Changes) {
	kept := t.Jobs[:0]
	for _, j := range t.Jobs {
		j.Name = c.Prefix + j.Name
		if c.Prefix != "" {
			j.Def.On = calling(j.Def.On, func(name string) string { return c.Prefix + name })
		}
		j.Def.Labels = maps.Clone(j.Def.Labels)
		maps.Copy(j.Def.Labels, c.Labels)
		if c.Paused != nil {
			j.Def.Paused = *c.Paused
		}
		if err := takeover.Check(j.Name, j.Def); err != nil {
			t.Notes = append(t.Notes, takeover.Note{Line: j.Line, Text: j.Name, Why: "not kept: " + takeover.Reasons(err), Lost: true})
			continue
		}
		kept = append(kept, j)
	}
	t.Jobs = kept
}

// Called are the jobs that others of them call, such as those that mail failures.
func (t *Taken) Called() []takeover.Job {
	called := map[string]bool{}
	for _, j := range t.Jobs {
		calling(j.Def.On, func(name string) string { called[name] = true; return name })
	}
	return slices.DeleteFunc(slices.Clone(t.Jobs), func(j takeover.Job) bool { return !called[j.Name] })
}

// Without takes out called jobs that a server refuses, by name with its reason, such as mail where it has no mail server. The jobs that call them
// are kept, and call nothing.
func (t *Taken) Without(refused map[string]string) {
	if len(refused) == 0 {
		return
	}
	for _, j := range t.Jobs {
		if why, is := refused[j.Name]; is {
			t.Notes = append(t.Notes, takeover.Note{Line: j.Line, Text: j.Def.Description, Why: "the jobs below call nothing, for the server would refuse " + j.Name + ": " + why})
		}
	}
	gone := func(name string) bool { _, is := refused[name]; return is }
	t.Notes = slices.DeleteFunc(t.Notes, func(n takeover.Note) bool { return n.Why == crontab.MailsFailures })
	t.Jobs = slices.DeleteFunc(t.Jobs, func(j takeover.Job) bool { return gone(j.Name) })
	for k := range t.Jobs {
		t.Jobs[k].Def.On = calling(t.Jobs[k].Def.On, func(name string) string {
			if gone(name) {
				return ""
			}
			return name
		})
	}
}

// calling gives callbacks whose jobs have the names that rename gives; "" is for none.
func calling(on job.Callbacks, rename func(name string) string) job.Callbacks {
	renamed := func(c *job.Callback) *job.Callback {
		if c == nil {
			return nil
		}
		if name := rename(c.Job); name != "" {
			called := *c
			called.Job = name
			return &called
		}
		return nil
	}
	return job.Callbacks{Succeeded: renamed(on.Succeeded), Recovered: renamed(on.Recovered), Failed: renamed(on.Failed), Missed: renamed(on.Missed)}
}
