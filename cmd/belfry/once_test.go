package main

import (
	"net"
	"syscall"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// A server that is stopped while a call still greets its target gives the run back, also at most once: nothing was sent. Where the request
// was sent it is unknown.
func TestP5_Fault38_AStopBeforeAnythingWasSentHandsBackAtMostOnce(t *testing.T) {
	for scheme, want := range map[string]string{"https": "handed_back", "http": "crashed"} {
		t.Run(scheme, func(t *testing.T) {
			listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			reached := make(chan struct{}, 10)
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					go func() {
						defer conn.Close()
						_, _ = conn.Read(make([]byte, 4096))
						reached <- struct{}{}
						<-t.Context().Done()
					}()
				}
			}()
			data := t.TempDir()
			cmd, address, log := startProcess(t, "--data", data, "--grace", "1s")
			call := to(t, address)
			call(0, `{"guarantee": "at_most_once", "timeout": "1h", "target": {"http": {"url": "`+scheme+`://`+listener.Addr().String()+`"}}}`, "job", "apply", "a", "-f", "-")
			r := decode[wire.Run](t, call(0, "", "job", "trigger", "a", "-o", "json").out)
			<-reached
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatalf("it stopped with %v\n%s", err, log.String())
			}
			_, address, _ = startProcess(t, "--data", data)
			got := decode[wire.Run](t, to(t, address)(0, "", "run", "get", r.ID, "-o", "json").out)
			if len(got.Attempts) == 0 || got.Attempts[0].Outcome != want || (got.State == "unknown") != (want == "crashed") {
				t.Errorf("it is %s, with %+v; want its first attempt %s", got.State, got.Attempts, want)
			}
			if want == "handed_back" {
				<-reached // it is called again
			}
		})
	}
}
