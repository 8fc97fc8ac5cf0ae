// Package prometheus shows a metrics.Registry to Prometheus.
package prometheus

import (
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/belfry-scheduler/belfry/lib/metrics"
)

const (
	maxScrapes = 4                // at a time; more are told to come again
	timeout    = 10 * time.Second // of one scrape: Prometheus's own default
)

// Handler answers scrapes with the registry's metrics and those of the Go runtime and the process.
func Handler(r *metrics.Registry, now func() time.Time) (http.Handler, error) {
	all := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		&collector{registry: r, now: now},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := all.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: timeout}), nil
}

// collector reads the registry at each scrape; it keeps nothing.
type collector struct {
	registry *metrics.Registry
	now      func() time.Time
}

// Describe lists the families.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	c.registry.Each(c.now(), func(f metrics.Family, _ []metrics.Sample) { out <- describe(f) })
}

// Collect gives every series.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.registry.Each(c.now(), func(f metrics.Family, samples []metrics.Sample) {
		desc := describe(f)
		for _, s := range samples {
			m, err := metric(desc, f, s)
			if err != nil {
				m = prometheus.NewInvalidMetric(desc, err)
			}
			out <- m
		}
	})
}

func describe(f metrics.Family) *prometheus.Desc {
	labels := make([]string, len(f.Labels))
	for i, l := range f.Labels {
		labels[i] = l.Name
	}
	return prometheus.NewDesc(f.Name, f.Help, labels, nil)
}

func metric(desc *prometheus.Desc, f metrics.Family, s metrics.Sample) (prometheus.Metric, error) {
	switch f.Kind {
	case metrics.KindHistogram:
		buckets := make(map[float64]uint64, len(f.Bounds))
		for i, bound := range f.Bounds {
			buckets[bound.Seconds()] = s.Histogram.Buckets[i]
		}
		return prometheus.NewConstHistogram(desc, s.Histogram.Count, s.Histogram.Sum.Seconds(), buckets, s.Values...)
	case metrics.KindCounter:
		return prometheus.NewConstMetric(desc, prometheus.CounterValue, s.Value, s.Values...)
	default:
		return prometheus.NewConstMetric(desc, prometheus.GaugeValue, s.Value, s.Values...)
	}
}
