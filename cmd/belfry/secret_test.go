package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// tells tells in which form a text gives a value away, "" for none.
func tells(text []byte, value string) string {
	for form, shown := range map[string]string{
		"as it is": value,
		"base64":   base64.RawStdEncoding.EncodeToString([]byte(value)),
		"base64+1": base64.RawStdEncoding.EncodeToString([]byte("x" + value))[2:],
		"base64+2": base64.RawStdEncoding.EncodeToString([]byte("xy" + value))[3:],
		"hex":      hex.EncodeToString([]byte(value)),
		"HEX":      strings.ToUpper(hex.EncodeToString([]byte(value))),
		"a part":   value[3 : len(value)-3],
	} {
		shown = shown[:len(shown)-1] // the last letter of base64 may hold bits of what follows
		if bytes.Contains(text, []byte(shown)) {
			return form
		}
	}
	return ""
}

// canaries are the secrets of the test, by name; each comes from a source of its own.
var canaries = map[string]string{
	"from-store": "canary-4f1e9b7c2a", "from-env": "canary-8d03a6e5b1", "from-file": "canary-c7725f90de", "signing": "whsec_Y2FuYXJ5LW9mLXRoZS1zaWduaW5nLWtleS0wMTIz",
}

// plain is no secret: it stands in a job as text, so every search below that finds no canary must find it.
const plain = "plain-6b2d8f4e1c"

// canaryTargets are what a job can call, each telling the secrets that it got in its own way.
func canaryTargets(server string) map[string]string {
	http := func(path string) string {
		return `{"http": {"url": "` + server + path + `", "headers": {"X-Plain": "` + plain + `", "X-Store": {"secret": "from-store"},
			"X-Env": {"secret": "from-env"}, "X-File": {"secret": "from-file"}}, "sign": {"secret": "signing"}}}`
	}
	script := func(text string) string {
		argv, _ := json.Marshal([]string{"/bin/sh", "-c", text})
		return `{"exec": {"argv": ` + string(argv) + `, "env": {"PLAIN": "` + plain + `", "STORE": {"secret": "from-store"},
			"ENV": {"secret": "from-env"}, "FILE": {"secret": "from-file"}, "KEY": {"secret": "signing"}}}}`
	}
	return map[string]string{
		"http-ok": http("/ok"), "http-large": http("/large"), "http-too-large": http("/too-large"), "http-binary": http("/binary"), "http-401": http("/401"), "http-500": http("/500"),
		"http-redirect": http("/redirect"), "http-broken": http("/broken"), "http-nonsense": http("/nonsense"), "http-slow": http("/slow"),
		"http-nobody":  strings.Replace(http("/"), server, "http://127.0.0.1:1", 1),
		"http-refused": strings.Replace(http("/"), server, "http://169.254.169.254", 1),
		"http-missing": strings.Replace(http("/ok"), "from-env", "not-there", 1),
		"exec-ok":      script("env; env >&2"),
		"exec-encoded": script(`for v in "$STORE" "$ENV" "$FILE" "$KEY"; do printf %s "$v" | base64 -w0; printf ' a%s' "$v" | base64 -w0; printf %s "$v" | od -An -tx1 | tr -d ' \n'; echo; done`),
		"exec-fail":    script(`echo "$STORE" "$ENV"; echo "no $FILE $KEY" >&2; exit 3`),
		"exec-killed":  script(`echo "$STORE $ENV $FILE $KEY" >&2; kill -9 $$`),
		"exec-slow":    script(`printf "$STORE $ENV $FILE $KEY"; printf "${STORE%??}" >&2; exec sleep 60`),
		"exec-pieces":  script(`for v in "$STORE" "$ENV" "$FILE"; do for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do printf %s "$v" | cut -c $i | tr -d '\n'; done; echo; done`),
		"exec-start":   strings.Replace(script("true"), "/bin/sh", "/does/not/exist", 1),
		"exec-missing": strings.Replace(script("true"), "from-file", "not-there", 1),
	}
}

// repeater tells its callers what they told it.
func repeater(w http.ResponseWriter, r *http.Request) {
	var told strings.Builder
	_ = r.Header.Write(&told)
	all := told.String()
	switch r.URL.Path {
	case "/ok":
		w.Header().Set("Content-Type", "text/plain; x="+r.Header.Get("X-Store"))
		io.WriteString(w, all)
	case "/large", "/too-large":
		line := strings.ReplaceAll(all, "\n", " ") + "\n"
		lines := target.MaxResultBytes / 2 / len(line) // with what masks put in place of secrets, it is kept
		if r.URL.Path == "/too-large" {
			lines *= 4
		}
		io.WriteString(w, strings.Repeat(line, lines))
	case "/binary":
		io.WriteString(w, "\xff\xfe\x00"+all)
	case "/401":
		http.Error(w, r.Header.Get("X-Env")+all, http.StatusUnauthorized)
	case "/500":
		http.Error(w, r.Header.Get("X-File")+all, http.StatusInternalServerError)
	case "/redirect":
		w.Header().Set("Location", "/"+r.Header.Get("X-Store")+"?"+r.Header.Get("X-Env"))
		w.WriteHeader(http.StatusFound)
	case "/broken":
		w.Header().Set("Content-Length", "100000")
		io.WriteString(w, all)
		panic(http.ErrAbortHandler)
	case "/nonsense":
		conn, _, _ := http.NewResponseController(w).Hijack()
		io.WriteString(conn, "HTTP/1.1 "+r.Header.Get("X-Store")+" "+r.Header.Get("X-Env")+"\r\n"+r.Header.Get("X-File")+"\r\n\r\n")
		conn.Close()
	case "/slow":
		io.WriteString(w, all)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// After every way in which an attempt with secrets can end, no answer of the API, no result of a command, no line of the log at
// its most talkative, no trace, and no byte of the data folder holds one.
func TestSecretsAreNowhereButInTheirTargets(t *testing.T) {
	var seen sync.Map // canaries that arrived
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for header, name := range map[string]string{"X-Store": "from-store", "X-Env": "from-env", "X-File": "from-file"} {
			if r.Header.Get(header) == canaries[name] {
				seen.Store(name, true)
			}
		}
		repeater(w, r)
	}))
	defer server.Close()
	data, secrets := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(secrets, "from-file"), []byte(canaries["from-file"]+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BELFRY_SECRET_FROM_ENV", canaries["from-env"])
	traces := collecting(t)
	t.Setenv("BELFRY_TRACE", "otlp")
	t.Setenv("BELFRY_TRACE_RATIO", "1")
	cmd, address, log := startProcess(t, "--data", data, "--secrets-dir", secrets, "--allow-exec", "--remote-queue", "far", "--log-level", "debug", "--log-format", "json")
	away := exec.Command(os.Args[0], "worker", "--queue", "far", "--address", address, "--allow-exec", "--allow-loopback", "--log-level", "debug")
	var awayLog lines
	away.Env, away.Stdout, away.Stderr = append(os.Environ(), "BELFRY_TEST_PROCESS=1"), &awayLog, &awayLog
	if err := away.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { away.Process.Kill(); away.Wait() })
	var said bytes.Buffer // by all commands and the API
	command := func(stdin string, args ...string) outcome {
		got := belfry(t, stdin, append(args, "--address", address)...)
		fmt.Fprintln(&said, args, got.out, got.errors)
		return got
	}
	for _, name := range []string{"from-store", "signing"} {
		if got := command(canaries[name]+"\n", "secret", "set", name); got.code != 0 {
			t.Fatal(got.errors)
		}
	}
	runs, targets := map[string]string{}, map[string]string{}
	for name, target := range canaryTargets(server.URL) {
		targets[name], targets["far-"+name] = target, target
	}
	for name, target := range targets {
		queue := "default"
		if strings.HasPrefix(name, "far-") {
			queue = "far"
		}
		timeout := "5m" // longer than any machine takes
		if strings.HasSuffix(name, "-slow") {
			timeout = "3s" // which runs out
		}
		job := `{"timeout": "` + timeout + `", "queue": "` + queue + `", "retry": {"max_attempts": 2, "initial": "1ms"}, "target": ` + target + `}`
		if got := command(job, "job", "apply", name, "-f", "-"); got.code != 0 {
			t.Fatal(got.errors)
		}
		got := command("", "job", "trigger", name, "-o", "json")
		if got.code != 0 {
			t.Fatal(got.errors)
		}
		runs[name] = decode[wire.Run](t, got.out).ID
	}
	ended := []string{"succeeded", "failed", "dead"}
	for name, run := range runs {
		var last wire.Run
		eventually(t, name+" has ended", func() (bool, string) {
			got := belfry(t, "", "run", "get", run, "-o", "json", "--address", address)
			last = decode[wire.Run](t, got.out)
			return slices.Contains(ended, last.State), got.out
		})
		wantsSuccess := strings.HasSuffix(name, "-ok") || slices.Contains([]string{"http-large", "http-binary", "exec-encoded", "exec-pieces"}, strings.TrimPrefix(name, "far-"))
		if wantsSuccess != (last.State == "succeeded") {
			t.Errorf("%s: %s: %+v", name, last.State, last.Attempts)
		}
		if len(last.Result) == 0 && wantsSuccess {
			t.Errorf("%s: no result", name)
		}
		command("", "run", "get", run, "-o", "json")
		command("", "run", "get", run)
		command("", "run", "logs", run)
	}
	for name := range targets {
		command("", "job", "get", name, "-o", "json")
		command("", "job", "get", name)
	}
	for _, args := range [][]string{{"job", "list", "-o", "json"}, {"run", "list", "-o", "json"}, {"dead-letter", "list", "-o", "json"}, {"dead-letter", "list"},
		{"secret", "list", "-o", "json"}, {"secret", "list"}, {"secret", "rotate-key"}, {"token", "list"}, {"export"}, {"export", "-o", "json"}} {
		if got := command("", args...); got.code != 0 {
			t.Errorf("%v: %s", args, got.errors)
		}
	}
	for _, path := range []string{"/v1/jobs", "/v1/runs", "/v1/dead-letters", "/v1/secrets", "/v1/workers", "/v1/queues", "/metrics", "/openapi.json", "/readyz", "/v1/backup"} {
		answer, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&said, answer.Body); err != nil || answer.StatusCode != 200 {
			t.Errorf("%s: %d, %v", path, answer.StatusCode, err)
		}
		answer.Body.Close()
	}
	// Killed, so that what stands in the engine's own log is looked at too; then once more after a start and an orderly end.
	places := map[string][]byte{"a command or answer": said.Bytes()}
	away.Process.Signal(syscall.SIGTERM)
	away.Wait()
	places["the log of a worker elsewhere"] = []byte(awayLog.String())
	cmd.Process.Kill()
	cmd.Wait()
	files(t, data, "after a kill, ", places)
	items(t, data, places)
	again, _, log2 := startProcess(t, "--data", data)
	again.Process.Signal(syscall.SIGTERM)
	again.Wait()
	files(t, data, "after a stop, ", places)
	places["the log"] = []byte(log.String() + log2.String())
	places["the traces"] = []byte(traces.String())

	for where, text := range places {
		for name, canary := range canaries {
			if form := tells(text, strings.TrimPrefix(canary, "whsec_")); form != "" {
				t.Errorf("%s tells the secret %s, %s", where, name, form)
			}
		}
	}
	// The search finds what is there.
	for _, where := range []string{"a command or answer", "the store's items"} {
		if tells(places[where], plain) == "" {
			t.Errorf("%s does not even tell a text that is no secret", where)
		}
	}
	for _, word := range []string{`"name":"target http"`, `"name":"target exec"`, `"stringValue":"failed"`, "[secret from-store]"} {
		if !strings.Contains(traces.String(), word) {
			t.Errorf("the traces do not say %s", word)
		}
	}
	for _, word := range []string{"[secret from-store]", "[secret from-env]", "[secret from-file]", "[secret signing]", "secret: not-there: no such secret"} {
		if !strings.Contains(said.String(), word) {
			t.Errorf("nobody says %s", word)
		}
	}
	for _, name := range []string{"from-store", "from-env", "from-file"} {
		if _, ok := seen.Load(name); !ok {
			t.Errorf("the secret %s never arrived", name)
		}
	}
}

// files reads every file below a folder.
func files(t *testing.T, folder, when string, into map[string][]byte) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		into[when+path] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// items reads every item of a stopped server's store, which its files hold compressed.
func items(t *testing.T, data string, into map[string][]byte) {
	t.Helper()
	opened, err := openStore(data, discardLog(), func() time.Time { return time.Unix(0, 0) })
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	var all bytes.Buffer
	if err := opened.Export(context.Background(), func(item store.Item) error {
		fmt.Fprintf(&all, "%s %s\n", item.Key, item.Value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	into["the store's items"] = all.Bytes()
}

func TestSecretsOfTheCommandLine(t *testing.T) {
	address, dir := dev(t, "--data", t.TempDir()), t.TempDir()
	file := filepath.Join(dir, "value")
	if err := os.WriteFile(file, []byte("hush-hush\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		stdin string
		code  int
		says  string // on either stream
	}{
		{[]string{"list"}, "", 0, "NAME"},
		{[]string{"set", "a"}, "hush-hush\n", 0, "created"},
		{[]string{"set", "a", "--from-file", file}, "", 0, "changed"},
		{[]string{"set", "b", "--from-file", "-"}, "hush-hush", 0, "created"},
		{[]string{"set", "c", "--generate"}, "", 0, "whsec_"},
		{[]string{"list"}, "", 0, "\nb "},
		{[]string{"set"}, "", exitUsage, "want SECRET"},
		{[]string{"set", "a", "hush-hush"}, "", exitUsage, "got 2 arguments"},
		{[]string{"set", "a/b"}, "x", exitUsage, "letters"},
		{[]string{"set", "a"}, "", exitUsage, "empty"},
		{[]string{"set", "a"}, "\n", exitUsage, "empty"},
		{[]string{"set", "a"}, strings.Repeat("h", 40_000), exitUsage, "larger than 32 KB"},
		{[]string{"set", "a", "--from-file", filepath.Join(dir, "none")}, "", exitFailed, "no such file"},
		{[]string{"set", "a", "--generate", "--from-file", file}, "", exitUsage, "exclude"},
		{[]string{"delete", "a", "nowhere", "b"}, "", exitNotFound, "nowhere: "},
		{[]string{"rotate-key"}, "", 0, "0"},
	} {
		got := belfry(t, c.stdin, append([]string{"secret", "--address", address}, c.args...)...)
		if all := got.out + got.errors; got.code != c.code || !strings.Contains(all, c.says) || c.args[len(c.args)-1] != "hush-hush" && strings.Contains(all, "hush") {
			t.Errorf("%v: %d, %s%s; want %d and %q", c.args, got.code, got.out, got.errors, c.code, c.says)
		}
	}
	if got := belfry(t, "", "secret", "list", "-o", "json", "--address", address); len(decode[[]wire.Secret](t, got.out)) != 1 {
		t.Errorf("left is %s, want c alone", got.out)
	}
}

func TestKeysForSecretsAreMadeAndRotated(t *testing.T) {
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "secrets.key")
	newKey := func() {
		if got := belfry(t, "", "secret", "new-key", file); got.code != 0 {
			t.Fatal(got.errors)
		}
	}
	newKey()
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of keys has the mode %v, %v", info.Mode(), err)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cmd, address, _ := startProcess(t, "--data", data, "--secrets-key-file", file)
	if got := belfry(t, "hush-hush", "secret", "set", "a", "--address", address); got.code != 0 {
		t.Fatal(got.errors)
	}
	newKey()
	if got := belfry(t, "", "secret", "rotate-key", "-o", "json", "--address", address); got.code != 0 || decode[wire.KeyRotation](t, got.out).Encrypted != 1 {
		t.Errorf("rotation: %d, %s%s", got.code, got.out, got.errors)
	}
	if err := os.WriteFile(file, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := belfry(t, "", "secret", "rotate-key", "--address", address); got.code != exitConflict || !strings.Contains(got.errors, "line 1 is no key") {
		t.Errorf("rotation to nonsense: %d, %s", got.code, got.errors)
	}
	if got := belfry(t, "", "secret", "new-key", file); got.code != exitFailed || !strings.Contains(got.errors, "line 1 is no key") {
		t.Errorf("a key before nonsense: %d, %s", got.code, got.errors)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if got := belfry(t, "", "dev", "--data", data, "--listen", "127.0.0.1:0", "--secrets-key-file", file); got.code != exitFailed || !strings.Contains(got.errors, file) {
		t.Errorf("a start with nonsense: %d, %s", got.code, got.errors)
	}
	// Under the first key alone, attempts say which one is missing.
	if err := os.WriteFile(file, first, 0o600); err != nil {
		t.Fatal(err)
	}
	_, address, _ = startProcess(t, "--data", data, "--secrets-key-file", file, "--allow-exec")
	job := `{"retry": {"max_attempts": 1}, "target": {"exec": {"argv": ["true"], "env": {"A": {"secret": "a"}}}}}`
	if got := belfry(t, job, "job", "apply", "j", "-f", "-", "--address", address); got.code != 0 {
		t.Fatal(got.errors)
	}
	run := decode[wire.Run](t, belfry(t, "", "job", "trigger", "j", "-o", "json", "--address", address).out).ID
	eventually(t, "the attempt fails for want of a key", func() (bool, string) {
		got := belfry(t, "", "run", "get", run, "--address", address)
		return strings.Contains(got.out, "secret: a: it is sealed under the key"), got.out
	})
	if got := belfry(t, "x", "secret", "set", "b", "--address", address); got.code != 0 {
		t.Errorf("under the first key: %s", got.errors)
	}
}

func TestServeKeepsNoSecretsWithoutAKey(t *testing.T) {
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{
		"--secrets-dir " + file + ": want a folder": {"--secrets-dir", file},
		"--secrets-dir: stat " + folder + "/none":   {"--secrets-dir", folder + "/none"},
		"no such file": {"--secrets-key-file", folder + "/none"},
		`want an address such as 192.0.2.7 or fd00::7, or a network`: {"--allow-address", "example.org"},
		"want the network 10.0.0.0/8, or the address 10.0.0.1":       {"--deny-address", "10.0.0.1/8"},
	} {
		if got := belfry(t, "", append([]string{"serve", "--data", t.TempDir(), "--listen", "127.0.0.1:0"}, args...)...); got.code == 0 || !strings.Contains(got.errors, says) {
			t.Errorf("%v: %d, %s", args, got.code, got.errors)
		}
	}
	cmd := exec.Command(os.Args[0], "serve", "-o", "json", "--data", t.TempDir(), "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "BELFRY_TEST_PROCESS=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	var started struct{ Address string }
	if err := json.NewDecoder(out).Decode(&started); err != nil {
		t.Fatal(err)
	}
	if got := belfry(t, "hush-hush", "secret", "set", "a", "--address", started.Address); got.code != exitConflict || !strings.Contains(got.errors, "--secrets-key-file") {
		t.Errorf("without a key: %d, %s", got.code, got.errors)
	}
}

func TestASecretIsTypedUnseen(t *testing.T) {
	address := dev(t, "--data", t.TempDir(), "--allow-exec")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "secret", "set", "a", "--address", address)
	cmd.Env = append(os.Environ(), "BELFRY_TEST_PROCESS=1")
	terminal, user, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	shows, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = user, user, user
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	user.Close()
	var said bytes.Buffer
	block := make([]byte, 1024)
	typed := false
	for {
		n, err := terminal.Read(block)
		said.Write(block[:n])
		if !typed && strings.Contains(said.String(), "Value of a: ") {
			typed = true
			eventually(t, "the terminal shows nothing that is typed", func() (bool, string) {
				now, err := term.GetState(int(terminal.Fd()))
				return err == nil && !reflect.DeepEqual(now, shows), said.String()
			})
			if _, err := terminal.WriteString("hush-hush\n"); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil {
			break // the terminal has no user any more
		}
	}
	if err := cmd.Wait(); err != nil || strings.Contains(said.String(), "hush") || !strings.Contains(said.String(), "created") {
		t.Errorf("%v, on the terminal: %q", err, said.String())
	}
	job := `{"target": {"exec": {"argv": ["sh", "-c", "test \"$A\" = hush-hush"], "env": {"A": {"secret": "a"}}}}}`
	if got := belfry(t, job, "job", "apply", "j", "-f", "-", "--address", address); got.code != 0 {
		t.Fatal(got.errors)
	}
	run := decode[wire.Run](t, belfry(t, "", "job", "trigger", "j", "-o", "json", "--address", address).out).ID
	eventually(t, "the command got what was typed", func() (bool, string) {
		got := belfry(t, "", "run", "get", run, "--address", address)
		return strings.Contains(got.out, "state      succeeded"), got.out
	})
}
