package wire_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestListsOfLabelsAreTakenApartWhereALabelBegins(t *testing.T) {
	for list, want := range map[string][]string{
		"team=billing":               {"team=billing"},
		"team=billing,env=prod":      {"team=billing", "env=prod"},
		"team=a,b":                   {"team=a,b"},
		"team=,env=":                 {"team=", "env="},
		"team=a,":                    {"team=a,"},
		`team=a\,env=prod`:           {"team=a,env=prod"},
		`dir=C:\x`:                   {`dir=C:\x`},
		`dir=C:\\,env=prod`:          {`dir=C:\`, "env=prod"},
		"team=a, env=prod":           {"team=a, env=prod"}, // a label's name has no blank
		"team":                       {"team"},
		"":                           {""},
		"team=a,env=b,team=c,d,e=f=": {"team=a", "env=b", "team=c,d", "e=f="},
	} {
		if got := wire.SplitLabels(list); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
}

func TestEveryLabelIsOneOfAListOfItself(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		var value []byte
		for range draw.IntN(12) {
			value = append(value, `a=\,.-`[draw.IntN(6)])
		}
		if got := wire.SplitLabels(wire.JoinLabel("k", string(value))); !slices.Equal(got, []string{"k=" + string(value)}) {
			t.Fatalf("%q reads as %q", value, got)
		}
	}
}
