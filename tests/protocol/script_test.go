package protocol_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/schedule"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/faulty"
	"github.com/belfry-scheduler/belfry/tests/script"
)

// TestScripts plays the texts under testdata against the real code. A line is a command (see player.command), the indented lines
// below it are what it did. Times are since the world began; a generation's number is one too; a@00:00:10/1 is the first run on
// demand. The operations of an act are numbered, so that a crash can name where it comes: its writes and sends are shown, reads
// too where they are asked for. "something stands" and "overtaken" are conditions that will not hold.
func TestScripts(t *testing.T) {
	script.Play(t, func(t *testing.T) func([]string) []string { return (&player{t: t}).play })
}

// player is a script under way.
type player struct {
	t *testing.T
	*world
	out       []string
	since     [][]string // the commands since the world began
	marked    [][]string // those up to the mark
	requested []string   // the random parts of on-demand runs, in the order of their appearance
	held      map[string]*process
	lose      int // so many of the next messages
	started   int // of world.starts, those that were shown
	edits     int
	dies      func() // tells the host of an act that it is gone
	args      map[string]string
}

func (p *player) play(words []string) []string {
	p.out, p.args = nil, map[string]string{}
	if p.dies == nil {
		p.dies = func() {}
	}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		p.args[name] = value
	}
	name := ""
	if len(words) > 1 {
		name = words[1]
	}
	switch words[0] {
	case "world":
		p.since = nil
	case "mark":
		p.marked = slices.Clone(p.since)
		return nil
	case "back":
		for _, again := range p.marked {
			p.play(again)
		}
		return nil
	}
	p.since = append(p.since, words)
	if !p.command(words[0], name) {
		p.t.Fatalf("unknown command %q", words[0])
	}
	return p.out
}

// command does one. Besides those below, mark remembers the world as it stands and back returns to it.
func (p *player) command(command, name string) bool {
	switch command {
	case "world": // [look-ahead=2s]: a new one, empty. Its shard's lease is over at once: ticks are not kept apart.
		p.world = newWorld(p.t, lookAhead(p.duration("look-ahead", 2*time.Second)), func(w *world) { w.lease = -time.Millisecond })
		p.requested, p.held, p.lose, p.started, p.edits = nil, map[string]*process{}, 0, 0, 0
		p.fate = func(queue.Outgoing) (bool, bool) {
			lost := p.lose > 0
			p.lose = max(0, p.lose-1)
			return lost, false
		}
	case "wait": // DURATION: time goes by, and nobody does anything
		p.elapsed += p.span(name)
	case "clock": // HOST by=DURATION: its clock is so far off
		p.host(name).skew = p.duration("by", 0)
	case "lose": // N | all | none: what the queue does with the next messages
		p.lose = map[string]int{"all": 1 << 30, "none": 0}[name]
		if n, err := strconv.Atoi(name); err == nil {
			p.lose = n
		}
	case "job": // NAME [every=|cron=|at=] [end=] [catchup=] [window=] [overlap=] [limit=]: put it; repeat: the same definition as before
		if _, repeat := p.args["repeat"]; !repeat {
			p.edits++
		}
		def := p.definition()
		p.act("api", func(h *host) error { return p.answered(h.put(tenant, name, def)) })
	case "pause":
		p.act("api", func(h *host) error { return p.answered(h.pause(tenant, name)) })
	case "resume":
		p.act("api", func(h *host) error { return p.answered(h.resume(tenant, name)) })
	case "delete":
		p.act("api", func(h *host) error { return p.answered(h.delete(tenant, name)) })
	case "trigger": // NAME [delay=] [key=] [payload=]
		req := control.Request{Delay: new(p.duration("delay", 0)), Key: p.args["key"], Payload: []byte(p.args["payload"])}
		p.act("api", func(h *host) error {
			r, repeated, err := h.order(tenant, name, req)
			if err == nil {
				p.say("answer: %s %s%s", p.id(r.ID), r.State, map[bool]string{true: ", as before"}[repeated])
			}
			return err
		})
	case "retry": // RUN, as it is shown
		p.act("api", func(h *host) error { return p.answered(h.retry(tenant, p.named(name))) })
	case "cancel": // RUN, as it is shown
		p.act("api", func(h *host) error { return p.answered(h.cancel(tenant, p.named(name))) })
	case "renew": // RUN, as it is shown: the heartbeat of its attempt
		p.act("worker", func(h *host) error { return h.renew(tenant, p.named(name)) })
	case "read": // RUN, as it is shown: somebody reads the log of its attempt at a process that is not the worker's
		p.act("api", func(h *host) error { return h.readLog(tenant, p.named(name)) })
	case "tick":
		p.act("ticks", (*host).tick)
	case "thaw": // NAME of a host [crash-at=N]: it wakes and goes on
		h := p.held[name]
		delete(p.held, name)
		for crashAt := p.number("crash-at"); !h.ended; {
			if h.next.n >= crashAt {
				p.say("crash before %d %s", h.next.n, p.describe(h.next))
				h.crash()
				break
			}
			p.trace(h.next)
			h.step(faulty.Fault{})
		}
	case "work": // the worker handles what can be received; as an act, it takes one message, and dies where it crashes
		if name == "" {
			p.world.work()
		} else {
			ctx, stop := context.WithCancel(context.Background())
			p.dies = stop
			p.act("worker", func(h *host) error { return h.worker.Pass(ctx, 0) })
			p.dies = func() {}
		}
		p.starts()
	case "live": // DURATION [step=1s] [tick=step] [trace] [host=ticks]: ticks and work; trace shows what ticks write, cursors apart
		p.live(p.span(name))
	case "settle": // all comes to its end, and the invariants are asked
		wrong := p.world.settle()
		p.starts()
		if len(wrong) == 0 {
			wrong = []string{"every promise is kept"}
		}
		p.out = append(p.out, wrong...)
	case "runs":
		runs := p.world.runs()
		slices.SortStableFunc(runs, func(a, b run.Run) int { return cmp.Compare(a.ID.Nominal, b.ID.Nominal) })
		for _, r := range runs {
			p.say("%s", p.run(r))
		}
	case "list": // [state=NAME]: what a listing of all jobs shows
		var f control.RunFilter
		if state, ok := run.ParseState(p.args["state"]); ok {
			f.States = []run.State{state}
		}
		for _, r := range p.listed(tenant, f) {
			p.say("%s", p.run(r))
		}
	case "timers": // [fire|request|check]: those that no tick has come upon yet
		for _, t := range p.world.timers() {
			if text := p.timer(t); t.Wake > p.world.shard().Watermark && strings.HasPrefix(text, name) {
				p.say("%s", text)
			}
		}
	case "shard":
		p.say("%s", p.shard(p.world.shard()))
	default:
		return false
	}
	return true
}

func (p *player) say(format string, args ...any) { p.out = append(p.out, fmt.Sprintf(format, args...)) }

func (p *player) span(text string) time.Duration {
	d, err := time.ParseDuration(text)
	p.must(err)
	return d
}

func (p *player) duration(name string, otherwise time.Duration) time.Duration {
	if text, ok := p.args[name]; ok {
		d, err := time.ParseDuration(text)
		if err != nil {
			p.t.Fatal(err)
		}
		return d
	}
	return otherwise
}

func (p *player) definition() job.Definition {
	def := definition(nil, p.edits)
	switch {
	case p.args["every"] != "":
		def.Schedule = every(p.duration("every", 0))
	case p.args["cron"] != "": // its fields are parted by _
		def.Schedule = &schedule.Spec{Cron: strings.ReplaceAll(p.args["cron"], "_", " ")}
	case p.args["at"] != "":
		at := base.Add(p.duration("at", 0))
		def.Schedule = &schedule.Spec{At: &at}
	}
	if end := p.duration("end", 0); end != 0 {
		def.Schedule = until(end, def.Schedule)
	}
	def.Overlap.Policy = job.OverlapPolicy(p.args["overlap"])
	if p.args["limit"] != "" {
		def.Overlap.Limit = p.number("limit")
	}
	def.CatchUp = job.CatchUp{Mode: jobMode(p.args["catchup"]), Window: schedule.Duration(p.duration("window", 0))}
	return def
}

// act lets a host do something and shows its operations: writes and sends, with reads all. It takes host=NAME and
// crash-at=N (the N-th operation and all after it fail), answer-lost=N (it happens and the host is not told) or hold-at=N (the
// host is stopped before it, until thaw; N is the first of its batch), of which the last two go together. quiet shows nothing.
func (p *player) act(otherwise string, act func(*host) error) {
	name := p.args["host"]
	if name == "" {
		name = otherwise
	}
	h := p.host(name)
	h.ops = 0
	crashAt, lostAt, holdAt := p.number("crash-at"), p.number("answer-lost"), p.number("hold-at")
	if holdAt < 1<<30 {
		held := begin(h, name, func(h *host) { p.verdict(act(h)) })
		for held.next.n < holdAt && !held.ended {
			fault := faulty.Fault{}
			if held.next.n == lostAt {
				p.say("%d %s; the answer is lost", lostAt, p.describe(held.next))
				fault.Lose = store.ErrUnknown
			} else {
				p.trace(held.next)
			}
			held.step(fault)
		}
		p.say("stopped before %d", holdAt)
		p.held[name] = held
		return
	}
	h.before = func(op operation) faulty.Fault {
		switch {
		case op.n == crashAt:
			p.say("crash before %d %s", op.n, p.describe(op))
			p.dies()
			return faulty.Fault{Refuse: errCrashed}
		case op.n > crashAt:
			return faulty.Fault{Refuse: errCrashed}
		case op.n == lostAt:
			p.say("%d %s; the answer is lost", op.n, p.describe(op))
			return faulty.Fault{Lose: store.ErrUnknown}
		}
		p.trace(op)
		return faulty.Fault{}
	}
	err := act(h)
	h.before = nil
	if h.ops >= crashAt {
		delete(p.hosts, name)
	} else {
		p.verdict(err)
	}
}

func (p *player) verdict(err error) {
	if err != nil && !errors.Is(err, errCrashed) {
		p.say("error: %v", err)
	}
}

func (p *player) answered(err error) error {
	if _, quiet := p.args["quiet"]; err == nil && !quiet {
		p.say("answer")
	}
	return err
}

// number is the operation that an argument names, or one that never comes.
func (p *player) number(name string) int {
	if p.args[name] == "" {
		return 1 << 30
	}
	n, err := strconv.Atoi(p.args[name])
	p.must(err)
	return n
}

func (p *player) trace(op operation) {
	if _, quiet := p.args["quiet"]; quiet {
		p.describe(op) // which numbers the runs on demand
		return
	}
	if _, reads := p.args["reads"]; reads || op.writes() {
		p.say("%d %s", op.n, p.describe(op))
	}
}

func (p *player) live(d time.Duration) {
	step := p.duration("step", time.Second)
	every := p.duration("tick", step)
	name := p.args["host"]
	if name == "" {
		name = "ticks"
	}
	_, trace := p.args["trace"]
	for end := p.elapsed + d; p.elapsed < end; {
		p.elapsed += min(step, end-p.elapsed)
		if every == step || p.elapsed%every == 0 {
			h := p.host(name)
			h.before = func(op operation) faulty.Fault {
				text := p.describe(op)
				if trace && op.writes() && !strings.HasPrefix(text, "shard") && !strings.HasPrefix(text, "swept") {
					p.say("%s %s", clock(p.now()), text)
				}
				return faulty.Fault{}
			}
			p.verdict(h.tick())
			h.before = nil
		}
		p.world.work()
		p.starts()
	}
}

// starts shows what the worker has started since it was last asked.
func (p *player) starts() {
	fresh := p.world.starts[p.started:]
	for i, s := range fresh {
		switch {
		case len(fresh) <= 12:
			p.say("%s starts %s, generation %s", clock(s.at), p.id(s.id), generationOf(s.generation))
		case i == len(fresh)-1:
			p.say("%s starts %d runs from %s to %s", clock(s.at), len(fresh), p.id(fresh[0].id), p.id(s.id))
		}
	}
	p.started = len(p.world.starts)
}
