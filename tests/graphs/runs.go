package graphs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/client"
	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/process"
)

// Runs are runs of graphs that clients ask a server for.
type Runs struct {
	Server *client.Client // calls once
	Graphs []Graph
	Target *Target

	mu    sync.Mutex
	ids   map[string]Graph // of the runs that were answered
	wrong []string
}

// Put stores the job of each graph.
func (r *Runs) Put(t testing.TB) {
	t.Helper()
	for _, g := range r.Graphs {
		if _, err := r.Server.PutJob(t.Context(), g.Name, wire.Job{Definition: g.Definition(r.Target.URL)}, client.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
}

// run asks for a run, and waits for its end. Whatever is not answered it sends again.
func (r *Runs) run(ctx context.Context, g Graph, key string) (id string, err error) {
	one, err := process.Answered(ctx, func() (wire.Run, error) { return r.Server.Trigger(ctx, g.Name, wire.Trigger{}, key) })
	if err != nil {
		return "", err
	}
	return one.ID, process.Until(ctx, func() (bool, error) {
		now, err := r.Server.Run(ctx, one.ID)
		return err == nil && !now.EndedAt.IsZero(), err
	})
}

// Ask asks for one run behind the end of the other until asking ends, and for the end of the last until ctx does. name is the asker's own.
func (r *Runs) Ask(ctx, asking context.Context, name int) {
	for n := 0; asking.Err() == nil; n++ {
		g := r.Graphs[(7*name+n)%len(r.Graphs)]
		id, err := r.run(ctx, g, fmt.Sprint("asker-", name, "-", n))
		r.mu.Lock()
		if r.ids == nil {
			r.ids = map[string]Graph{}
		}
		r.ids[id] = g
		if err != nil {
			r.wrong = append(r.wrong, fmt.Sprintf("run %d of %s (%s): %v", n, g.Name, id, err))
		}
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Calm runs each graph once, while nobody dies, and gives how they came out, by their names.
func (r *Runs) Calm(t testing.TB) map[string]Outcome {
	t.Helper()
	outcomes := map[string]Outcome{}
	for _, g := range r.Graphs {
		ctx, cancel := context.WithTimeout(t.Context(), process.Patience)
		id, err := r.run(ctx, g, "calm-"+g.Name)
		cancel()
		if err != nil {
			t.Fatalf("%s (%s): %v", g.Name, id, err)
		}
		o, err := Look(t.Context(), r.Server, id)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := append(g.Judge(o), r.Target.Early(id, o)...); len(wrong) > 0 || len(o.Lost) > 0 {
			t.Fatalf("%s while nobody dies: %q, lost %q", g.Name, wrong, o.Lost)
		}
		outcomes[g.Name] = o
	}
	if wrong := r.Target.Wrong(); len(wrong) > 0 {
		t.Fatalf("while nobody dies: %q", wrong)
	}
	return outcomes
}

// Came is what runs came to.
type Came struct {
	Runs, Calls int
	Lost        int            // runs of which a step was lost
	States      map[string]int // of the runs
}

func (c Came) String() string {
	return fmt.Sprintf("%d runs, %v, %d calls; %d runs lost a step", c.Runs, c.States, c.Calls, c.Lost)
}

// Judge holds what all runs came to, which have ended, against what is expected, by the names of the graphs.
func (r *Runs) Judge(t testing.TB, expected map[string]Outcome) Came {
	t.Helper()
	came := Came{Runs: len(r.ids), Calls: r.Target.Calls(), States: map[string]int{}}
	for id, g := range r.ids {
		o, err := Look(t.Context(), r.Server, id)
		if err != nil {
			t.Fatal(err)
		}
		state, _, _ := strings.Cut(o.End, " ")
		came.States[state]++
		if len(o.Lost) > 0 {
			came.Lost++
		}
		if wrong := slices.Concat(g.Same(o, expected[g.Name]), r.Target.Early(id, o)); len(wrong) > 0 {
			t.Errorf("%s:\n%s\nIt was\n%s", id, strings.Join(wrong, "\n"), strings.Join(o.Shown, "\n"))
		}
	}
	for _, wrong := range append(r.Target.Wrong(), r.wrong...) {
		t.Error(wrong)
	}
	return came
}
