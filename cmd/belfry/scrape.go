package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/metrics/prometheus"
)

// scrapeFlags are of processes that count, and have no API to show it by.
type scrapeFlags struct{ listen string }

func (s *scrapeFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.listen, "metrics-listen", "", "`HOST:PORT` at which /metrics shows this process's counts to Prometheus, with --store; it asks for no token. By default there is none")
}

func (s *scrapeFlags) check() error {
	if s.listen == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(s.listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return misused("--metrics-listen %q: want HOST:PORT, as in 127.0.0.1:7341, the port 0 to 65535", s.listen)
	}
	return nil
}

// open shows the registry until end is called.
func (s *scrapeFlags) open(ctx context.Context, registry *metrics.Registry, log *slog.Logger) (end func(), err error) {
	if s.listen == "" {
		return func() {}, nil
	}
	shown, err := prometheus.Handler(registry, time.Now)
	if err != nil {
		return nil, err
	}
	listener, err := listen(ctx, s.listen)
	if err != nil {
		return nil, err
	}
	paths := http.NewServeMux()
	paths.Handle("GET /metrics", shown)
	server := api.Server(paths, log)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	log.Info("metrics are shown", "address", "http://"+listener.Addr().String()+"/metrics")
	return func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			log.Warn("metrics were not shown to the end", "error", err)
		}
	}, nil
}
