package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/gate"
	"github.com/belfry-scheduler/belfry/lib/run"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// values are such that keys of them might be taken for one another.
func values() []string {
	all := []string{"", "-", "=", ">", "#", "%", "%23", "%2523", "a", "a#", "a#0", "a%23", "=a", ">a", "a\x00", "a\n", "a\u200b", "a\ufffd", "Ä", "0000000000000#", "sha256:", "true", "1",
		strings.Repeat("x", gate.MaxKey), strings.Repeat("x", gate.MaxKey+1), strings.Repeat("#", gate.MaxKey), strings.Repeat("é", gate.MaxKey/2), strings.Repeat("é", gate.MaxKey), strings.Repeat("x", 1<<20)}
	for _, v := range all[len(all)-6:] { // what is stored and shown of one value may be another value
		key := gate.KeyOf(v)
		all = append(all, key, key[1:], gate.ShownKey(key), gate.KeyOf(key), gate.KeyOf(gate.ShownKey(key)))
	}
	return all
}

// Each value has a gate and a line of its own, also where it looks like what is kept of another, and none is that of all runs.
func TestG1_ValuesDoNotShareAGate(t *testing.T) {
	gates := map[store.Key]string{gate.Key("acme", "report"): "the gate of all"}
	lines := map[store.Key]string{}
	keys := map[string]string{}
	shown := map[string]string{}
	seen := map[string]bool{}
	for _, v := range values() {
		if seen[v] {
			continue
		}
		seen[v] = true
		key := gate.KeyOf(v)
		if other, ok := keys[key]; ok {
			t.Errorf("%.60q and %.60q have the key %q", v, other, key)
		}
		keys[key] = v
		if len(key) > 44 {
			t.Errorf("the key of %.60q takes %d bytes of a run's record", v, len(key))
		}
		id := gate.ID{Tenant: "acme", Name: "job:report", Key: key}
		at := id.Item()
		if other, ok := gates[at]; ok {
			t.Errorf("%.60q and %.60q have the gate %s", v, other, at)
		}
		gates[at] = v
		if g, err := gate.FromItem("acme", "job:report", store.Item{Key: at}); err != nil || g.ID() != id {
			t.Errorf("the gate of %.60q is read as %+v, %v", v, g.ID(), err)
		}
		r := fire(1)
		r.GateKey = key
		p := gate.PlaceOf(r.Join(gate.Name("report"), 7, 7))
		place := p.Key("acme")
		if other, ok := lines[place]; ok {
			t.Errorf("places at %.60q and %.60q are one", v, other)
		}
		lines[place] = v
		if back, err := gate.PlaceFromItem("job:report", store.Item{Key: place}); err != nil || back != p {
			t.Errorf("a place at %.60q is read as %+v, %v", v, back, err)
		}
		text := gate.ShownKey(key)
		if text == "" || gate.KeyAsked(text) != key || len(v) <= gate.MaxKey && text == v && gate.KeyAsked(v) != key {
			t.Errorf("%.60q is shown as %q, and asked for as %q", v, text, gate.KeyAsked(text))
		}
		if other, ok := shown[text]; ok && len(text) <= gate.MaxKey {
			t.Errorf("%.60q and %.60q are both shown as %q", v, other, text)
		}
		shown[text] = v
	}
}

// A line has the places of its own value alone, and whoever looks for lines finds each of them.
func TestG3_ALineIsThatOfOneValue(t *testing.T) {
	var places []store.Key
	of := map[store.Key]string{}
	for _, v := range values() {
		for n := range 3 {
			r := fire(n)
			r.GateKey = gate.KeyOf(v)
			at := gate.PlaceOf(r.Join(gate.Name("report"), r.ID.Nominal, 7)).Key("acme")
			if _, ok := of[at]; !ok {
				places = append(places, at)
			}
			of[at] = gate.KeyOf(v)
		}
	}
	in := func(r store.Range) (keys []store.Key) {
		for _, p := range places {
			if p.Partition == r.Partition && p.Sort >= r.From && (r.To == "" || p.Sort < r.To) {
				keys = append(keys, p)
			}
		}
		return keys
	}
	found := map[string]bool{}
	for after := ""; ; {
		line := in(gate.KeyedLines("acme", "job:report", after))
		if len(line) == 0 {
			break
		}
		first := line[0]
		for _, p := range line {
			if p.Sort < first.Sort {
				first = p
			}
		}
		if found[of[first]] {
			t.Fatalf("the line of %q is found twice", of[first])
		}
		after = of[first]
		found[after] = true
		g := gate.Gate{Tenant: "acme", Name: "job:report", Key: after}
		if line := in(g.Line(0)); len(line) != 3 {
			t.Errorf("the line of %q has %d places, want 3: %v", after, len(line), line)
		}
		g.Front = fire(1).ID.Nominal
		if line := in(g.Line(0)); len(line) != 2 {
			t.Errorf("the line of %q has %d places behind its front, want 2", after, len(line))
		}
	}
	if len(found)*3 != len(places) {
		t.Errorf("%d lines are found, and there are %d", len(found), len(places)/3)
	}
	if line := in(gate.Gate{Tenant: "acme", Name: "job:report"}.Line(0)); len(line) != 0 {
		t.Errorf("the line of all has %v", line)
	}
}

// A place is of the run that names it at the same value.
func TestAPlaceIsAtOneValue(t *testing.T) {
	r := fire(1)
	r.GateKey = gate.KeyOf("acme")
	r = r.Join(gate.Name("report"), 7, 7)
	p := gate.PlaceOf(r)
	if !p.Named(r) {
		t.Error("it does not name its own place")
	}
	if r.GateKey = gate.KeyOf("other"); p.Named(r) {
		t.Error("it names a place at another value")
	}
}

// The gate of a value is cleaned up a month after its last write, and written anew in time for who is there. That of all runs is kept.
func TestAGateOfAValueFades(t *testing.T) {
	now := time.UnixMilli(nominal)
	for _, key := range []string{"", gate.KeyOf("acme")} {
		g := of(fire(1))
		g.Key = key
		op, err := g.Put(now, 1)
		if err != nil {
			t.Fatal(err)
		}
		g, err = gate.FromItem("acme", "job:report", store.Item{Key: op.Key, Version: 4, Value: op.Value, Expires: op.Expires})
		if err != nil || g.Key != key || len(g.Entries) != 1 {
			t.Fatalf("%+v, %v", g, err)
		}
		for days, fades := range map[int]bool{0: false, 14: false, 16: true, 29: true} {
			at := now.Add(time.Duration(days) * 24 * time.Hour)
			if got := g.Fades(at); got != (fades && key != "") {
				t.Errorf("key %q: fades after %d days: %t", key, days, got)
			}
			if g.Fades(at) && at.UnixMilli() < gate.Ages(nominal) {
				t.Error("it fades before anybody looks")
			}
		}
		if kept := op.Expires.Sub(now); key != "" && kept != 30*24*time.Hour || key == "" && kept < 5*365*24*time.Hour {
			t.Errorf("key %q: kept for %s", key, kept)
		}
	}
}

func ExampleShownKey() {
	fmt.Println(gate.ShownKey(gate.KeyOf("acme")), gate.ShownKey(run.Run{}.GateKey) == "")
	// Output: acme true
}

// Logs and errors name a gate with the value that it is of.
func TestAGateNamesItsValue(t *testing.T) {
	for key, want := range map[string]string{
		"":                  "customer",
		gate.KeyOf("acme"):  "customer for the key acme",
		gate.KeyOf(""):      "customer for the key sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
		gate.KeyOf("a\x00"): "customer for the key " + gate.ShownKey(gate.KeyOf("a\x00")),
	} {
		if got := fmt.Sprint(gate.ID{Tenant: "acme", Name: "customer", Key: key}); got != want {
			t.Errorf("%q is named %q, want %q", key, got, want)
		}
	}
}
