package oracle_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/timer"
	"github.com/belfry-scheduler/belfry/tests/oracle"
)

// row is a life that something is planted in, and what the judge must find, from its beginning.
type row struct {
	plant func(p *plot)
	want  string // a regular expression
}

// plot is a quiet life, to be spoilt.
type plot struct {
	testing.TB
	life
	cfg oracle.Config
}

// index is of the first event that is so, after another one.
func (p *plot) index(after int, is func(e event) bool) int {
	p.Helper()
	for i := after + 1; i < len(p.life); i++ {
		if is(p.life[i]) {
			return i
		}
	}
	p.Fatal("there is no such event in this life")
	return 0
}

func (p *plot) insert(at int, events ...event) {
	for i := range events {
		if events[i].at.IsZero() {
			events[i].at = p.life[at].at
		}
	}
	p.life = slices.Insert(p.life, at, events...)
}

func (p *plot) drop(at int) { p.life = slices.Delete(p.life, at, at+1) }

// of reads what an event puts of a run.
func (p *plot) of(e event) (run.Run, bool) {
	parts := strings.Split(e.key.Partition, "#")
	if parts[0] != "run" || e.gone {
		return run.Run{}, false
	}
	id, err := run.IDFromSort(parts[2], e.key.Sort)
	if err != nil {
		p.Fatal(err)
	}
	r, _, err := run.FromItem(parts[1], id, store.Item{Key: e.key, Version: 1, Value: e.value})
	if err != nil {
		p.Fatal(err)
	}
	return r, true
}

// run is the index of the first event after another that puts a run of a job into a state.
func (p *plot) run(after int, jobName string, state run.State) int {
	p.Helper()
	return p.index(after, func(e event) bool {
		r, ok := p.of(e)
		return ok && r.ID.Job == jobName && r.State == state && r.Tenant == tenant
	})
}

// spoil changes what an event puts of a run.
func (p *plot) spoil(at int, change func(r *run.Run)) {
	r, ok := p.of(p.life[at])
	if !ok {
		p.Fatal("no run is put there")
	}
	change(&r)
	p.life[at].value = p.item(r).value
}

// item is the event of a run being put.
func (p *plot) item(r run.Run) event {
	op, err := r.Item(1)
	if err != nil {
		p.Fatal(err)
	}
	return event{key: op.Key, value: op.Value, expires: op.Expires}
}

// put is the index of the first event after another that puts an item of a kind.
func (p *plot) put(after int, kind string, is ...func(e event) bool) int {
	p.Helper()
	return p.index(after, func(e event) bool {
		return strings.HasPrefix(e.key.Partition, kind+"#") && !e.gone && !slices.ContainsFunc(is, func(is func(event) bool) bool { return !is(e) })
	})
}

func (p *plot) spoilShard(at int, change func(s *timer.Shard)) {
	s, err := timer.ShardFromItem(0, store.Item{Version: 1, Value: p.life[at].value})
	if err != nil {
		p.Fatal(err)
	}
	change(&s)
	op, err := s.Put(1)
	if err != nil {
		p.Fatal(err)
	}
	p.life[at].value = op.Value
}

func (p *plot) spoilJob(at int, change func(j *job.Job)) {
	j, err := job.FromItem(tenant, p.life[at].key.Sort, store.Item{Version: 1, Value: p.life[at].value})
	if err != nil {
		p.Fatal(err)
	}
	change(&j)
	op, err := j.Put(1)
	if err != nil {
		p.Fatal(err)
	}
	p.life[at].value = op.Value
}

// timer is the index of the first event after another that puts a timer of a kind, and the timer.
func (p *plot) timer(after int, is func(t timer.Timer) bool) (int, timer.Timer) {
	p.Helper()
	var found timer.Timer
	i := p.put(after, "due", func(e event) bool {
		t, err := timer.FromItem(store.Item{Key: e.key, Version: 1, Value: e.value})
		found = t
		return err == nil && is(t)
	})
	return i, found
}

func (p *plot) timerItem(t timer.Timer) event {
	op, err := t.Put(1)
	if err != nil {
		p.Fatal(err)
	}
	return event{key: op.Key, value: op.Value, expires: op.Expires}
}

// call is the index of the first call after another event of a run of a job.
func (p *plot) call(after int, jobName string) int {
	p.Helper()
	return p.index(after, func(e event) bool { return e.call != nil && e.call.Job == jobName && e.call.Tenant == tenant })
}

// answer is the index of the first answer after another event to such a request, and the request's.
func (p *plot) answer(after int, op oracle.Op, is ...func(q oracle.Request, a oracle.Answer) bool) (asked, answered int) {
	p.Helper()
	asked = p.index(after, func(e event) bool {
		if e.asked == nil || e.asked.Op != op {
			return false
		}
		for _, other := range p.life {
			if other.answered != nil && other.question == e.question {
				return !slices.ContainsFunc(is, func(is func(oracle.Request, oracle.Answer) bool) bool { return !is(*e.asked, *other.answered) })
			}
		}
		return false
	})
	return asked, p.index(asked, func(e event) bool { return e.answered != nil && e.question == p.life[asked].question })
}

// tells changes an answer.
func (p *plot) tells(after int, op oracle.Op, change func(a *oracle.Answer), is ...func(q oracle.Request, a oracle.Answer) bool) {
	p.Helper()
	_, i := p.answer(after, op, is...)
	a := *p.life[i].answered
	change(&a)
	p.life[i].answered = &a
}

// begins changes the beginning of a call.
func (p *plot) calls(at int, change func(c *oracle.Call)) {
	c := *p.life[at].call
	change(&c)
	p.life[at].call = &c
}

// end is the index of the last event.
func (p *plot) end() int { return len(p.life) - 1 }

func encoded(t testing.TB, v any) []byte {
	value, err := record.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestWhatIsPlantedIsFound spoils a quiet life in every way that a rule is about, and wants that rule to tell of it. No rule is without
// such a row: the formats of all that a judge may say are read from its source.
func TestWhatIsPlantedIsFound(t *testing.T) {
	said := map[string]bool{}
	spoil := func(whole life, rows map[string]row) {
		for name, r := range rows {
			t.Run(name, func(t *testing.T) {
				p := &plot{TB: t, life: slices.Clone(whole), cfg: oracle.Config{Most: 1000}}
				r.plant(p)
				found := p.judged(p.cfg)
				for _, v := range found {
					said[v] = true
				}
				if !matches(r.want, found) {
					t.Errorf("want %q, found %.3000q", r.want, found)
				}
			})
		}
	}
	whole := quiet(t)
	for _, rows := range []map[string]row{ofRuns, ofEdges, ofCalls, ofTimers, ofJobs, ofKeys, ofAnswers, ofLists, ofLooks} {
		spoil(whole, rows)
	}
	spoil(whole, ofRequestsThatCall)
	spoil(bounded(t), ofGates)
	spoil(queueing(t), ofLines)
	spoil(byKey(t), ofKeyedGates)
	spoil(atNamed(t), ofNamedGates)
	spoil(atNamedBy(t, "${ .payload.customer }"), ofNamedGatesOfValues)
	spoil(replacing(t), ofLatest)
	spoil(displacing(t, job.OverlapCancel), ofCancel)
	spoil(displacing(t, job.OverlapReplace), ofReplace)
	spoil(strictly(t), ofStrict)
	spoil(expiring(t), ofExpired)
	spoil(waitingTooLong(t), ofWaitingTooLong)
	spoil(overrunning(t), ofDeadlines)
	spoil(branching(t), ofFlows)
	spoil(catching(t), ofCaught)
	spoil(asking(t), ofScopes)
	spoil(halting(t), ofStops)
	spoil(telling(t), ofCallbacks)
	spoil(pausing(t), ofStreaks)
	spoil(ending(t), ofEndings)
	spoil(away(t), ofMissed)
	spoil(forgetting(t), ofForgotten)
	spoil(together(t), ofTogether)
	for _, found := range matched(t) {
		for _, v := range found {
			said[v] = true
		}
	}
	for _, format := range formats(t) {
		like := regexp.MustCompile("(?s)^(j: )?" + regexp.MustCompile(`%(\\\+|\\\.\d+)?[a-z]`).ReplaceAllString(regexp.QuoteMeta(format), ".*") + "$")
		ok := false
		for v := range said {
			_, text, _ := strings.Cut(v, ": ")
			if ok = like.MatchString(text); ok {
				break
			}
		}
		if !ok {
			t.Errorf("nothing is planted for %q", format)
		}
	}
}

// formats are those of all that the judge may say.
func formats(t *testing.T) (all []string) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 1 {
				if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "violate" && f.Sel.Name != "add" {
					if f, ok := call.Fun.(*ast.Ident); !ok || f.Name != "add" {
						return true
					}
				}
				if text, ok := call.Args[1].(*ast.BasicLit); ok && text.Kind == token.STRING {
					format, err := strconv.Unquote(text.Value)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, format)
				}
			}
			return true
		})
	}
	if len(all) < 80 {
		t.Fatalf("only %d formats found", len(all))
	}
	return all
}

// matches tells whether one of what was found is what a row wants.
func matches(want string, found []string) bool {
	return slices.ContainsFunc(found, regexp.MustCompile("^"+want).MatchString)
}
