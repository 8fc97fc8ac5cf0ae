package run

// What a run is asked that had ended badly under strict, and was opened again: it keeps its place at the gate of its job.

// Keeping has a run that was just opened again keep its place at the gate of that key of its job.
func (r Run) Keeping(key string) Run {
	r.GateKey, r.Keeps = key, true
	return r
}

// keptKey is the key of the gate at which the run keeps its place when its claim is taken or given.
func (r Run) keptKey() string {
	if r.Keeps {
		return r.GateKey
	}
	return ""
}

// RanOut tells whether the run has ended since its time was over: it had not started within it, or its deadline has stopped it.
func (r Run) RanOut() bool {
	return r.State == Skipped && r.Why.Code == WhyExpired || r.State == Cancelled && r.Why.Code == WhyDeadline
}
