package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/flow"
	"github.com/belfry-scheduler/belfry/lib/job"
	runs "github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

const (
	namedRuns = 10  // of one definition, at the most
	askedRuns = 100 // that a server is asked about, one of each definition
)

// edition names what a run goes by: a generation of a job.
type edition struct {
	tenant, job string // no tenant where a server was asked, which tells of one
	generation  int64
}

// openRuns are those that go by one definition.
type openRuns struct {
	first runs.Run
	ids   []string
	count int
}

func (o *openRuns) add(id string) {
	if o.count++; len(o.ids) < namedRuns {
		o.ids = append(o.ids, id)
	}
}

// open are runs that have not ended, by what they go by.
type open map[edition]*openRuns

func (o open) of(e edition) *openRuns {
	if o[e] == nil {
		o[e] = &openRuns{}
	}
	return o[e]
}

// sorted gives what open runs go by, in the same order each time.
func (o open) sorted() []edition {
	return slices.SortedFunc(maps.Keys(o), func(a, b edition) int {
		return cmp.Or(strings.Compare(a.tenant, b.tenant), strings.Compare(a.job, b.job), cmp.Compare(a.generation, b.generation))
	})
}

// still tells of runs that stand still, for what of their definition.
func (o *openRuns) still(tenant, why string) finding {
	said := countOf(o.count, "run")
	if tenant != "" && tenant != defaultTenant {
		said += " of the tenant " + tenant
	}
	said += " cannot go on: " + strings.Join(o.ids, ", ")
	if more := o.count - len(o.ids); more > 0 {
		said += fmt.Sprintf(" and %d more", more)
	}
	return finding{Check: "definitions", Status: findProblem, Found: said, Why: why,
		Help: `Where a newer version wrote it, use that version; docs/upgrade.md says how versions fit. Where it is gone or damaged, bring back a backup, or end the runs with "belfry run cancel RUN".`}
}

// definitionFindings asks a server for open runs whose definition it cannot read.
func definitionFindings(ctx context.Context, server *client.Client) []finding {
	failed := func(err error) []finding {
		return []finding{{Check: "definitions", Status: findProblem, Found: err.Error(), Help: "The server's log has the details."}}
	}
	all, looked := open{}, 0
	for r, err := range server.Runs(ctx, client.RunFilter{States: []string{"queued", "waiting", "running", "retrying"}, Most: lookedAt}) {
		if err != nil {
			return failed(err)
		}
		all.of(edition{job: r.Job, generation: r.Generation}).add(r.ID)
		looked++
	}
	var found []finding
	asked := all.sorted()
	for _, by := range asked[:min(askedRuns, len(asked))] {
		r, err := server.Run(ctx, all[by].ids[0])
		if err != nil {
			return append(found, failed(err)...)
		}
		for _, w := range r.Waiting {
			if w.Code == string(control.WaitUnreadable) {
				found = append(found, all[by].still("", w.Text))
			}
		}
	}
	if len(found) == 0 {
		return []finding{fine("definitions", "those of %s can be read", countOf(looked, "open run"))}
	}
	return found
}

// definitions are what open runs in a data folder go by, as far as a scan has come.
type definitions struct {
	book   *job.Book         // which makes of a definition what a server makes of it
	known  map[edition]error // of each that stands: nil, or why this version cannot use it
	broken map[edition]error // jobs that cannot be read, without a generation
	open   open
}

func newDefinitions() definitions {
	return definitions{book: job.NewBook(nil, job.Compile), known: map[edition]error{}, broken: map[edition]error{}, open: open{}}
}

// has notes a definition.
func (d *definitions) has(tenant, name string, generation int64, def job.Definition) {
	e, err := d.book.Newest(job.Job{Tenant: tenant, Name: name, Generation: generation, Def: def})
	if err == nil && def.Target.Workflow != nil {
		_, err = flow.Of(e)
	}
	d.known[edition{tenant, name, generation}] = err
}

// past notes a replaced definition.
func (d *definitions) past(item store.Item) error {
	tenant, name, kept, err := job.KeptFromItem(item)
	if err != nil {
		return err
	}
	if by := (edition{tenant, name, kept.Generation}); kept.Broken != nil {
		d.known[by] = kept.Broken
	} else {
		d.has(tenant, name, kept.Generation, kept.Def)
	}
	return kept.Broken
}

// goes notes a run that has not ended.
func (d *definitions) goes(r runs.Run) {
	if r.State == runs.Scheduled || r.Generation == 0 {
		return // what it is to go by is not known yet
	}
	of := d.open.of(edition{r.Tenant, r.ID.Job, r.Generation})
	if of.count == 0 {
		of.first = r
	}
	of.add(r.ID.String())
}

func (d *definitions) findings() []finding {
	var found []finding
	count := 0
	for _, by := range d.open.sorted() {
		of := d.open[by]
		count += of.count
		err, stands := d.known[by]
		if broken := d.broken[edition{tenant: by.tenant, job: by.job}]; broken != nil {
			err, stands = broken, true
		}
		if !stands && dispatch.Unbound(of.first) {
			continue // its job was deleted, and it ends at its check
		}
		if !stands {
			err = job.ErrNotFound
		}
		if err == nil {
			continue
		}
		for _, w := range (control.Standing{Run: of.first, Unread: err}).Why() {
			found = append(found, of.still(by.tenant, w.Text))
		}
	}
	if more := len(found) - mostDamage; more > 0 {
		found = append(found[:mostDamage], finding{Check: "definitions", Status: findProblem, Found: fmt.Sprintf("and %d definitions more", more), Help: found[0].Help})
	}
	if len(found) == 0 {
		return []finding{fine("definitions", "those of %s can be read", countOf(count, "open run"))}
	}
	return found
}
