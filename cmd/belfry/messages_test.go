package main

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

func TestTheMessagesOfAQueueAreListed(t *testing.T) {
	call := to(t, dev(t, "--data", t.TempDir(), "--allow-exec"))
	call(0, `{"name": "going", "priority": "high", "timeout": "1h", "target": {"exec": {"argv": ["sleep", "600"]}}}`, "job", "apply", "-f", "-")
	call(0, `{"name": "later", "target": {"exec": {"argv": ["true"]}}}`, "job", "apply", "-f", "-")
	call(0, "", "job", "trigger", "going")
	for range 3 {
		call(0, "", "job", "trigger", "later", "--delay", "55s")
	}
	eventually(t, "one is taken and three are delayed", func() (bool, string) {
		got := decode[wire.QueueMessages](t, call(0, "", "queue", "messages", "default", "-o", "json").out)
		return got.Priorities["high"] == wire.Depth{Taken: 1} && got.Priorities["normal"] == wire.Depth{Delayed: 3} && len(got.Items) == 4, call(0, "", "queue", "messages", "default").out
	})
	some := call(0, "", "queue", "messages", "default", "-n", "2")
	if !regexp.MustCompile(`(?m)^STATE .*\ntaken +high +going~.*\ndelayed +normal +later~.*\ndelayed +normal +later~.*\n$`).MatchString(some.out) || !strings.Contains(some.errors, "3 of 4 messages: at most 2 of each priority and state") {
		t.Errorf("%s%s", some.out, some.errors)
	}
	if got := call(3, "", "queue", "messages", "gpu"); !strings.Contains(got.errors, "no queue gpu") {
		t.Errorf("a queue that is not there: %s", got.errors)
	}
	call(exitUsage, "", "queue", "messages", "default", "-n", "101")
	call(exitUsage, "", "queue", "messages", "")
}

// TestMessagesThatAreNotListedAreExplainedByTheServer: a path that is missing says nothing of SQS.
func TestMessagesThatAreNotListedAreExplainedByTheServer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"status": 404, "code": "no_such_path", "detail": "There is nothing at it."}`))
	}))
	t.Cleanup(s.Close)
	if got := to(t, s.URL)(3, "", "queue", "messages", "default"); strings.Contains(got.errors, "SQS") || !strings.Contains(got.errors, "There is nothing at it.") {
		t.Error(got.errors)
	}
}
