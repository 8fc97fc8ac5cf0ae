package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/metrics"
)

func TestAProcessWithoutAnAPIShowsItsMetrics(t *testing.T) {
	var log lines
	counts := metrics.New()
	s := scrapeFlags{listen: "127.0.0.1:0"}
	end, err := s.open(t.Context(), counts, slog.New(slog.NewJSONHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	var told struct{ Address string }
	if err := json.Unmarshal([]byte(log.String()), &told); err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	counts.Attempts.Inc("succeeded")
	client := http.Client{Timeout: 5 * time.Minute}
	for address, want := range map[string]string{told.Address: "\nbelfry_attempts_total{outcome=\"succeeded\"} 1\n", strings.TrimSuffix(told.Address, "metrics"): "404"} {
		answer, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s, %v, want %s", address, answer.StatusCode, body, err, want)
		}
	}
	end()
	if answer, err := client.Get(told.Address); err == nil {
		answer.Body.Close()
		t.Error("it goes on after its end")
	}
}

func TestWhereMetricsAreShownIsChecked(t *testing.T) {
	engines := " --store dynamodb://belfry-table --queue-url sqs://belfry --blob s3://belfry-blobs"
	for args, want := range map[string]string{
		"worker --queue gpu --metrics-listen 127.0.0.1:7341":     "--metrics-listen is for workers with --store",
		"worker --queue gpu --metrics-listen 7341" + engines:     `--metrics-listen "7341": want HOST:PORT`,
		"tick --metrics-listen 127.0.0.1:port" + engines:         `--metrics-listen "127.0.0.1:port": want HOST:PORT`,
		"tick --once --metrics-listen 127.0.0.1:99999" + engines: "want HOST:PORT",
	} {
		if got := belfry(t, "", strings.Fields(args)...); got.code != exitUsage || !strings.Contains(got.errors, want) {
			t.Errorf("%s: code %d, %s, want %s", args, got.code, got.errors, want)
		}
	}
}
