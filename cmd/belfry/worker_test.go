package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// working starts a worker in this process; stop ends it as a service is ended, and gives its exit code and what it logged.
func working(t *testing.T, args ...string) (name string, stop func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	var log lines
	done := make(chan int, 1)
	args = append([]string{"worker", "-o", "json", "--grace", "5s"}, args...)
	go func() {
		done <- run(ctx, args, strings.NewReader(""), writer, &log)
		writer.Close()
	}()
	var started struct{ Worker string }
	if err := json.NewDecoder(reader).Decode(&started); err != nil {
		cancel()
		<-done
		t.Fatalf("the worker did not start: %v\n%s", err, log.String())
	}
	go io.Copy(io.Discard, reader)
	code := -1
	stop = func() (int, string) {
		cancel()
		if code == -1 {
			code = <-done
		}
		return code, log.String()
	}
	t.Cleanup(func() { stop() })
	return started.Worker, stop
}

func TestAWorkerElsewhere(t *testing.T) {
	address := dev(t, "--data", t.TempDir(), "--remote-queue", "gpu", "--remote-queue", "theirs=rival", "--queue", "more")
	call := to(t, address)
	call(0, "from the server", "secret", "set", "far")
	job := `{"queue": "gpu", "payload": {"n": 1}, "target": {"exec": {"argv": ["/bin/sh", "-c", "cat; echo log of $BELFRY_JOB >&2; test \"$KEY\" = 'from the server'"], "env": {"KEY": {"secret": "far"}}}}}`
	call(0, job, "job", "apply", "hello", "-f", "-")
	if got := call(1, strings.Replace(job, "gpu", "theirs", 1), "job", "apply", "other", "-f", "-"); !strings.Contains(got.errors, "queue") {
		t.Errorf("a queue of another tenant: %s", got.errors)
	}
	call(0, job, "job", "apply", "again", "-f", "-")
	r := decode[wire.Run](t, call(0, "", "job", "trigger", "hello", "-o", "json").out)
	_, idle := working(t, "--address", address, "--queue", "gpu")
	eventually(t, "a worker without --allow-exec leaves it", func() (bool, string) {
		queues := queuesOf(t, address)
		for _, q := range queues {
			if q.Name == "gpu" {
				return q.Remote && q.Workers == 1 && len(q.Lacking) == 1 && q.Lacking[0] == "exec", ""
			}
		}
		return false, "there is no queue gpu"
	})
	if code, log := idle(); code != 0 {
		t.Errorf("it ended with %d\n%s", code, log)
	}
	if queues := queuesOf(t, address); len(queues) != 3 { // default, gpu, more; and nothing of the rival's
		t.Errorf("queues %+v", queues)
	}

	name, stop := working(t, "--address", address, "--queue", "gpu", "--allow-exec", "--name", "bench", "--label", "zone=eu", "--concurrency", "2")
	// The first run is out of sight for some seconds, since nobody could take it. A new one is not.
	second := decode[wire.Run](t, call(0, "", "job", "trigger", "again", "-o", "json").out)
	eventually(t, "the run succeeds", func() (bool, string) {
		got := call(0, "", "run", "get", second.ID, "-o", "json")
		return decode[wire.Run](t, got.out).State == "succeeded", got.out
	})
	if got := call(0, "", "run", "logs", second.ID).out; got != "{\"n\":1}log of again\n" && !strings.Contains(got, "log of again") {
		t.Errorf("log %q", got)
	}
	workers := getJSON[wire.WorkerPage](t, address+"/v1/workers")
	found := false
	for _, w := range workers.Items {
		if w.ID == name {
			found = w.Remote && strings.HasPrefix(w.ID, "bench-") && w.Queue == "gpu" && w.Labels["zone"] == "eu" && w.Concurrency == 2 && time.Since(w.SeenAt) < time.Minute
		}
	}
	if !found {
		t.Errorf("workers %+v, want %s", workers.Items, name)
	}
	if got := call(0, "", "queue", "workers").out; !strings.Contains(got, name+"  gpu ") || !strings.Contains(got, "zone=eu\n") {
		t.Errorf("shown as\n%s", got)
	}
	if got := call(0, "", "queue", "list").out; !strings.HasPrefix(got, "QUEUE    WORKERS  READY  DELAYED  TAKEN  NOTE\ndefault  1 ") || !strings.Contains(got, "\ngpu ") || !strings.Contains(got, "  workers elsewhere") {
		t.Errorf("queues shown as\n%s", got)
	}
	if code, log := stop(); code != 0 || !strings.Contains(log, "attempt ended") || strings.Contains(log, "from the server") {
		t.Errorf("it ended with %d\n%s", code, log)
	}
	if now := decode[wire.Run](t, call(0, "", "run", "get", r.ID, "-o", "json").out); now.State != "queued" && now.State != "succeeded" {
		t.Errorf("the first run is %s", now.State)
	}
}

// How much waits in the server's own queues would tell one tenant of the others.
func TestP12_ATenantSeesItsOwnQueuesAndWorkersAlone(t *testing.T) {
	data := t.TempDir()
	token := newToken(t, data, "--scope", "read", "--tenant", "rival").Secret
	address := serving(t, "--data", data, "--auth", "required", "--remote-queue", "gpu", "--remote-queue", "theirs=rival")
	for path, want := range map[string][]string{"/v1/queues": {"theirs"}, "/v1/workers": {}} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		names := []string{}
		for _, item := range answered[struct{ Items []struct{ Name, ID string } }](t, request).Items {
			names = append(names, item.Name+item.ID)
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s shows %v, want %v", path, names, want)
		}
	}
}

func queuesOf(t *testing.T, address string) []wire.Queue {
	t.Helper()
	return getJSON[wire.QueuePage](t, address+"/v1/queues").Items
}

func getJSON[T any](t *testing.T, url string) T {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return answered[T](t, request)
}

func answered[T any](t *testing.T, request *http.Request) T {
	t.Helper()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s, %v", request.URL, answer.Status, text, err)
	}
	return decode[T](t, string(text))
}

func TestAWorkerThatIsRefusedSaysWhy(t *testing.T) {
	data := t.TempDir()
	read := newToken(t, data, "--scope", "read", "--name", "reader").Secret
	work := newToken(t, data, "--scope", "work", "--name", "worker").Secret
	address := serving(t, "--data", data, "--auth", "required", "--remote-queue", "gpu")
	for _, c := range []struct {
		name, token, says string
		args              []string
		code              int
	}{
		{"no queue", "", "--queue", nil, exitUsage},
		{"no such queue", work, "no queue of this name", []string{"--queue", "cpu"}, exitNotFound},
		{"the server's own queue", work, "no queue of this name", []string{"--queue", "default"}, exitNotFound},
		{"no token", "", "token", []string{"--queue", "gpu"}, exitRefused},
		{"another scope", read, "work", []string{"--queue", "gpu"}, exitRefused},
		{"too many places", "", "--concurrency", []string{"--queue", "gpu", "--concurrency", "0"}, exitUsage},
		{"a queue twice", "", "each once", []string{"--queue", "gpu", "--queue", "gpu"}, exitUsage},
		{"a name that cannot be", "", "--name", []string{"--queue", "gpu", "--name", "a/b"}, exitUsage},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("BELFRY_TOKEN", c.token)
			got := belfry(t, "", append([]string{"worker", "--address", address}, c.args...)...)
			if got.code != c.code || !strings.Contains(got.errors, c.says) {
				t.Errorf("code %d: %s, want %d and %q", got.code, got.errors, c.code, c.says)
			}
		})
	}
	for _, args := range [][]string{{"--queue", "a", "--remote-queue", "a"}, {"--remote-queue", "a", "--remote-queue", "a=x"}, {"--remote-queue", "a="}, {"--remote-queue", "a=Acme"}, {"--queue", "a b"}} {
		if got := belfry(t, "", append([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0"}, args...)...); got.code != exitUsage || !strings.Contains(got.errors, "queue") {
			t.Errorf("serve %v: code %d: %s", args, got.code, got.errors)
		}
	}
}
