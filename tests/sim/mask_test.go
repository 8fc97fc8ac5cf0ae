package sim

import (
	"testing"
	"time"
)

func TestMasksAreRead(t *testing.T) {
	for _, text := range []string{"", "lost", "client2,host1", "length=12m,names=2", "jitter poison"} {
		mask, err := ParseMask(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if again, err := ParseMask(mask.String()); err != nil || again.String() != mask.String() {
			t.Errorf("%q reads as %q, and again as %q, %v", text, mask, again, err)
		}
	}
	for _, text := range []string{"nonsense", "length=soon", "length", "names=few", "client", "lost,nonsense"} {
		if mask, err := ParseMask(text); err == nil {
			t.Errorf("%q was read as %q", text, mask)
		}
	}
}

// TestMasksLeaveTheRest: what is switched off is off, and all else is as it was drawn.
func TestMasksLeaveTheRest(t *testing.T) {
	for seed := range uint64(50) {
		drawn := Draw(seed)
		for _, s := range drawn.switches() {
			if !s.on {
				continue
			}
			masked := drawn.without(Mask{s.name})
			for i, other := range masked.switches() {
				was := drawn.switches()
				if len(was) != len(masked.switches()) {
					break // a host less
				}
				if other.on != (was[i].on && other.name != s.name) {
					t.Fatalf("seed %d without %s: %s is %t", seed, s.name, other.name, other.on)
				}
			}
			if masked.Start != drawn.Start || masked.Length != drawn.Length || masked.Names != drawn.Names {
				t.Fatalf("seed %d without %s is another world", seed, s.name)
			}
		}
		if cut := drawn.without(Mask{"length=7s", "names=1"}); cut.Length != 7*time.Second || cut.Names != 1 {
			t.Fatalf("seed %d was cut to %s and %d names", seed, cut.Length, cut.Names)
		}
	}
}

func TestShortestMask(t *testing.T) {
	if got := (Mask{"length=8m", "lost", "names=4", "length=2m", "names=2"}).shortest().String(); got != "lost,length=2m,names=2" {
		t.Errorf("got %s", got)
	}
}
