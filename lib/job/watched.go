package job

// A job with this label has a series of its own in the metrics: when it last succeeded.
const (
	AlertLabel   = "belfry.alert"
	AlertSuccess = "success"
)

// Watched tells whether the job asks for that series.
func (d Definition) Watched() bool { return d.Labels[AlertLabel] == AlertSuccess }
