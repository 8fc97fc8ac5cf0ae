package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// certificateFiles writes cert.pem and key.pem for this machine.
func certificateFiles(t *testing.T, folder string, until time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "belfry"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, raw []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", raw), write("key.pem", "PRIVATE KEY", secret)
}

// serving starts belfry serve in this process and gives its address; it ends with the test.
func serving(t *testing.T, args ...string) (address string) {
	t.Helper()
	return started(t, "serve", args)
}

// newToken makes a token in a folder, and gives all of it.
func newToken(t *testing.T, data string, args ...string) wire.NewToken {
	t.Helper()
	got := belfry(t, "", append([]string{"token", "create", "-o", "json", "--data", data}, args...)...)
	if got.code != 0 {
		t.Fatal(got.errors)
	}
	return decode[wire.NewToken](t, got.out)
}

// A server that others could reach starts only as one that asks them who they are.
func TestServeListensBeyondThisMachineOnlyGuarded(t *testing.T) {
	cert, key := certificateFiles(t, t.TempDir(), time.Now().Add(time.Hour))
	data := t.TempDir()
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"without TLS", []string{"--listen", "0.0.0.0:0"}, 2, "want --tls-cert FILE and --tls-key FILE, or --behind-proxy"},
		{"on all addresses", []string{"--listen", ":0"}, 2, "want --tls-cert FILE and --tls-key FILE, or --behind-proxy"},
		{"with half of TLS", []string{"--listen", "0.0.0.0:0", "--tls-cert", cert}, 2, "want --tls-cert and --tls-key together"},
		{"with TLS and no token", []string{"--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--auth", "required"}, 1, "belfry token create --scope admin --data " + data},
		{"behind a proxy and no token", []string{"--listen", "0.0.0.0:0", "--behind-proxy"}, 1, "belfry token create --scope admin --data " + data},
		{"on loopback behind a proxy and no token", []string{"--behind-proxy"}, 1, "belfry token create --scope admin --data " + data},
		{"with a key that is no key", []string{"--tls-cert", cert, "--tls-key", cert}, 1, "--tls-key " + cert},
		{"with a word that means nothing", []string{"--auth", "none"}, 2, "want auto or required"},
		{"with a rate below nothing", []string{"--rate", "-1"}, 2, "--rate -1: want 0 to 1000000"},
		{"with no burst", []string{"--burst", "0"}, 2, "--burst 0: want 1"},
		{"with room for nobody", []string{"--max-requests", "0"}, 2, "--max-requests 0: want 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			// One that starts after all is stopped, and the test fails.
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
			defer stop()
			var errs lines
			code := run(ctx, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, c.args...), strings.NewReader(""), io.Discard, &errs)
			said, _, _ := strings.Cut(errs.String(), "\n")
			if code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("code %d, %q; want %d and one line with %q", code, errs.String(), c.code, c.says)
			}
		})
	}
}

func TestAServerWithTLSAsksForTokensAndTakesANewCertificate(t *testing.T) {
	folder, data := t.TempDir(), t.TempDir()
	cert, key := certificateFiles(t, folder, time.Now().Add(90*24*time.Hour))
	admin := newToken(t, data, "--scope", "admin")
	address := serving(t, "--data", data, "--tls-cert", cert, "--tls-key", key, "--auth", "required")
	if !strings.HasPrefix(address, "https://") {
		t.Fatalf("it says that it is at %s, want https", address)
	}
	with := func(token string, args ...string) outcome {
		t.Helper()
		file := filepath.Join(folder, "token")
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return belfry(t, "", append(args, "--address", address, "--ca-file", cert, "--token-file", file)...)
	}
	if got := with(admin.Secret, "job", "list"); got.code != 0 {
		t.Errorf("with a token: %d %s", got.code, got.errors)
	}
	if got := belfry(t, "", "job", "list", "--address", address, "--ca-file", cert); got.code != exitRefused {
		t.Errorf("without a token: %d %s, want %d", got.code, got.errors, exitRefused)
	}
	made := with(admin.Secret, "token", "create", "--scope", "read", "--name", "reader", "--expires", "1h", "-o", "json")
	reader := decode[wire.NewToken](t, made.out)
	if got := with(reader.Secret, "job", "pause", "x"); got.code != exitRefused || !strings.Contains(got.errors, "asks for write") {
		t.Errorf("with too little: %d %s", got.code, got.errors)
	}
	if got := with(admin.Secret, "token", "list"); !strings.Contains(got.out, "reader") || strings.Contains(got.out, reader.Secret) {
		t.Errorf("token list: %s", got.out)
	}
	if got := with(admin.Secret, "token", "revoke", reader.ID); got.code != 0 {
		t.Errorf("token revoke: %d %s", got.code, got.errors)
	}
	if got := with(reader.Secret, "job", "list"); got.code != exitRefused || !strings.Contains(got.errors, "was revoked") {
		t.Errorf("with a revoked token: %d %s", got.code, got.errors)
	}

	shown := func() *tls.ConnectionState {
		t.Helper()
		client := &http.Client{Timeout: 5 * time.Minute, Transport: &http.Transport{ForceAttemptHTTP2: true, DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.ProtoMajor != 2 {
			t.Errorf("it speaks %s, want HTTP/2", answer.Proto)
		}
		return answer.TLS
	}
	before := shown().PeerCertificates[0].SerialNumber
	certificateFiles(t, folder, time.Now().Add(90*24*time.Hour))
	eventually(t, "the new certificate is shown", func() (bool, string) { return shown().PeerCertificates[0].SerialNumber.Cmp(before) != 0, "" })
	old := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}
	dialer := tls.Dialer{Config: old}
	if conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(address, "https://")); err == nil {
		conn.Close()
		t.Error("it speaks TLS 1.1")
	}
}

func TestTokensOfAStoppedServerAreThoseOfAllTenants(t *testing.T) {
	data := t.TempDir()
	mine := newToken(t, data, "--scope", "read,run", "--name", "mine", "--expires", "90d")
	theirs := newToken(t, data, "--scope", "admin", "--tenant", "acme")
	if mine.Tenant != "default" || theirs.Tenant != "acme" || mine.ExpiresAt.IsZero() || !slices.Equal(mine.Scopes, []string{"read", "run"}) {
		t.Errorf("made %+v and %+v", mine, theirs)
	}
	listed := func(args ...string) []string {
		t.Helper()
		var ids []string
		for _, token := range decode[[]wire.Token](t, belfry(t, "", append([]string{"token", "list", "-o", "json", "--data", data}, args...)...).out) {
			ids = append(ids, token.ID)
		}
		return ids
	}
	if got := listed(); !slices.Contains(got, mine.ID) || !slices.Contains(got, theirs.ID) || len(got) != 2 {
		t.Errorf("all: %v", got)
	}
	if got := listed("--tenant", "acme"); !slices.Equal(got, []string{theirs.ID}) {
		t.Errorf("of acme: %v, want %s", got, theirs.ID)
	}
	if got := belfry(t, "", "token", "revoke", theirs.ID, "--data", data); got.code != 0 {
		t.Error(got.errors)
	}
	if got := belfry(t, "", "token", "list", "--data", data, "--tenant", "acme"); !strings.Contains(got.out, "revoked") {
		t.Errorf("after it was revoked: %s", got.out)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"create", "--data", data}, 2, "want --scope, one or more of read, run, write, work, admin"},
		{[]string{"create", "--data", data, "--scope", "all"}, 2, `--scope "all": want one of read`},
		{[]string{"create", "--data", data, "--scope", "read", "--expires", "soon"}, 2, "--expires \"soon\": want a duration such as 90d"},
		{[]string{"create", "--data", data, "--scope", "read", "--tenant", "A/b"}, 1, "tenant: got \"A/b\", want"},
		{[]string{"create", "--scope", "read", "--tenant", "acme"}, 2, "--tenant needs --data"},
		{[]string{"revoke", "--data", data, mine.Secret}, 2, "want the ID"},
		{[]string{"revoke", "--data", data, "0123456789abcdef"}, exitNotFound, "no such token"},
		{[]string{"list", "--data", filepath.Join(data, "none")}, 1, "there is no store in"},
	} {
		got := belfry(t, "", append([]string{"token"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.errors, c.says) {
			t.Errorf("token %v: %d %q, want %d and %q", c.args, got.code, got.errors, c.code, c.says)
		}
	}
	dev(t, "--data", data)
	if got := belfry(t, "", "token", "list", "--data", data); got.code != 1 || !strings.Contains(got.errors, "To ask the server that runs there") {
		t.Errorf("while a server has the folder: %d %s", got.code, got.errors)
	}
}

func TestReadinessSeesADiskThatTakesNothing(t *testing.T) {
	d := disk{folder: t.TempDir()}
	if c := d.look(); c.State == wire.CheckFailing {
		t.Fatalf("a folder that can be written: %+v", c)
	}
	if left, err := os.ReadDir(d.folder); err != nil || len(left) > 0 {
		t.Errorf("the look left %v, %v", left, err)
	}
	gone := disk{folder: filepath.Join(d.folder, "gone")}
	if c := gone.look(); c.State != wire.CheckFailing || strings.Contains(c.Detail, gone.folder) {
		t.Errorf("a folder that is gone: %+v, want it failing, without its path", c)
	}
}

func TestACertificateThatIsReplacedPieceByPieceIsUsedWhenItFitsTogether(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	cert, key := certificateFiles(t, folder, time.Now().Add(time.Hour))
	nextCert, nextKey := certificateFiles(t, other, time.Now().Add(time.Hour))
	var log lines
	c, err := readCertificate(cert, key, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	first := c.current().Leaf.SerialNumber
	look := func() *big.Int {
		c.looked = time.Time{}
		return c.current().Leaf.SerialNumber
	}
	for _, step := range []struct {
		from, to string
		changed  bool
	}{{nextCert, cert, false}, {nextKey, key, true}} {
		if err := os.Rename(step.from, step.to); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if changed := look().Cmp(first) != 0; changed != step.changed {
				t.Errorf("after %s was replaced: changed %t, want %t", step.to, changed, step.changed)
			}
		}
	}
	if got := strings.Count(log.String(), "cannot be used"); got != 1 {
		t.Errorf("the log tells %d times of the half that does not fit, want once:\n%s", got, log.String())
	}
}

func TestACertificateThatEndsSoonIsToldOf(t *testing.T) {
	for left, want := range map[time.Duration]string{-30 * time.Minute: wire.CheckAttention, 24 * time.Hour: wire.CheckAttention, 60 * 24 * time.Hour: wire.CheckOK} {
		cert, key := certificateFiles(t, t.TempDir(), time.Now().Add(left))
		c, err := readCertificate(cert, key, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.check(); got.State != want {
			t.Errorf("%s before its end: %+v, want %s", left, got, want)
		}
	}
}

// What /readyz checks, alerts are about: each check has a series.
func TestEachCheckIsAMetric(t *testing.T) {
	address := dev(t, "--data", t.TempDir())
	get := func(path string) string {
		answer, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	ready, shown := decode[wire.Readiness](t, get("/readyz")), get("/metrics")
	for _, c := range ready.Checks {
		if want := fmt.Sprintf("belfry_check_state{check=%q} %d\n", c.Name, slices.Index(checkStates, c.State)); !strings.Contains(shown, want) {
			t.Errorf("/metrics lacks %q", want)
		}
	}
	if len(ready.Checks) < 6 {
		t.Errorf("only %d checks", len(ready.Checks))
	}
}
