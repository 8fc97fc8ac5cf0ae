package simulate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/cronjob"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/simulate"
)

// at is a schedule of Kubernetes as Belfry has it. Its @every counts from the last run, which is a phase here.
func (row peerRow) at(text string, from time.Time) (map[string]any, schedule.Spec) {
	text = strings.ReplaceAll(text, "?", "*")
	if every, ok := strings.CutPrefix(text, "@every "); ok {
		interval, _ := schedule.ParseDuration(every)
		phase := time.Duration(from.UnixNano()) % interval.Std()
		return map[string]any{"every": every, "phase": schedule.Duration(phase).String()}, schedule.Spec{Every: interval, Phase: schedule.Duration(phase)}
	}
	at, spec := map[string]any{"cron": text}, schedule.Spec{Cron: text}
	if row.Timezone != nil {
		at["timezone"], spec.Timezone = *row.Timezone, *row.Timezone
	}
	return at, spec
}

// imported is what belfry import makes of the row's policy and deadline.
func (row peerRow) imported(t *testing.T) job.Definition {
	t.Helper()
	spec := map[string]any{"schedule": "0 0 * * *", "jobTemplate": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
		"containers": []any{map[string]any{"name": "c", "image": "busybox", "command": []string{"true"}}}}}}}}
	if row.ConcurrencyPolicy != "" {
		spec["concurrencyPolicy"] = row.ConcurrencyPolicy
	}
	if row.Deadline != nil && (row.ApplyDeadline == nil || *row.ApplyDeadline) {
		spec["startingDeadlineSeconds"] = *row.Deadline
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": map[string]any{"name": "job"}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	file, err := cronjob.Read("job.json", text, cronjob.Config{Way: cronjob.Kubectl, Zone: "UTC"})
	if err != nil || len(file.Jobs) != 1 {
		t.Fatalf("the importer takes %d jobs of it: %v, %+v", len(file.Jobs), err, file.Notes)
	}
	return file.Jobs[0].Def
}

// cronJob is one reconcile pass as a scenario: the job has run as the row says, then Belfry is down until now.
func (row peerRow) cronJob(t *testing.T) (simulate.Report, time.Time, error) {
	t.Helper()
	start := row.Created
	if row.LastScheduled != nil {
		start = start.Add(-time.Second) // so that a fire at that time is one
	}
	at, spec := row.at(row.Schedule, row.Created)
	definition := map[string]any{"schedule": at, "target": anyHandler, "timeout": "4h", "retry": map[string]any{"max_attempts": 1}, "paused": row.Suspend}
	def := row.imported(t)
	catchUp := map[string]any{"mode": def.CatchUp.Mode}
	if def.CatchUp.Window != 0 {
		catchUp["window"] = def.CatchUp.Window
	}
	definition["catch_up"] = catchUp
	if !def.Overlap.IsZero() {
		definition["overlap"] = def.Overlap
	}
	if def.ExpiresAfter != 0 {
		definition["expires_after"] = def.ExpiresAfter
	}
	last := start
	outcomes := []any{}
	if row.LastScheduled != nil {
		last = *row.LastScheduled
		if row.StillActive {
			compiled, err := spec.Compile()
			if err != nil {
				t.Fatal(err)
			}
			before, _ := compiled.Count(start, last, 1000)
			for range before - 1 {
				outcomes = append(outcomes, map[string]any{"takes": "10s"})
			}
			outcomes = append(outcomes, map[string]any{"never": true})
		} else {
			outcomes = append(outcomes, map[string]any{"takes": "10s"})
		}
	}
	until := row.Now
	if row.Expect.Requeue != nil {
		until = row.Now.Add(time.Duration(*row.Expect.Requeue*1000) * time.Millisecond)
	}
	if !until.After(start) {
		until = start.Add(time.Second)
	}
	d := document{"start": rfc(start), "until": rfc(until), "jobs": map[string]any{"job": definition}}
	if len(outcomes) > 0 {
		d["outcomes"] = map[string]any{"job": outcomes}
	}
	if from := last.Add(time.Second); row.Now.After(from) {
		d["script"] = []any{map[string]any{"at": rfc(from), "do": "down", "for": row.Now.Sub(from).String()}}
	}
	r, err := played(t, d)
	return r, last, err
}

// unwaiting leaves out the runs that still wait then, and start when whoever is in their way has ended.
func unwaiting(r simulate.Report, then time.Time) simulate.Report {
	r.Runs = slices.DeleteFunc(slices.Clone(r.Runs), func(one simulate.Run) bool {
		return slices.ContainsFunc(one.Waits, func(w simulate.Wait) bool { return !w.From.After(then) && (w.To == nil || w.To.After(then)) })
	})
	return r
}

// next is how long after now the next fire is, "none" for none.
func next(r simulate.Report, now time.Time) string {
	for _, one := range r.Runs {
		if one.NominalTime.After(now) {
			return fmt.Sprint(one.NominalTime.Sub(now).Seconds())
		}
	}
	return "none"
}

func TestKubernetesCronJobs(t *testing.T) {
	rows := peerRows(t, "kubernetes-cronjob.json")
	not := map[string]string{}
	for _, row := range rows {
		switch {
		case row.CreateError != nil || row.GetError != nil:
			not[row.ID] = "its API fails in between; Belfry's own simulation has stores that fail"
		case row.Listed != nil && !*row.Listed || row.StillActive && (row.Active == nil || !*row.Active):
			not[row.ID] = "its cache lags behind; Belfry has none"
		}
	}
	otherwise := map[string]string{
		"sync-13":  "refused",
		"recent-5": "2016-05-20T12:30:00Z, few",
		"update-3": "next in 1",
	}
	agrees(t, rows, not, otherwise, func(t *testing.T, row peerRow) (got, want string) {
		switch row.Kind {
		case "update":
			from := row.Now.Add(-time.Minute)
			old, _ := row.at(row.OldSchedule, time.Unix(0, 0))
			to, _ := row.at(row.NewSchedule, time.Unix(0, 0))
			r, err := played(t, document{"start": rfc(from), "until": rfc(row.Now.Add(time.Hour)), "jobs": map[string]any{"job": map[string]any{"schedule": old, "target": anyHandler}},
				"script": []any{map[string]any{"at": rfc(row.Now), "do": "put", "job": "job", "definition": map[string]any{"schedule": to, "target": anyHandler}}}})
			if err != nil {
				t.Fatal(err)
			}
			return "next in " + next(r, row.Now), "next in " + fmt.Sprint(*row.Expect.Requeue)
		case "nominal_time_on_run":
			row.Schedule, row.Created, row.Now = "0 10 * * *", row.Nominal.Add(-time.Minute), row.Nominal
			r, _, err := row.cronJob(t)
			if err != nil || len(r.Runs) != 1 {
				t.Fatalf("%+v, %v", r, err)
			}
			return rfc(r.Runs[0].NominalTime), row.Expect.Nominal
		}
		r, last, err := row.cronJob(t)
		started, _ := nominal(unwaiting(r, row.Now), last, row.Now)
		newest := "none"
		if len(started) > 0 {
			newest = rfc(started[len(started)-1])
		}
		switch row.Kind {
		case "sync", "sync_known_bug":
			want = "refused"
			if row.Expect.Create != nil && !(strings.Contains(row.Schedule, "error") && *row.Expect.Create == 0) {
				want = fmt.Sprintf("%d started, next in ", *row.Expect.Create)
				if row.Expect.Requeue == nil {
					want += "none"
				} else {
					want += fmt.Sprint(*row.Expect.Requeue)
				}
			}
			got = fmt.Sprintf("%d started, next in %s", len(started), next(r, row.Now))
		case "due":
			want = "none"
			switch {
			case row.Expect.Error:
				want = "refused"
			case row.Expect.Due != nil && *row.Expect.Due == "any":
				if want = newest; newest == "none" {
					want = "any"
				}
			case row.Expect.Due != nil:
				want = *row.Expect.Due
			}
			got = newest
		case "most_recent":
			want, got = "none", newest
			if row.Expect.Recent != nil {
				want = rfc(*row.Expect.Recent)
			}
			var class string
			if err := json.Unmarshal(row.Expect.Missed, &class); err != nil {
				t.Fatal(err)
			}
			n := len(started) + missed(r)
			want += ", " + class
			switch {
			case n <= 1:
				got += ", none"
			case n <= 100:
				got += ", few"
			default:
				got += ", many"
			}
		case "time_to_next":
			return "next in " + next(r, row.Now), "next in " + fmt.Sprint(*row.Expect.Requeue)
		}
		if err != nil {
			got = "refused"
		}
		return got, want
	})
}
