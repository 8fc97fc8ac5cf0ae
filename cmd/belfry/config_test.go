package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// configured makes a config.toml of a text the one in force, and gives its path.
func configured(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BELFRY_CONFIG", path)
	return path
}

// settingsOf gives what config show shows, by setting: value, a blank, and where it is from.
func settingsOf(t *testing.T, args ...string) map[string]string {
	t.Helper()
	got := belfry(t, "", append([]string{"config", "show", "-o", "json"}, args...)...)
	if got.code != 0 {
		t.Fatalf("config show %v: %d %s", args, got.code, got.errors)
	}
	all := map[string]string{}
	for _, s := range decode[[]shownSetting](t, got.out) {
		all[s.Setting] = s.Value + " " + string(s.From)
	}
	return all
}

const twoProfiles = `
profile = "home"

[profiles.home]
address = "http://home:1"
timezone = "Asia/Tokyo"

[profiles.prod]
address = "https://prod"
token = "secret"  # of the night shift

[serve]
listen = "127.0.0.1:1"
host = ["a", "b"]
allow_exec = true
concurrency = 7
`

func TestFlagsGoBeforeTheEnvironmentAndThatBeforeTheFile(t *testing.T) {
	path := configured(t, twoProfiles)
	want := func(got map[string]string, setting, value string) {
		t.Helper()
		if got[setting] != value {
			t.Errorf("%s is %q, want %q", setting, got[setting], value)
		}
	}
	got := settingsOf(t)
	want(got, "profile", "home file")
	want(got, "address", "http://home:1 file")
	want(got, "timezone", "Asia/Tokyo file")
	want(got, "color", "auto default")
	t.Setenv("BELFRY_ADDRESS", "http://env:2")
	got = settingsOf(t)
	want(got, "address", "http://env:2 environment")
	want(got, "timezone", "Asia/Tokyo file")
	want(settingsOf(t, "--address", "http://flag:3"), "address", "http://flag:3 flag")
	got = settingsOf(t, "--profile", "prod") // it stands on the command line
	want(got, "address", "https://prod file")
	want(got, "token", "******** file")
	t.Setenv("BELFRY_PROFILE", "prod")
	want(settingsOf(t), "profile", "prod environment")

	got = settingsOf(t, "serve")
	want(got, "listen", "127.0.0.1:1 file")
	want(got, "host", "a,b file")
	want(got, "allow_exec", "true file")
	want(got, "concurrency", "7 file")
	t.Setenv("BELFRY_LISTEN", "127.0.0.1:2")
	t.Setenv("BELFRY_HOST", "c,d,e")
	t.Setenv("BELFRY_DATA", "/srv/x")
	got = settingsOf(t, "serve")
	want(got, "listen", "127.0.0.1:2 environment")
	want(got, "host", "c,d,e environment")
	want(got, "data", "/srv/x environment")
	if shown := belfry(t, "", "config", "show", "--profile", "prod").out; !strings.Contains(shown, "file "+path+":10") || strings.Contains(shown, "secret") {
		t.Errorf("shown as\n%s", shown)
	}
	for name, bad := range map[string]string{"BELFRY_OUTPUT": "xml", "BELFRY_TIMEZONE": "Mars/Base", "BELFRY_PROFILE": "none", "BELFRY_ADDRESS": "x"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, bad)
			if got := belfry(t, "", "job", "list"); got.code != exitUsage || !strings.Contains(got.errors, name) || !strings.Contains(got.errors, bad) {
				t.Errorf("%d %s", got.code, got.errors)
			}
		})
	}
}

func TestWhatIsWrongInTheFileIsNamedWithItsLine(t *testing.T) {
	for text, says := range map[string]string{
		"x = 1":                                           ":1: x: no such setting; want profile =",
		"\n[profiles.a]\nadress='x'":                      ":3: profiles.a.adress: no such setting; a profile has address, auth, token, token_file, api_key, api_key_file, aws_profile, aws_region, ca_file, output, color, timezone",
		"[profiles.a]\noutput='xml'":                      ":2: profiles.a.output: --output \"xml\": want table, json, yaml, name or jsonpath=TEMPLATE",
		"[profiles.a]\naddress=''":                        "want a text that is not empty",
		"[profiles.a]\naddress=['x']":                     ":2: profiles.a.address: want a text",
		"[profiles.'a b']\ncolor='x'":                     "want a name of letters, digits, - and _",
		"[servr]\n":                                       ":1: [servr]: no such table; want [profiles.NAME], [dev], [serve], [worker]",
		"[serve]\nlistn='x'":                              ":2: serve.listn: no such setting; serve has ",
		"[serve]\nlog-level='x'":                          ":2: serve.log-level: no such setting",
		"[serve]\nconcurrency='many'":                     ":2: serve.concurrency: ",
		"[serve]\nlisten=['x']":                           ":2: serve.listen: got a list, want one value",
		"[serve]\nhost=[1]":                               ":2: serve.host: want texts",
		"[[serve]]\n":                                     ":1: [[serve]]: want a table in single brackets",
		"a = ":                                            ":1: ",
		"[serve]\nlisten='x'\nlisten='y'":                 ":3: serve.listen: given twice",
		"[serve]\n[dev]\n[serve]\n":                       ":3: [serve]: given twice",
		"profile = 'gone'\n[profiles.here]\ncolor='auto'": `profile "gone" (file `,
		"[profiles.default]\ntoken='x'\ntoken_file='y'":   "want one of them",
	} {
		path := configured(t, text)
		got := belfry(t, "", "job", "list")
		if got.code != exitUsage || !strings.Contains(got.errors, path) || !strings.Contains(got.errors, says) || strings.Count(got.errors, "\n") != 1 {
			t.Errorf("%q: %d %q, want %q", text, got.code, got.errors, says)
		}
		if got := belfry(t, "", "config", "path"); got.code != 0 || got.out != path+"\n" {
			t.Errorf("%q: the path is %d %q %q", text, got.code, got.out, got.errors)
		}
	}
	t.Setenv("BELFRY_CONFIG", filepath.Join(t.TempDir(), "none.toml"))
	if got := belfry(t, "", "cron", "describe", "@daily"); got.code != 0 {
		t.Errorf("without a file: %d %s", got.code, got.errors)
	}
}

func TestTheFileIsChangedAndNothingElseInIt(t *testing.T) {
	path := configured(t, strings.TrimPrefix(twoProfiles, "\n"))
	do := func(code int, stdin string, args ...string) outcome {
		t.Helper()
		got := belfry(t, stdin, append([]string{"config"}, args...)...)
		if got.code != code {
			t.Fatalf("config %v: %d, want %d: %s", args, got.code, code, got.errors)
		}
		return got
	}
	do(0, "", "set", "color", "never")
	do(0, "", "set", "address", "https://new", "--profile", "prod")
	do(0, "blf_x\n", "set", "token", "-", "--profile", "third")
	do(0, "", "set", "serve.host", "x")
	do(0, "", "set", "serve.log_level", "debug")
	do(0, "", "set", "dev.allow_exec", "true")
	do(0, "", "unset", "serve.concurrency")
	do(0, "", "unset", "serve.concurrency")
	do(0, "", "use-profile", "third")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := `profile = "third"

[profiles.home]
address = "http://home:1"
timezone = "Asia/Tokyo"
color = "never"

[profiles.prod]
address = "https://new"
token = "secret"  # of the night shift

[serve]
listen = "127.0.0.1:1"
host = ["x"]
allow_exec = true
log_level = "debug"

[profiles.third]
token = "blf_x"

[dev]
allow_exec = true
`; string(text) != want {
		t.Errorf("the file is\n%s\nwant\n%s", text, want)
	}
	if got := do(0, "", "profiles").out; !strings.Contains(got, "third    yes") {
		t.Errorf("listed as\n%s", got)
	}
	do(exitNotFound, "", "use-profile", "fourth")
	do(exitUsage, "", "set", "address", "nowhere")
	do(exitUsage, "", "set", "serve.lease", "long")
	do(exitUsage, "", "set", "serve.nothing", "x")
	do(exitUsage, "", "set", "job.name", "x")
	do(exitUsage, "", "set", "nothing", "x")
	do(exitUsage, "", "set", "color", "never", "always")
	do(exitUsage, "", "set", "color", "never", "--profile", "a b")
	if again, _ := os.ReadFile(path); string(again) != string(text) {
		t.Errorf("what was refused has changed the file:\n%s", again)
	}

	configured(t, "[serve]\nhost = [\n  \"a\", # of old\n]\n")
	do(0, "", "set", "serve.listen", "127.0.0.1:3")
	if got := settingsOf(t, "serve"); got["listen"] != "127.0.0.1:3 file" || got["host"] != "a file" {
		t.Errorf("got %v", got)
	}
	if got := do(exitFailed, "", "set", "serve.host", "b"); !strings.Contains(got.errors, "edit the file") {
		t.Errorf("got %s", got.errors)
	}
}

func TestANewFileIsForItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "config.toml")
	t.Setenv("BELFRY_CONFIG", path)
	if got := belfry(t, "", "config", "set", "output", "json"); got.code != 0 {
		t.Fatal(got.errors)
	}
	mode := func() os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if mode() != 0o600 {
		t.Errorf("mode %o", mode())
	}
	os.Chmod(path, 0o644)
	if got := belfry(t, "", "version"); got.errors != "" || !strings.HasPrefix(got.out, "{") {
		t.Errorf("a file without a secret: %q, %q", got.errors, got.out)
	}
	if got := belfry(t, "", "config", "set", "token", "x"); got.code != exitUsage || !strings.Contains(got.errors, "want -") {
		t.Errorf("a token on the command line: %d %q", got.code, got.errors)
	}
	belfry(t, "x\n", "config", "set", "token", "-")
	if mode() != 0o600 {
		t.Errorf("a file that got a token has mode %o", mode())
	}
	os.Chmod(path, 0o640)
	if got := belfry(t, "", "version"); got.code != 0 || !strings.Contains(got.errors, "others than its owner get at it (mode 0640): chmod 600 "+path) {
		t.Errorf("%d %q", got.code, got.errors)
	}
}

func TestCredentials(t *testing.T) {
	var sent string
	status := http.StatusOK
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		w.WriteHeader(status)
		w.Write([]byte(`{"items": []}`))
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(io.Discard, nil), slog.LevelInfo)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	strange, _ := selfSigned(t)
	file, empty := write("token", "from-file\n"), write("empty", "\n")
	configured(t, "[profiles.default]\naddress = '"+server.URL+"'\nca_file = '"+ca+"'\ntoken = 'from-profile'\n")
	list := func(code int, says string, args ...string) {
		t.Helper()
		sent = ""
		got := belfry(t, "", append([]string{"job", "list"}, args...)...)
		if got.code != code || !strings.Contains(got.errors, says) {
			t.Errorf("%v: %d %s, want %d and %q", args, got.code, got.errors, code, says)
		}
	}
	list(0, "")
	if sent != "Bearer from-profile" {
		t.Errorf("sent %q", sent)
	}
	list(0, "", "--token-file", file)
	if sent != "Bearer from-file" {
		t.Errorf("sent %q", sent)
	}
	list(exitRefused, "is empty", "--token-file", empty)
	list(exitRefused, "no such file", "--token-file", file+"x")
	list(exitFailed, "holds no certificate", "--ca-file", file)

	status = http.StatusUnauthorized
	list(exitRefused, "The token, from file ")
	status = http.StatusForbidden
	list(exitRefused, "is not enough for this")
	status = http.StatusUnauthorized
	list(exitNoAnswer, "with --ca-file", "--ca-file", write("other.pem", strange))
	// The same server by another name, which might be another server's.
	list(exitRefused, "was not sent to another address", "--address", strings.Replace(server.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1))
	if sent != "" {
		t.Errorf("a profile's token went to another address: %q", sent)
	}
	t.Setenv("BELFRY_TOKEN", "from-environment")
	status = http.StatusOK
	list(0, "")
	if sent != "Bearer from-environment" {
		t.Errorf("sent %q", sent)
	}
	t.Setenv("BELFRY_TOKEN_FILE", file)
	list(exitUsage, "want one of them")
	t.Setenv("BELFRY_TOKEN_FILE", "")
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	if got := belfry(t, "", "job", "list", "--address", "http://belfry.invalid"); !strings.Contains(got.errors, "unencrypted: use https") {
		t.Errorf("over http: %s", got.errors)
	}
	if got := belfry(t, "", "job", "list", "--address", plain.URL); strings.Contains(got.errors, "unencrypted") {
		t.Errorf("on this host: %s", got.errors)
	}
}

// selfSigned is a certificate of 127.0.0.1 that nobody has signed but itself, and its key, as PEM.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	made, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

func TestConfigAloneShowsWhatIsInForce(t *testing.T) {
	configured(t, twoProfiles)
	alone, shown := belfry(t, "", "config"), belfry(t, "", "config", "show")
	if alone.code != 0 || alone.out == "" || alone.out != shown.out {
		t.Errorf("code %d, it shows\n%s%swant\n%s", alone.code, alone.out, alone.errors, shown.out)
	}
	if got := belfry(t, "", "config", "list"); got.code != exitUsage || !strings.Contains(got.errors, `"belfry config list"; want one of path`) {
		t.Errorf("what is no command: %d %s", got.code, got.errors)
	}
}
