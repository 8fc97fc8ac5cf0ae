package gate

// A job with this label has series of its own in the metrics of gates, by the name of its gate, as long as a process has any left.
const (
	SeriesLabel = "belfry.metrics"
	SeriesGate  = "gate"
)

// OwnSeries tells whether a job with these labels asks for series of its own.
func OwnSeries(labels map[string]string) bool { return labels[SeriesLabel] == SeriesGate }

// Series is the name under which metrics have a gate: its own, and before it the tenant, unless that is the default one, since each tenant may have a gate of
// that name.
func (i ID) Series() string {
	if i.Tenant != defaultTenant {
		return i.Tenant + "/" + i.Name
	}
	return i.Name
}

// defaultTenant is the one of whoever says none.
const defaultTenant = "default"
