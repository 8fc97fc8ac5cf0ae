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
	said, err := b.bench(ctx, "burn-down", "--runs", strconv.Itoa(jobs))
	if err != nil {
		return belfryBurnDown{}, err
	}
	return parseBurnDown(said, jobs)
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
