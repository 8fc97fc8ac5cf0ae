package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// door is how callers reach a server, and which of them it lets in.
type door struct {
	auth        string
	tlsCert     string
	tlsKey      string
	behindProxy bool
	rate        float64
	burst       int
	requests    int
}

// What --auth may be.
const (
	authAuto     = "auto"
	authRequired = "required"
)

func (d *door) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&d.auth, "auth", authAuto, "`WHOM` to ask for a token: required, all callers; auto, none where only this machine can call")
	f.StringVar(&d.tlsCert, "tls-cert", "", "`FILE` with the certificate and its chain, as PEM; read again when it changes")
	f.StringVar(&d.tlsKey, "tls-key", "", "`FILE` with the certificate's key, as PEM")
	f.BoolVar(&d.behindProxy, "behind-proxy", false, "a proxy in front of this server ends TLS, and tells by X-Forwarded-For who calls")
	f.Float64Var(&d.rate, "rate", 500, "`NUMBER` of requests a second that one token may make; 0 for no limit")
	f.IntVar(&d.burst, "burst", 1000, "`NUMBER` of requests that one token may make at once, before --rate counts")
	f.IntVar(&d.requests, "max-requests", 512, "`NUMBER` of requests under way at once, a batch for 16, those not counted that wait for work")
}

// check refuses what would let in more than was asked for.
func (d *door) check(listen string, loopback bool) error {
	switch {
	case d.auth != authAuto && d.auth != authRequired:
		return misused("--auth %q: want %s or %s", d.auth, authAuto, authRequired)
	case (d.tlsCert == "") != (d.tlsKey == ""):
		return misused("want --tls-cert and --tls-key together: one is of no use without the other")
	case !loopback && d.tlsCert == "" && !d.behindProxy:
		return misused("--listen %s is beyond this machine, where tokens must not travel unencrypted: want --tls-cert FILE and --tls-key FILE, or --behind-proxy where a proxy ends TLS", listen)
	case d.rate < 0 || d.rate > 1e6:
		return misused("--rate %g: want 0 to 1000000", d.rate)
	case d.burst < 1 || d.burst > 1e6:
		return misused("--burst %d: want 1 to 1000000", d.burst)
	case d.requests < 1 || d.requests > 100_000:
		return misused("--max-requests %d: want 1 to 100000", d.requests)
	}
	if !loopback || d.behindProxy {
		d.auth = authRequired
	}
	return nil
}

// gate is what stands in front of the API. A server that asks for tokens does not start before there is one: it would be
// there for nobody, and look well.
func (d door) gate(ctx context.Context, tokens *access.Tokens, place string, log *slog.Logger) (*access.Gate, error) {
	required := d.auth == authRequired
	if required {
		any, err := tokens.Any(ctx)
		if err != nil {
			return nil, err
		}
		if !any {
			return nil, fmt.Errorf("this server asks for tokens, and there is none: make one with \"belfry token create --scope admin %s\", and start again", place)
		}
	}
	return access.NewGate(access.GateConfig{Tokens: tokens, Now: time.Now, Required: required, Rate: d.rate, Burst: d.burst, Requests: d.requests, Log: log})
}

// serveOn serves on a listener, by TLS where there is a certificate. Behind a proxy all connections come from one address.
func serveOn(server *http.Server, listener net.Listener, c *certificate, behindProxy bool) error {
	share := mostConnections / 2
	if behindProxy {
		share = mostConnections
	}
	listener = bounded(listener, mostConnections, share)
	if c == nil {
		return server.Serve(listener)
	}
	server.TLSConfig = c.config()
	return server.ServeTLS(listener, "", "")
}

// certificate is a key pair on disk, which somebody replaces before it expires.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	tried  [2]os.FileInfo // the files that were last read, whether they were good or not
	looked time.Time
}

// lookEvery is how soon a changed certificate is noticed.
const lookEvery = time.Second

func readCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	c.tried = c.files() // before they are read: what replaces them meanwhile is noticed
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", certFile, keyFile, err)
	}
	c.pair, c.looked = &pair, time.Now()
	logExposed(log, "the key of the server's certificate", exposed(keyFile))
	if left := time.Until(pair.Leaf.NotAfter); left < soon {
		log.Warn("the server's certificate "+expiry(left), "file", certFile, "not_after", pair.Leaf.NotAfter)
	}
	return c, nil
}

// files are both as they are now; nil for one that is not there.
func (c *certificate) files() [2]os.FileInfo {
	var found [2]os.FileInfo
	for i, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			found[i] = info
		}
	}
	return found
}

func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < lookEvery {
		return c.pair
	}
	c.looked = time.Now()
	found := c.files()
	if same(found[0], c.tried[0]) && same(found[1], c.tried[1]) {
		return c.pair
	}
	c.tried = found
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		// Perhaps only one of the two is there yet. What was good goes on.
		c.log.Warn("the changed certificate cannot be used; the one before stays in force", "file", c.certFile, "error", err)
		return c.pair
	}
	c.log.Info("the certificate was read again", "file", c.certFile, "not_after", pair.Leaf.NotAfter)
	logExposed(c.log, "the key of the server's certificate", exposed(c.keyFile))
	c.pair = &pair
	return c.pair
}

func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12, // 1.3 where the client has it; ciphers and curves are those that Go keeps up
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

// soon is when somebody should have replaced a certificate.
const soon = 14 * 24 * time.Hour

func expiry(left time.Duration) string {
	if left < 0 {
		return "has expired"
	}
	return fmt.Sprintf("expires in %d days", int(left.Hours()/24))
}

// check tells of a certificate that clients will soon refuse. It is for those who look: the server can do nothing about it.
func (c *certificate) check() wire.Check {
	left := time.Until(c.current().Leaf.NotAfter)
	if left < soon {
		return wire.Check{Name: "certificate", State: wire.CheckAttention, Detail: expiry(left)}
	}
	return wire.Check{Name: "certificate", State: wire.CheckOK, Detail: expiry(left)}
}
