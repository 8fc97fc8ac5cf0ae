package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// belfryPeer is the binary, which brings its benchmarks along: the scheduler, its store and its workers in one process.
type belfryPeer struct {
	binary string
	dir    string // for the folders that it makes, and removes

	settings belfrySettings
}

// belfrySettings are what decides the speed of its burn-down.
type belfrySettings struct {
	Workers   int // attempts at once
	Batch     int // runs of one insert
	Inserters int // batches at once
}

// belfryBest are the defaults of `belfry bench burn-down`. They are given as flags, so that what is printed is what is measured.
var belfryBest = belfrySettings{Workers: 1000, Batch: 1000, Inserters: 4}

const belfrySurvives = "all that was acknowledged"

func (s belfrySettings) lines() []string {
	return []string{
		fmt.Sprintf("belfry bench burn-down --workers %d --batch %d --callers %d: attempts at once, runs of one insert, inserts at once", s.Workers, s.Batch, s.Inserters),
		"the queue has room for all runs, as it has in no server; " + garbageRule,
	}
}

func (s belfrySettings) flags() []string {
	return []string{"--workers", strconv.Itoa(s.Workers), "--batch", strconv.Itoa(s.Batch), "--callers", strconv.Itoa(s.Inserters)}
}

// belfryBurnDown is what the harness reads of `belfry bench burn-down --output json`.
type belfryBurnDown struct {
	Runs              int     `json:"runs"`
	ReadBack          int     `json:"read_back"` // runs that its history shows as succeeded
	Batch             int     `json:"batch"`
	Callers           int     `json:"callers"`
	Workers           int     `json:"workers"`
	InsertSeconds     float64 `json:"insert_seconds"`
	InsertPerSecond   float64 `json:"insert_per_second"`
	BurnDownSeconds   float64 `json:"burn_down_seconds"`
	BurnDownPerSecond float64 `json:"burn_down_per_second"`
	Ceiling           ceiling `json:"ceiling"`
}

// belfryInsert is what the harness reads of `belfry bench insert --output json`.
type belfryInsert struct {
	Rows []struct {
		Callers   int     `json:"callers"`
		Via       string  `json:"via"`
		Batch     int     `json:"batch"`
		PerSecond float64 `json:"per_second"`
		P50       float64 `json:"p50_ms"`
		P99       float64 `json:"p99_ms"`
	} `json:"rows"`
}

func parseBurnDown(text []byte, jobs int) (belfryBurnDown, error) {
	var b belfryBurnDown
	if err := json.Unmarshal(text, &b); err != nil {
		return b, fmt.Errorf("belfry bench burn-down: %w", err)
	}
	if b.Runs != jobs || b.ReadBack != jobs {
		return b, fmt.Errorf("belfry bench burn-down has %d of %d runs in its history, want %d", b.ReadBack, b.Runs, jobs)
	}
	if b.InsertSeconds <= 0 || b.BurnDownSeconds <= 0 {
		return b, errors.New("belfry bench burn-down tells no times")
	}
	return b, nil
}

func (b belfryBurnDown) burnt() burnt {
	return burnt{b.Runs, seconds(b.InsertSeconds), seconds(b.BurnDownSeconds)}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// parseInsert gives the rows that peers have too, as figures; batches in process are those of the burn-down.
func parseInsert(text []byte) ([]figure, error) {
	var b belfryInsert
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("belfry bench insert: %w", err)
	}
	found := map[string]bool{}
	var figures []figure
	for _, row := range b.Rows {
		f := figure{measure: singles[row.Callers], inserted: inserted{row.PerSecond, seconds(row.P50 / 1000), seconds(row.P99 / 1000)}}
		if row.Via == "http" {
			f.how = "over HTTP"
		}
		if row.Batch > 1 {
			f = figure{insertBatch, f.how, inserted{perSecond: row.PerSecond}}
		}
		if f.measure != "" && (row.Batch == 1 || f.how != "") {
			figures = append(figures, f)
			found[f.measure+f.how] = true
		}
	}
	for _, measure := range singles {
		if !found[measure] {
			return nil, fmt.Errorf("belfry bench insert does not tell %s", measure)
		}
	}
	return figures, nil
}

func (b belfryPeer) burnDown(ctx context.Context, jobs int) (belfryBurnDown, error) {
	said, err := b.bench(ctx, append([]string{"burn-down", "--runs", strconv.Itoa(jobs)}, b.settings.flags()...)...)
	if err != nil {
		return belfryBurnDown{}, err
	}
	told, err := parseBurnDown(said, jobs)
	if used := (belfrySettings{told.Workers, told.Batch, told.Callers}); err == nil && used != b.settings {
		return told, fmt.Errorf("belfry bench burn-down says that it had %+v, want %+v", used, b.settings)
	}
	return told, err
}

func (b belfryPeer) insert(ctx context.Context) ([]figure, error) {
	said, err := b.bench(ctx, "insert")
	if err != nil {
		return nil, err
	}
	return parseInsert(said)
}

// bench runs one of its benchmarks and gives what it printed.
func (b belfryPeer) bench(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.binary, append(append([]string{"bench"}, args...), "--output", "json")...)
	cmd.Env = append(cmd.Environ(), "TMPDIR="+b.dir)
	// In a group of its own, so that Ctrl-C reaches it once, from here, and it can remove its folder.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	said, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("belfry bench %s: %w: %s", strings.Join(args, " "), err, tail(stderr.String()))
	}
	return said, nil
}
