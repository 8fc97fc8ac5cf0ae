package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// Mask is what is switched off in the mix of a seed, each by its name: a fault ("lost"), a client ("client2"), a host ("host3"), what
// jobs or targets do ("jitter", "poison"), or what is cut short ("length=12m", "names=2"). What is not switched off is drawn as before.
type Mask []string

// ParseMask reads what String writes: names with commas between them.
func ParseMask(text string) (Mask, error) {
	mask := Mask(strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }))
	var m Mix
	m.Clients, m.Shape.Hosts = make([]Role, 100), 100
	for _, name := range mask {
		if !slices.ContainsFunc(m.switches(), func(s toggle) bool { return s.name == name }) && m.cut(name) != nil {
			return nil, invalid.Field("mask", name, "a name such as lost, client2, host1, jitter or length=12m")
		}
	}
	return mask, nil
}

func (k Mask) String() string { return strings.Join(k, ",") }

// without gives a mix with what the mask names switched off.
func (m Mix) without(mask Mask) Mix {
	m.Clients = slices.Clone(m.Clients)
	for _, name := range mask {
		if err := m.cut(name); err == nil {
			continue
		}
		for _, s := range m.switches() {
			if s.name == name {
				s.off()
			}
		}
	}
	return m
}

// cut sets what has a number.
func (m *Mix) cut(text string) error {
	name, value, _ := strings.Cut(text, "=")
	switch name {
	case "length":
		d, err := time.ParseDuration(value)
		if err == nil {
			m.Length = d
		}
		return err
	case "names":
		n, err := strconv.Atoi(value)
		if err == nil {
			m.Names = n
		}
		return err
	}
	return fmt.Errorf("%s is not cut", name)
}

// toggle is something that can be switched off in a mix.
type toggle struct {
	name string
	on   bool
	off  func()
}

// switches are what can be switched off. The order is that in which it is tried: what simplifies most comes first.
func (m *Mix) switches() []toggle {
	var all []toggle
	for n := len(m.Clients) - 1; n >= 0; n-- {
		all = append(all, toggle{fmt.Sprintf("client%d", n), !m.Clients[n].Off, func() { m.Clients[n].Off = true }})
	}
	for n := m.Shape.Hosts - 1; n > 0; n-- {
		all = append(all, toggle{fmt.Sprintf("host%d", n), n < m.Shape.Hosts && !m.Shape.Alone, func() { m.Shape.Hosts = min(m.Shape.Hosts, n) }})
	}
	all = append(all, toggle{"counts", m.Counts, func() { m.Counts = false }})
	f, j, k, l := &m.Faults, &m.Jobs, &m.Work, &m.Latency
	for _, one := range []struct {
		name string
		rate *float64
	}{
		{"refused", &f.Refused}, {"throttled", &f.Throttled}, {"lost", &f.Lost}, {"late", &f.Late}, {"slow", &f.Slow}, {"short", &f.Short}, {"stale", &f.Stale},
		{"send-failed", &f.SendFailed}, {"send-lost", &f.SendLost}, {"send-unknown", &f.SendUnknown}, {"doubled", &f.Doubled}, {"delayed", &f.Delayed},
		{"reordered", &f.Reordered}, {"receive-lost", &f.ReceiveLost}, {"ended-early", &f.EndedEarly}, {"delete-failed", &f.DeleteFailed}, {"blobs", &f.Blobs},
		{"request-lost", &f.RequestLost}, {"request-delayed", &f.RequestDelayed}, {"answer-lost", &f.AnswerLost}, {"drift", &f.Drift},
		{"bounds", &j.Bounds}, {"jitter", &j.Jitter}, {"paused", &j.PausedAtBirth}, {"labels", &j.Labels}, {"at-most-once", &j.AtMostOnce},
		{"windows", &j.Windows}, {"long-retries", &j.LongRetries}, {"short-lived", &j.ShortLived}, {"overlap", &j.Overlap}, {"queued", &j.Queued}, {"one-waits", &j.OneWaits}, {"displace", &j.Displace}, {"strict", &j.Strict}, {"own", &j.Own}, {"keyed", &j.Keyed}, {"named", &j.Named}, {"named-keyed", &j.NamedKeyed}, {"max-wait", &j.MaxWait}, {"callbacks", &j.Callbacks}, {"missed", &j.Missed}, {"requested", &j.Requested}, {"expiring", &j.Expiring}, {"counted", &j.Counted}, {"pausing", &j.Pausing}, {"deadlines", &j.Deadlines}, {"ignore-pause", &j.IgnorePause},
		{"workflows", &j.Workflows}, {"hurried", &j.Hurried}, {"caught", &j.Caught}, {"stopping", &j.Stopping}, {"scoped", &j.Scoped}, {"waits", &j.Waits}, {"stops", &j.Stops},
		{"fail", &k.Fail}, {"bad", &k.Bad}, {"panic", &k.Panic}, {"poison", &k.Poison}, {"retry-after", &k.RetryAfter}, {"deaf", &k.Deaf}, {"large", &k.Large},
		{"fences", &k.Fences}, {"idle", &m.Shape.Idle},
	} {
		all = append(all, toggle{one.name, *one.rate != 0, func() { *one.rate = 0 }})
	}
	for _, one := range []struct {
		name string
		mean *time.Duration
	}{
		{"away", &f.Away}, {"full", &f.Full}, {"crash", &f.Crash}, {"stop", &f.Stop}, {"pause", &f.Pause}, {"step", &f.Step}, {"skew", &f.Skew},
		{"latency-store", &l.Store}, {"latency-queue", &l.Queue}, {"latency-net", &l.Net},
	} {
		all = append(all, toggle{one.name, *one.mean != 0, func() { *one.mean = 0 }})
	}
	return append(all, toggle{"defaults", m.callsForAll(), func() { m.Defaults = dispatch.DefaultCallbacks{} }},
		toggle{"outages", len(m.Outages) > 0, func() { m.Outages = nil }},
		toggle{"parts", !m.Shape.Whole, func() { m.Shape.Whole = true }})
}
