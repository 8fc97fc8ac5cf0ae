package access_test

import (
	"errors"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
)

// FuzzToken shows anything as a token. One text of all is good.
func FuzzToken(f *testing.F) {
	c := &clock{}
	tokens, err := access.New(access.Config{Store: memory.New(memory.Config{}), Now: c.Now, Random: &chance{}, NewID: func() uint64 { return 1 }})
	if err != nil {
		f.Fatal(err)
	}
	good, made, err := tokens.Create(f.Context(), access.DefaultTenant, access.Request{Name: "ci", Scopes: []access.Scope{access.Read}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add(access.Forge(made.ID, good[len("bel_")+17:len(good)-6]))
	f.Add(access.Forge("0123456789abcdef", good[len("bel_")+17:len(good)-6]))
	f.Fuzz(func(t *testing.T, text string) {
		found, err := tokens.Check(t.Context(), text)
		if (err == nil) != (text == good) || err == nil && found.ID != made.ID {
			t.Fatalf("%q is taken for %+v, %v", text, found, err)
		}
		var stranger *access.Unauthenticated
		if err != nil && !errors.As(err, &stranger) && !errors.Is(err, access.ErrNoToken) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
