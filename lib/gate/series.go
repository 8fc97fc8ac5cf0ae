package gate

// A job with this label has series of its own in the metrics of gates, by the name of its gate, as long as a process has any left.
const (
	SeriesLabel = "belfry.metrics"
	SeriesGate  = "gate"
)

// OwnSeries tells whether a job with these labels asks for series of its own.
func OwnSeries(labels map[string]string) bool { return labels[SeriesLabel] == SeriesGate }
