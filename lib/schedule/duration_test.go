package schedule

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

func TestDuration_reads_text_and_writes_the_shortest(t *testing.T) {
	for _, c := range []struct {
		text, shortest string
		want           time.Duration
	}{
		{"90s", "90s", 90 * time.Second},
		{"1h30m", "90m", 90 * time.Minute},
		{"5m", "5m", 5 * time.Minute},
		{"300s", "5m", 5 * time.Minute},
		{"7d", "7d", 168 * time.Hour},
		{"720h", "30d", 720 * time.Hour},
		{"365d", "365d", 8760 * time.Hour},
		{"3650d", "3650d", 87600 * time.Hour},
		{"1d12h", "36h", 36 * time.Hour},
		{"25h1m1s", "1d1h1m1s", 25*time.Hour + time.Minute + time.Second},
		{"48h0m1s", "2d1s", 48*time.Hour + time.Second},
		{"250ms", "250ms", 250 * time.Millisecond},
		{"1.5s", "1.5s", 1500 * time.Millisecond},
		{"0s", "0s", 0},
		{"0", "0s", 0},
		{"0d", "0s", 0},
		{"1us", "1µs", time.Microsecond},
		{"2562047h47m16.854775807s", "106751d23h47m16.854775807s", math.MaxInt64},
	} {
		d, err := ParseDuration(c.text)
		if err != nil || d.Std() != c.want || d.String() != c.shortest {
			t.Errorf("%s reads as %v and writes as %s (%v), want %v and %s", c.text, d.Std(), d, err, c.want, c.shortest)
		}
		data, err := json.Marshal(d)
		var back Duration
		if err != nil || json.Unmarshal(data, &back) != nil || back != d {
			t.Errorf("%s does not come back from JSON: %s, %v", c.text, data, err)
		}
	}
}

func TestDuration_refuses_what_could_be_meant_otherwise(t *testing.T) {
	for _, data := range []string{
		`90`, `1.5`, `true`, `{}`, `[]`, `""`, `"90"`, `"s"`, `"d"`, `"1.5d"`, `"-1s"`, `"+1s"`, `"1d-1s"`, `"-1d"`, `"12h1d"`, `"1d 1s"`, `" 1s"`,
		`"1w"`, `"1d1d"`, `"106752d"`, `"106751d24h"`, `"9999999999999d"`, `"forever"`, `"` + strings.Repeat("1s", 40) + `"`,
	} {
		d := Duration(7)
		err := json.Unmarshal([]byte(data), &d)
		refusals := invalid.All(err)
		if len(refusals) != 1 || !strings.Contains(refusals[0].Want, "duration") || d != 7 {
			t.Errorf("%s: reads as %v with error %v", data, d.Std(), err)
		}
	}
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"90s", "1h30m", "30d", "1d1h", "1.5s", "-1s", "106751d23h", "0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			if len(invalid.All(err)) != 1 {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if back, err := ParseDuration(d.String()); err != nil || back != d || d < 0 {
			t.Errorf("%q is %d, and %q comes back as %d, %v", text, d, d, back, err)
		}
	})
}
