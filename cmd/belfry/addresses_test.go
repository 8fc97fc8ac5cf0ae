package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// The flags reach the connections that attempts make.
func TestAddressesOfTheCommandLineHold(t *testing.T) {
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer server.Close() // on 127.0.0.1
	for _, c := range []struct {
		args []string
		url  string
		says string // "" where the call arrives
	}{
		{nil, server.URL, ""},
		{[]string{"--deny-address", "127.0.0.0/30"}, server.URL, "127.0.0.1 is an address of --deny-address"},
		{[]string{"--deny-address", "127.0.0.0/30,10.0.0.0/8", "--allow-address", "127.0.0.1"}, server.URL, ""},
		{[]string{"--allow-loopback=false"}, server.URL, "127.0.0.1 is a loopback address, which this worker's operator does not allow (--allow-loopback)"},
		{[]string{"--deny-private"}, "http://10.0.0.1", "10.0.0.1 is a private address, which this worker's operator does not allow (--deny-private)"},
		{nil, "http://169.254.169.254", "a metadata service's address"},
		{[]string{"--allow-address", "0.0.0.0/0"}, "http://198.18.0.1", "an address for benchmarks"},
	} {
		address := dev(t, append([]string{"--data", t.TempDir()}, c.args...)...)
		before := hits.Load()
		job := `{"retry": {"max_attempts": 1}, "target": {"http": {"url": "` + c.url + `"}}}`
		if got := belfry(t, job, "job", "apply", "j", "-f", "-", "--address", address); got.code != 0 {
			t.Fatal(got.errors)
		}
		run := decode[wire.Run](t, belfry(t, "", "job", "trigger", "j", "-o", "json", "--address", address).out).ID
		want := "state      failed"
		if c.says == "" {
			want = "state      succeeded"
		}
		eventually(t, strings.Join(c.args, " "), func() (bool, string) {
			got := belfry(t, "", "run", "get", run, "--address", address)
			return strings.Contains(got.out, want) && strings.Contains(got.out, c.says), got.out
		})
		if arrived := hits.Load() > before; arrived != (c.says == "") {
			t.Errorf("%v: arrived %t", c.args, arrived)
		}
	}
}
