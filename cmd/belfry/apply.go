package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/jobfile"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// apply is one "job apply".
type apply struct {
	*cli
	server    *client.Client
	files     []string
	recursive bool
	dryRun    bool
	exitCode  bool
	prune     bool
	labels    labels
	confirmation

	out     *rows
	count   map[string]int // jobs by what was done with them: as the verdicts say it, "refused" and "deleted"
	named   map[string]int // the jobs of the files: which document each is of
	refused error          // what ends the command in the end, where jobs were refused
}

func (c *cli) jobApply() *cobra.Command {
	a := &apply{cli: c}
	cmd := &cobra.Command{
		Use:   "apply -f FILE [NAME]",
		Short: "Create or replace the jobs of files",
		Long: `Create or replace the jobs of files, which are YAML or JSON: one job, several with a line of --- between them, an array of
jobs, or an object {"jobs": [...]}. Of a folder, all files that end with .yaml, .yml or .json are read.

A job is what "belfry job get -o yaml" and "belfry export" show. Its name is NAME, else its "name", else its "status.name".
Nothing is applied before all files could be read, and a job that stands already as it is written stays unchanged.

With --dry-run the server checks every job and stores none; what would change is shown as a diff.

With --prune, jobs that have the label and that no file names are deleted, after they were shown and you said yes. Nothing is
pruned when a job was refused, nor a job that was changed since it was looked at.`,
		Example: `  belfry job apply -f job.json
  belfry job apply -f jobs/ -R --dry-run
  belfry job apply -f jobs/ -R --prune --label team=billing --yes
  belfry job get report -o json > report.json && belfry job apply -f report.json
  echo '{"schedule": {"every": "5s"}, "target": {"exec": {"argv": ["date"]}}}' | belfry job apply hello -f -`,
		Args: cobra.MaximumNArgs(1),
		RunE: c.calling(func(ctx context.Context, server *client.Client, args []string) error {
			a.server = server
			return a.run(ctx, args)
		}),
	}
	cmd.Flags().StringArrayVarP(&a.files, "file", "f", nil, "`FILE` or folder with jobs, - for standard input; may be given more than once")
	cmd.Flags().BoolVarP(&a.recursive, "recursive", "R", false, "read the folders in a folder, too")
	cmd.Flags().BoolVar(&a.dryRun, "dry-run", false, "let the server check the jobs, show what would change, and store nothing")
	cmd.Flags().BoolVar(&a.exitCode, "exit-code", false, "with --dry-run: end with code 8 if anything would change")
	cmd.Flags().BoolVar(&a.prune, "prune", false, "delete the jobs with the label that no file names")
	a.labels.flag(cmd, "with --prune: label `NAME=VALUE` of the jobs that may be deleted, more than once or with commas: all must hold")
	cmd.Flags().BoolVar(&a.yes, "yes", false, "do not ask before deleting")
	return cmd
}

func (a *apply) run(ctx context.Context, args []string) error {
	switch {
	case len(a.files) == 0:
		return misused("want -f FILE, or -f - for standard input")
	case a.exitCode && !a.dryRun:
		return misused("--exit-code is for --dry-run")
	case a.prune && len(a.labels.texts) == 0:
		return misused("--prune needs --label NAME=VALUE: only jobs with it are deleted")
	case !a.prune && len(a.labels.texts) > 0:
		return misused("--label is for --prune: it chooses among the jobs that may be deleted")
	case a.prune && len(args) > 0:
		return misused("--prune and NAME exclude each other")
	}
	if err := a.labels.read(); err != nil {
		return err
	}
	if a.prune && !a.dryRun {
		if err := a.needed(a.cli, "--prune"); err != nil {
			return err
		}
	}
	all, err := a.readDocuments(jobfile.Job, a.files, a.recursive)
	if err != nil {
		return err
	}
	if err := nameAll(jobfile.Job, all, args); err != nil {
		return err
	}
	if a.prune && len(all) == 0 {
		return errors.New("the files hold no job, so that --prune would delete every job with the label; nothing was done")
	}
	a.count = map[string]int{}
	if !a.dryRun || a.structured() {
		a.out = newRows(a.cli, []string{"JOB", "RESULT", "NEXT RUN"})
	}
	err = a.applyAll(ctx, a.inOrder(all))
	if err == nil && a.refused == nil && a.prune {
		err = a.pruneBut(ctx, all)
	}
	return a.end(err)
}

// verdict is what became of a job of a file, or would. A dry run has the job before and after it where it would change.
type verdict struct {
	wire.JobVerdict
	Job *wire.Job `json:"job,omitempty"`
	Was *wire.Job `json:"was,omitempty"`
}

// nameAll gives the only thing of a kind the name of the command line, and sees that every one has a name of its own.
func nameAll(kind jobfile.Kind, all []document, args []string) error {
	if len(args) == 1 {
		if len(all) != 1 {
			return misused("NAME is for one %s, and the files hold %d", kind, len(all))
		}
		all[0].Name = args[0]
	}
	first := map[string]document{}
	for _, d := range all {
		if d.Name == "" {
			return fmt.Errorf("%s: the %s has no name; give it a field \"name\", or NAME where it is the only one", d.Place(), kind)
		}
		if before, twice := first[d.Name]; twice {
			return fmt.Errorf("%s: %s %s stands in %s, too", d.Place(), kind, d.Name, before.Place())
		}
		first[d.Name] = d
	}
	return nil
}

// Bounds of one request of many jobs: a person shall see progress, the server takes 1000 jobs and 16 MB, and of so many that it refuses its
// answer tells why.
const (
	chunkJobs  = invalid.Most
	chunkBytes = 4 << 20
)

func (a *apply) applyAll(ctx context.Context, all []document) error {
	what := "applying jobs"
	if a.dryRun {
		what = "checking jobs"
	}
	told := a.progress(what, int64(len(all)))
	defer told.end()
	for len(all) > 0 {
		n, size := 0, 0
		for n < len(all) && n < chunkJobs && (n == 0 || size < chunkBytes) {
			size += len(all[n].Text())
			n++
		}
		verdicts, err := a.putChunk(ctx, all[:n])
		if err == nil && a.dryRun {
			err = a.look(ctx, all[:n], verdicts)
		}
		if err != nil {
			return err
		}
		for i, v := range verdicts {
			if err := a.tell(told, all[i], v); err != nil {
				return err
			}
		}
		told.add(int64(n))
		all = all[n:]
	}
	return nil
}

// entryOfBatch is the beginning of a field's name in a refusal of a whole batch.
var entryOfBatch = regexp.MustCompile(`^(?:jobs|runs)\[([0-9]+)\]\.?`)

// putChunk gives a verdict for every job. Where the form of one is wrong the server takes none of the batch: what it says of
// that one is its verdict, and the others are sent again.
func (a *apply) putChunk(ctx context.Context, jobs []document) ([]verdict, error) {
	verdicts := make([]verdict, len(jobs))
	left := make([]int, len(jobs))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		batch := make([]json.RawMessage, len(left))
		for k, i := range left {
			batch[k] = jobs[i].Text()
		}
		var got []wire.JobVerdict
		var err error
		if a.dryRun {
			got, err = a.server.TryDocuments(ctx, batch, a.beside(jobs))
		} else {
			got, err = a.server.PutDocuments(ctx, batch)
		}
		if err == nil && len(got) != len(left) {
			err = fmt.Errorf("the server answered with %d verdicts on %d jobs", len(got), len(left))
		}
		var refused *client.Error
		if errors.As(err, &refused) && spread(refused.Problem, left, verdicts) {
			rest := left[:0:0]
			for _, i := range left {
				if verdicts[i].Problem == nil {
					rest = append(rest, i)
				}
			}
			left = rest
			continue
		}
		if err != nil {
			return nil, err
		}
		for k, i := range left {
			verdicts[i].JobVerdict = got[k]
		}
		break
	}
	return verdicts, nil
}

// spread makes verdicts of the refusal of a batch, and tells whether it could.
func spread(p wire.Problem, sent []int, verdicts []verdict) bool {
	found := entriesOf(p, len(sent))
	for k, problem := range found {
		verdicts[sent[k]].JobVerdict = wire.JobVerdict{Status: problem.Status, Problem: problem}
	}
	return found != nil
}

// entriesOf takes the refusal of a batch apart by the entries that it is about; nil where a field belongs to none of them.
func entriesOf(p wire.Problem, sent int) map[int]*wire.Problem {
	if len(p.Errors) == 0 {
		return nil
	}
	found := map[int]*wire.Problem{}
	for _, e := range p.Errors {
		parts := entryOfBatch.FindStringSubmatch(e.Field)
		if parts == nil {
			return nil
		}
		k, err := strconv.Atoi(parts[1])
		if err != nil || k >= sent {
			return nil
		}
		if found[k] == nil {
			found[k] = &wire.Problem{Title: p.Title, Status: p.Status, Code: p.Code, Detail: p.Detail}
		}
		found[k].Errors = append(found[k].Errors, wire.FieldError{Field: strings.TrimPrefix(e.Field, parts[0]), Message: e.Message})
	}
	return found
}

// atOnce is how many requests about many jobs are under way at once: a server far away answers none of them any sooner.
const atOnce = 16

// look fetches, after a dry run, each job that would change, as it stands and as it would. The server's verdicts leave both out. A job
// that is refused by now has that verdict.
func (a *apply) look(ctx context.Context, jobs []document, verdicts []verdict) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range verdicts {
		name, v := jobs[i].Name, &verdicts[i]
		if v.Change != "created" && v.Change != "updated" {
			continue
		}
		group.Go(func() error {
			if v.Change == "updated" {
				stands, err := a.server.Job(ctx, name)
				switch {
				case err == nil:
					v.Was = &stands.Job
				case !client.HasCode(err, "job_not_found"): // deleted a moment ago
					return fmt.Errorf("look at %s: %w", name, err)
				}
			}
			comes, err := a.server.TryDocument(ctx, name, jobs[i].Job.JSON(), a.beside(jobs[i:i+1]))
			if refused, ok := refusal(err); ok {
				*v = verdict{JobVerdict: wire.JobVerdict{Name: name, Status: refused.Status, Problem: &refused}}
				return nil
			}
			if err != nil {
				return fmt.Errorf("look at %s: %w", name, err)
			}
			v.Job = &comes
			return nil
		})
	}
	return group.Wait()
}

// tell shows what became of a job.
func (a *apply) tell(told *progress, d document, v verdict) error {
	v.Name = d.Name
	if v.Problem != nil {
		a.count["refused"]++
		a.refused = errSaid
		told.say("belfry: %s", d.Explain(*v.Problem))
		if a.structured() {
			return a.out.add(v, nil)
		}
		return nil
	}
	a.count[v.Change]++
	told.clear()
	if a.dryRun && !a.structured() {
		return a.showDiff(v, d.Place())
	}
	next := clock(v.NextRun)
	if paused := d.Job.Member("paused"); paused != nil && paused.Scalar == "true" {
		next = "paused"
	}
	return a.out.add(v, []string{d.Name, v.Change, next})
}

// pruneBut deletes the jobs with the labels that are not among those of the files.
func (a *apply) pruneBut(ctx context.Context, named []document) error {
	keep := map[string]bool{}
	for _, d := range named {
		keep[d.Name] = true
	}
	var gone []wire.Job
	for j, err := range a.server.Jobs(ctx, client.JobFilter{Labels: a.labels.values}) {
		if err != nil {
			return err
		}
		if !keep[j.Name] {
			gone = append(gone, j)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if a.dryRun {
		for _, j := range gone {
			a.count["deleted"]++
			v := verdict{JobVerdict: wire.JobVerdict{Name: j.Name, Status: http.StatusNoContent, Change: "deleted"}, Was: &j}
			if a.structured() {
				if err := a.out.add(v, nil); err != nil {
					return err
				}
			} else if err := a.showDiff(v, ""); err != nil {
				return err
			}
		}
		return nil
	}
	if !a.yes {
		if a.out.table != nil { // what was done comes before the question
			if err := a.out.table.flush(); err != nil {
				return err
			}
		}
		fmt.Fprintf(a.messages(), "No file names these jobs, which have the label:\n")
		for _, j := range gone {
			fmt.Fprintf(a.messages(), "  %s\n", j.Name)
		}
	}
	if err := a.confirm(a.cli, "Delete %s", countOf(len(gone), "job")); errors.Is(err, errDeclined) {
		return errors.New("nothing was pruned")
	} else if err != nil {
		return err
	}
	told := a.progress("deleting jobs", int64(len(gone)))
	defer told.end()
	for _, j := range gone {
		err := a.server.DeleteJob(ctx, j.Name, client.Unchanged(j)) // somebody may have taken the label off meanwhile
		if refused, ok := refusal(err); ok && refused.Code == "precondition_failed" {
			a.count["refused"]++
			a.refused = errSaid
			told.say("belfry: %s was changed since it was listed, and is not deleted: %s", j.Name, refused.Detail)
			told.add(1)
			continue
		}
		if err != nil && !client.HasCode(err, "job_not_found") {
			return fmt.Errorf("delete %s: %w", j.Name, err)
		}
		told.add(1)
		a.count["deleted"]++
		if err := a.out.add(wire.JobVerdict{Name: j.Name, Status: http.StatusNoContent, Change: "deleted"}, []string{j.Name, "deleted", ""}); err != nil {
			return err
		}
	}
	return nil
}

// end ends the listing, and the dry run with a line of what would be done.
func (a *apply) end(err error) error {
	if a.out != nil {
		err = endWith(a.out, err)
	}
	if err != nil {
		return err
	}
	if a.dryRun && !a.structured() {
		fmt.Fprintln(a.stdout, dryRunSummary(a.count))
	}
	if a.refused == nil && a.exitCode && a.count["created"]+a.count["updated"]+a.count["deleted"] > 0 {
		return exiting(exitDiffers, errSaid)
	}
	return a.refused
}

// dryRunSummary is "dry run, nothing was stored: 2 created, 1 updated, 4 unchanged".
func dryRunSummary(count map[string]int) string {
	var parts []string
	for _, change := range []string{"created", "updated", "deleted", "refused", "lost"} {
		if n := count[change]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, change))
		}
	}
	would := "nothing would change"
	if len(parts) > 0 {
		would = strings.Join(parts, ", ")
	}
	return fmt.Sprintf("dry run, nothing was stored: %s, %d unchanged", would, count["unchanged"])
}

// countOf is "1 job" or "2 jobs".
func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// labels is the flag --label, given once or more often, each time with one label or several.
type labels struct {
	texts  []string
	values map[string]string
	name   string // of the flag
}

func (l *labels) flag(cmd *cobra.Command, usage string) { l.flagNamed(cmd, "label", usage) }

func (l *labels) flagNamed(cmd *cobra.Command, name, usage string) {
	l.name = name
	cmd.Flags().StringArrayVar(&l.texts, name, nil, usage)
}

// read makes names and values of what was given.
func (l *labels) read() error {
	l.values = map[string]string{}
	var each []string
	for _, list := range l.texts {
		each = append(each, wire.SplitLabels(list)...)
	}
	for _, text := range each {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return misused("--%s %q: want NAME=VALUE", l.name, text)
		}
		if before, twice := l.values[name]; twice && before != value {
			return misused("--%s %q: no job has two values of %s", l.name, text, name)
		}
		l.values[name] = value
	}
	return nil
}
