package main

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestWhereTracesGoIsChecked(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--trace jaeger", `--trace "jaeger": want none, xray or otlp`},
		{"--trace xray --trace-ratio 1.5", "--trace-ratio 1.5: want 0 to 1"},
		{"--trace-ratio often", "--trace-ratio"},
	} {
		got := belfry(t, "", append([]string{"dev", "--data", t.TempDir(), "--listen", "127.0.0.1:0"}, strings.Fields(c.args)...)...)
		if got.code != exitUsage || !strings.Contains(got.errors, c.want) {
			t.Errorf("%s: code %d, %s, want %s", c.args, got.code, got.errors, c.want)
		}
	}
	t.Setenv("AWS_XRAY_DAEMON_ADDRESS", "nowhere")
	if got := belfry(t, "", "dev", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--trace", "xray"); got.code != exitFailed || !strings.Contains(got.errors, "want HOST:PORT") {
		t.Errorf("code %d, %s", got.code, got.errors)
	}
}

// daemon takes what is sent to X-Ray's, and has processes send it there.
func daemon(t *testing.T) *lines {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got, done := new(lines), make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 64<<10)
		for {
			n, _, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, document, _ := strings.Cut(string(buffer[:n]), "\n")
			_, _ = got.Write([]byte(document + "\n"))
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	t.Setenv("AWS_XRAY_DAEMON_ADDRESS", conn.LocalAddr().String())
	return got
}

// TestAServerSendsTraces asks one for a run, and waits for its attempt where X-Ray's daemon would be.
func TestAServerSendsTraces(t *testing.T) {
	traces := daemon(t)
	hook := started(t, "dev", []string{"--data", t.TempDir()}) // any server that answers
	address := started(t, "dev", []string{"--data", t.TempDir(), "--trace", "xray", "--trace-ratio", "1"})
	for _, args := range [][]string{{"job", "apply", "asked", "-f", "-"}, {"job", "trigger", "asked"}} {
		spec := `{"target": {"http": {"url": "` + hook + `/healthz", "method": "GET"}}}`
		if got := belfry(t, spec, append(args, "--address", address)...); got.code != exitOK {
			t.Fatalf("%v: %s", args, got.errors)
		}
	}
	eventually(t, "the attempt was told of", func() (bool, string) {
		for document := range strings.Lines(traces.String()) {
			var segment struct {
				Name        string         `json:"name"`
				Annotations map[string]any `json:"annotations"`
			}
			if err := json.Unmarshal([]byte(document), &segment); err != nil {
				t.Fatal(err)
			}
			if a := segment.Annotations; a["operation"] == "attempt" {
				if segment.Name != "belfry" || a["job"] != "asked" || a["outcome"] != "succeeded" {
					t.Errorf("got %s", document)
				}
				return true, ""
			}
		}
		return false, traces.String()
	})
}

// TestARequestHasAName, by which its lines in the log are found.
func TestARequestHasAName(t *testing.T) {
	address := dev(t, "--data", t.TempDir())
	client := http.Client{Timeout: 5 * time.Minute}
	answer, err := client.Get(address + "/v1/jobs")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.Header.Get("X-Request-Id") == "" {
		t.Errorf("got %v", answer.Header)
	}
}
