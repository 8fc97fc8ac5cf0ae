package jobfile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-scheduler/belfry/lib/cronjob"
	"github.com/belfry-scheduler/belfry/lib/crontab"
	"github.com/belfry-scheduler/belfry/lib/eventbridge"
	"github.com/belfry-scheduler/belfry/lib/manifest"
	"github.com/belfry-scheduler/belfry/lib/takeover"
)

// Form is what a text of jobs is written in.
type Form string

// The forms.
const (
	Belfry      Form = "belfry" // as "job apply" takes it
	Crontab     Form = "crontab"
	Kubernetes  Form = "kubernetes"
	EventBridge Form = "eventbridge"
)

// Source says of a text of another scheduler where it comes from, as far as somebody knows. The zero Source is a user's crontab, CronJobs that run by
// kubectl, and schedules that call what they called.
type Source struct {
	Zone      string    // IANA name: of the host of a crontab, of the cluster's controller, of schedules whose own is not known; "" is not known
	Local     string    // of a crontab whose Zone nobody has named: the zone to take its host's for
	User      string    // of a crontab: whose jobs they are
	Home      string    // of a crontab: the user's folder
	System    bool      // of a crontab: lines name a user before the command
	Way       string    // of CronJobs: kubectl or exec; "" is kubectl
	URL       string    // of CronJobs and schedules: what runs call instead, with {namespace}, {group} and {name}
	Namespace string    // of CronJobs that name none
	Now       time.Time // of schedules: those that are over are lost
}

var hows = map[string]Form{takeover.HowCrontab: Crontab, takeover.HowKubernetes: Kubernetes, takeover.HowEventBridge: EventBridge}

// FormOf tells what a text is written in.
func FormOf(text []byte) (Form, error) {
	how, what := takeover.Told(text)
	if form, is := hows[how]; is {
		return form, nil
	}
	values, err := manifest.Read("-", text)
	switch {
	case err == nil && slices.ContainsFunc(values, isJobs):
		return Belfry, nil
	case what != "":
		return "", fmt.Errorf("it looks like %s; want a crontab, CronJobs of Kubernetes, schedules of EventBridge, or jobs of Belfry", what)
	}
	return "", errors.New("nothing in it is understood; want a crontab, CronJobs of Kubernetes, schedules of EventBridge, or jobs of Belfry: say which it is to see what is wrong with it")
}

// isJobs tells whether a document is one of Belfry: it has what no job is without.
func isJobs(v *manifest.Value) bool {
	many, err := Job.in(v)
	return err == nil && slices.ContainsFunc(many, func(j *manifest.Value) bool { return j.Kind == manifest.Object && j.Member("target") != nil })
}

// TakeOver reads a text of another scheduler.
func TakeOver(form Form, text []byte, from Source) (Taken, error) {
	switch form {
	case Crontab:
		file, err := crontab.Parse(text, crontab.Config{System: from.System, User: from.User, Home: from.Home, Zone: cmp.Or(from.Zone, from.Local), ZoneGiven: from.Zone != ""})
		return Taken{Jobs: file.Jobs, Settings: file.Settings, Notes: file.Notes}, err
	case Kubernetes:
		cfg := cronjob.Config{Way: cronjob.Way(from.Way), URL: from.URL, Zone: from.Zone, Namespace: from.Namespace}
		switch {
		case from.URL != "":
			cfg.Way = cronjob.Call
		case from.Way == "":
			cfg.Way = cronjob.Kubectl
		case cfg.Way != cronjob.Kubectl && cfg.Way != cronjob.Process:
			return Taken{}, fmt.Errorf("way %q: want kubectl or exec", from.Way)
		}
		file, err := cronjob.Read("-", text, cfg)
		return Taken{Jobs: file.Jobs, Notes: file.Notes}, err
	case EventBridge:
		file, err := eventbridge.Read("-", text, eventbridge.Config{URL: from.URL, Now: from.Now, Zone: from.Zone})
		return Taken{Jobs: file.Jobs, Notes: file.Notes}, err
	}
	return Taken{}, fmt.Errorf("%q: want crontab, kubernetes or eventbridge", form)
}
