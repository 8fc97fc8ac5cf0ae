package job_test

import (
	"encoding/json"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/job"
)

func skip(limit int) job.Overlap { return job.Overlap{Policy: job.OverlapSkip, Limit: limit} }

// What a definition is refused for comes as it is to whoever refuses it, also from a program elsewhere.
func TestOverlapInJSON(t *testing.T) {
	for _, c := range []struct {
		is   job.Overlap
		text string
	}{
		{skip(0), `"skip"`},
		{skip(1), `"skip"`},
		{skip(2), `{"policy":"skip","limit":2}`},
		{skip(1000), `{"policy":"skip","limit":1000}`},
		{job.Overlap{Policy: job.OverlapAllow}, `"allow"`},
		{skip(-1), `{"policy":"skip","limit":-1}`},
		{job.Overlap{Limit: 1}, `{"limit":1}`},
		{job.Overlap{Policy: job.OverlapAllow, Limit: 1}, `{"policy":"allow","limit":1}`},
		{job.Overlap{Policy: job.OverlapSkip, Key: ".job"}, `{"policy":"skip","key":".job"}`},
		{job.Overlap{Policy: job.OverlapSkip, Limit: 1, MaxWaiting: new(int)}, `{"policy":"skip","limit":1,"max_waiting":0}`},
	} {
		text, err := json.Marshal(c.is)
		if err != nil || string(text) != c.text {
			t.Errorf("%+v: %s, %v; want %s", c.is, text, err, c.text)
		}
		var back job.Overlap
		if err := json.Unmarshal(text, &back); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if again, err := json.Marshal(back); err != nil || string(again) != c.text {
			t.Errorf("%s came back as %s, %v", text, again, err)
		}
		if text[0] == '"' && c.is.Policy == job.OverlapSkip && back != skip(1) {
			t.Errorf("%s is read as %+v, want what it is stored as", text, back)
		}
	}
}
