package job_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/job"
	"github.com/belfry-scheduler/belfry/lib/record"
)

func skip(limit int) job.Overlap { return job.Overlap{Policy: job.OverlapSkip, Limit: limit} }

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
		// What a definition is refused for comes as it is to whoever refuses it.
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
	}
	if text, err := json.Marshal(job.Definition{}); err != nil || strings.Contains(string(text), "overlap") {
		t.Errorf("%s, %v: a job that says nothing of it shows nothing", text, err)
	}
	for _, text := range []string{`5`, `["skip"]`, `{"policy": "skip", "limt": 3}`, `{"policy": 1}`, `{"limit": "3"}`} {
		var o job.Overlap
		if err := json.Unmarshal([]byte(text), &o); err == nil || !strings.Contains(err.Error(), `"skip"`) {
			t.Errorf("%s: %+v, %v", text, o, err)
		}
	}
}

// A job without a limit has the bytes that it had before there were any, and one form of a limit is stored whichever way it is said.
func TestOverlapAsItIsStored(t *testing.T) {
	bytes := func(o job.Overlap) string {
		def := good()
		def.Overlap = o
		data, err := record.Encode(def.WithDefaults())
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	none := bytes(job.Overlap{})
	if bytes(job.Overlap{Policy: job.OverlapAllow}) != none {
		t.Error("allow is stored, and is the default")
	}
	if one := bytes(skip(1)); one == none || bytes(skip(0)) != one || bytes(skip(2)) == one {
		t.Error("skip is not stored as skip with the limit 1")
	}
}
