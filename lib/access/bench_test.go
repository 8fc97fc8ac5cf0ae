package access_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
)

// What a token adds to each request: the look into the cache, one SHA-256, the rate.
func BenchmarkAdmit(b *testing.B) {
	id := uint64(0)
	tokens, err := access.New(access.Config{Store: memory.New(memory.Config{Now: time.Now}), Now: time.Now, Random: rand.Reader, NewID: func() uint64 { id++; return id }})
	if err != nil {
		b.Fatal(err)
	}
	g, err := access.NewGate(access.GateConfig{Tokens: tokens, Now: time.Now, Required: true, Rate: 1e9})
	if err != nil {
		b.Fatal(err)
	}
	text, _, err := tokens.Create(b.Context(), "default", access.Request{Scopes: []access.Scope{access.Read}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Admit(b.Context(), text, here); err != nil {
			b.Fatal(err)
		}
	}
}
