//go:build !emulators

package sqs_test

import (
	"net/http"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
)

// open gives a Queue over a fresh pool of the fake, through a transport, nil for none. With the tag emulators the same tests run
// against an emulator.
func open(t *testing.T, through func(http.RoundTripper) http.RoundTripper) *sqs.Queue {
	t.Helper()
	var transport http.RoundTripper = pool()
	if through != nil {
		transport = through(transport)
	}
	return over(t, transport)
}
