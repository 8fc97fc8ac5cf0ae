package simulate

// Expectation is the part of a report that a scenario expects.
type Expectation struct{}
