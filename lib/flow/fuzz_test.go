package flow

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/manifest"
)

// No text makes Check panic; the schema refuses what has not the form; what is refused names its fields; and what is taken is a sound workflow
// whose own form is taken too, and makes the same.
func FuzzDefinitions(f *testing.F) {
	schema := compiled(f)
	for _, folder := range []string{"good", "bad"} {
		for _, v := range corpus(f, folder) {
			f.Add([]byte(v.JSON()))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := manifest.ReadJSON(text)
		if err != nil {
			return
		}
		agree(t, schema, v, string(text))
		w, err := Check(v, AnyQueue)
		if err != nil {
			if len(invalid.All(err)) == 0 {
				t.Errorf("refused without a field: %v", err)
			}
			return
		}
		sound(t, w)
		again(t, w)
	})
}

// A scope of any definition that is taken is one itself, as a workflow.
func TestScopesAreWorkflows(t *testing.T) {
	for file, v := range corpus(t, "good") {
		w, err := Check(v, AnyQueue)
		if err != nil {
			t.Fatal(file, err)
		}
		var look func(steps map[string]Step)
		look = func(steps map[string]Step) {
			for _, s := range steps {
				if s.Steps == nil {
					continue
				}
				text, err := json.Marshal(Definition{Steps: s.Steps})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Read(text); err != nil {
					t.Errorf("%s: %s: %v", file, text, err)
				}
				look(s.Steps)
			}
		}
		look(w.source.Steps)
	}
}

// Definitions with a few values replaced, taken out or moved are as well judged as those that were written by hand.
func TestMutatedDefinitionsAreJudgedAlike(t *testing.T) {
	schema := compiled(t)
	var from []*manifest.Value
	for _, folder := range []string{"good", "bad"} {
		all := corpus(t, folder)
		for _, file := range slices.Sorted(maps.Keys(all)) {
			from = append(from, all[file])
		}
	}
	rounds := 6000
	if testing.Short() {
		rounds = 3000
	}
	r := rand.New(rand.NewPCG(33, 0))
	taken := 0
	for range rounds {
		v := copied(from[r.IntN(len(from))])
		for range 1 + r.IntN(3) {
			mutate(r, v, from[r.IntN(len(from))])
		}
		agree(t, schema, v, string(v.JSON()))
		if w, err := Check(v, AnyQueue); err == nil {
			sound(t, w)
			again(t, w)
			taken++
		}
		if t.Failed() {
			return
		}
	}
	if taken < rounds/50 {
		t.Errorf("only %d of %d were taken", taken, rounds)
	}
}

func copied(v *manifest.Value) *manifest.Value {
	c := *v
	c.Items, c.Members = slices.Clone(v.Items), slices.Clone(v.Members)
	for i, item := range c.Items {
		c.Items[i] = copied(item)
	}
	for i, m := range c.Members {
		c.Members[i].Value = copied(m.Value)
	}
	return &c
}

// mutate changes one place of a definition, with what may stand in another.
func mutate(r *rand.Rand, v, other *manifest.Value) {
	at, from := pick(r, v), pick(r, other)
	switch r.IntN(5) {
	case 0:
		scalars := []manifest.Value{{Kind: manifest.Null}, {Kind: manifest.Bool, Scalar: "true"}, {Kind: manifest.Number, Scalar: "0"}, {Kind: manifest.Number, Scalar: "3.0"},
			{Kind: manifest.Number, Scalar: "1e400"}, {Kind: manifest.Number, Scalar: "-1"}, {Kind: manifest.Text}, {Kind: manifest.Text, Scalar: "0s"}, {Kind: manifest.Text, Scalar: "90s"},
			{Kind: manifest.Text, Scalar: "1us"}, {Kind: manifest.Text, Scalar: "9999999999999d"}, {Kind: manifest.Text, Scalar: "a"}, {Kind: manifest.Text, Scalar: "ü\n"}, {Kind: manifest.Array}, {Kind: manifest.Object}}
		*at = scalars[r.IntN(len(scalars))]
	case 1:
		*at = *copied(from)
	case 2:
		if n := len(at.Members); n > 0 {
			i := r.IntN(n)
			at.Members = slices.Delete(at.Members, i, i+1)
		}
	case 3:
		for _, m := range from.Members {
			if at.Kind == manifest.Object && at.Member(m.Name) == nil && r.IntN(2) == 0 {
				at.Members = append(at.Members, manifest.Member{Name: m.Name, Value: copied(m.Value)})
			}
		}
	case 4:
		if at.Kind == manifest.Array {
			at.Items = append(at.Items, copied(from))
		}
	}
}

// pick is any value of a definition.
func pick(r *rand.Rand, v *manifest.Value) *manifest.Value {
	all := []*manifest.Value{}
	var walk func(v *manifest.Value)
	walk = func(v *manifest.Value) {
		all = append(all, v)
		for _, item := range v.Items {
			walk(item)
		}
		for _, m := range v.Members {
			walk(m.Value)
		}
	}
	walk(v)
	return all[r.IntN(len(all))]
}
