package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// The flags reach the connections that attempts make.
func TestAddressesOfTheCommandLineHold(t *testing.T) {
	var hits atomic.Int32
	count := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	server := httptest.NewServer(count)
	defer server.Close() // on 127.0.0.1
	type row struct {
		args []string
		url  string
		says string // "" where the call arrives
	}
	rows := []row{
		{nil, server.URL, ""},
		{[]string{"--deny-address", "127.0.0.0/30"}, server.URL, "127.0.0.1 is an address of --deny-address"},
		{[]string{"--deny-address", "127.0.0.0/30,10.0.0.0/8", "--allow-address", "127.0.0.1"}, server.URL, ""},
		{[]string{"--allow-loopback=false"}, server.URL, "127.0.0.1 is a loopback address, which this worker's operator does not allow (--allow-loopback)"},
		{[]string{"--deny-private"}, "http://10.0.0.1", "10.0.0.1 is a private address, which this worker's operator does not allow (--deny-private)"},
		{nil, "http://169.254.169.254", "a metadata service's address"},
		{[]string{"--allow-address", "0.0.0.0/0"}, "http://198.18.0.1", "an address for benchmarks"},
	}
	if near := onAnInterface(t, count); near != "" {
		rows = append(rows, row{nil, near, ""}, row{[]string{"--allow-loopback=false"}, near, "an address of this host, which this worker's operator does not allow (--allow-loopback)"})
	}
	for _, c := range rows {
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

// onAnInterface serves on a private address of this host beside loopback, and gives its URL; "" where the host has none.
func onAnInterface(t *testing.T, handler http.Handler) string {
	t.Helper()
	networks, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	own := make([]netip.Addr, 0, len(networks))
	for _, network := range networks {
		own = append(own, netip.MustParsePrefix(network.String()).Addr())
	}
	at := slices.IndexFunc(own, netip.Addr.IsPrivate)
	if at < 0 {
		return ""
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", netip.AddrPortFrom(own[at], 0).String())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}
