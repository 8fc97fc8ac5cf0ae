package lease

import "strings"

// farMark stands between the name of a worker elsewhere and its own number of a start.
const farMark = "/"

// Far tells whether a lease is held by a worker in another process, which outlives the end of this one.
func Far(holder string) bool { return strings.Contains(holder, farMark) }
