package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/spf13/cobra"

	"github.com/belfry-scheduler/belfry/lib/wire"
	"github.com/belfry-scheduler/belfry/tests/program"
)

// Every example of every command's help is run as it stands, by a shell on a terminal, in a folder that has the files it names,
// against a server that has the job it names. Only what cannot be the same on two machines is exchanged: the IDs of runs and
// tokens, the address to listen on, and the root of absolute paths.
func TestEveryExampleOfTheHelpRuns(t *testing.T) {
	t.Parallel()
	ran := 0
	installed := install(t)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		if cmd.IsAdditionalHelpTopicCommand() {
			return // a text, and no command
		}
		if cmd.HasSubCommands() && cmd.HasParent() && cmd.Example == firstExamples(cmd) {
			return // they are run with the commands that they are of
		}
		examples := exampleLines(cmd.Example)
		ran += len(examples)
		t.Run(cmd.CommandPath(), func(t *testing.T) {
			t.Parallel()
			if len(examples) == 0 {
				t.Fatalf("the help of %q has no example", cmd.CommandPath())
			}
			s := newStage(t, cmd.CommandPath(), installed)
			for _, line := range examples {
				if !onAWS.MatchString(line) {
					s.run(line)
				}
			}
		})
	}
	visit((&cli{stdin: strings.NewReader(""), stdout: io.Discard, stderr: io.Discard, now: time.Now}).root())
	if ran < 50 {
		t.Errorf("only %d examples were found", ran)
	}
}

// onAWS are the examples that want DynamoDB and SQS: tests/processes runs them, on emulators.
var onAWS = regexp.MustCompile(`\b(?:dynamodb|sqs)://`)

// exampleLines are the commands of an example: its lines, put together where one ends with a backslash, without comments.
func exampleLines(example string) []string {
	var lines []string
	for _, line := range strings.Split(strings.ReplaceAll(example, "\\\n", ""), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// installation is what a machine has on which Belfry was used for a while: the data folder of a stopped server, a backup of it,
// a certificate.
type installation struct {
	folder     string // with data, belfry.backup, cert.pem, key.pem
	run, token string // IDs that are in the data
}

func install(t *testing.T) installation {
	t.Helper()
	in := installation{folder: t.TempDir()}
	data := filepath.Join(in.folder, "data")
	t.Run("install", func(t *testing.T) {
		s := &stage{t: t, address: dev(t, "--data", data, "--allow-exec")}
		in.run = s.aRun("report")
	})
	for _, args := range [][]string{
		{"token", "create", "--scope", "admin", "--name", "operator", "--data", data, "-o", "json"},
		{"backup", filepath.Join(in.folder, "belfry.backup"), "--data", data},
	} {
		got := belfry(t, "", args...)
		if got.code != 0 {
			t.Fatalf("%v: %s", args, got.errors)
		}
		if args[0] == "token" {
			in.token = decode[wire.NewToken](t, got.out).ID
		}
	}
	cert, key := selfSigned(t)
	for name, text := range map[string]string{"cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(in.folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return in
}

// stage is where the examples of one command are run, each in a folder of its own.
type stage struct {
	t         *testing.T
	command   string
	installed installation
	address   string // of a server; "" where the examples are not about one
	root      string // stands for / of the machine, and is where the shell stands
}

func newStage(t *testing.T, command string, installed installation) *stage {
	s := &stage{t: t, command: command, installed: installed}
	if !strings.Contains(command, "config") {
		s.address = dev(t, "--data", t.TempDir(), "--allow-exec", "--remote-queue", "gpu", "--aws-target", "arn:aws:lambda:*:*:function:*")
	}
	return s
}

// place makes the folder for one example, with what is there before it.
func (s *stage) place(line string) {
	s.t.Helper()
	s.root = s.t.TempDir()
	s.script("belfry", fmt.Sprintf("BELFRY_TEST_PROCESS=1 exec %q \"$@\"", os.Args[0]))
	for name, text := range exampleScripts {
		s.script(name, text)
	}
	for name, text := range exampleFiles {
		s.file(name, text)
	}
	if err := os.MkdirAll(filepath.Join(s.root, "var", "backups"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	copies := map[string]string{"cert.pem": "cert.pem", "key.pem": "key.pem", "etc/belfry/cert.pem": "cert.pem", "etc/belfry/key.pem": "key.pem"}
	if !strings.HasPrefix(line, "belfry backup") { // which makes it
		copies["belfry.backup"] = "belfry.backup"
	}
	if !strings.HasPrefix(line, "belfry restore") { // which makes a new one
		copies[".belfry"], copies["var/lib/belfry"] = "data", "data"
	}
	for to, from := range copies {
		to, from = filepath.Join(s.root, to), filepath.Join(s.installed.folder, from)
		if err := copyTo(to, from); err != nil {
			s.t.Fatal(err)
		}
	}
	if s.command != "belfry config path" && s.command != "belfry config set" {
		s.file("config.toml", "[profiles.default]\ncolor = \"auto\"\n\n[profiles.prod]\naddress = \"https://belfry.example.org\"\n")
	}
}

// copyTo copies a file or a folder for its owner alone, and without a process for it: there are a thousand.
func copyTo(to, from string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
}

func (s *stage) env() []string {
	env := append(os.Environ(), "PATH="+filepath.Join(s.root, "bin")+":"+os.Getenv("PATH"), "TERM=xterm", "TZ=UTC",
		"BELFRY_CONFIG="+filepath.Join(s.root, "config.toml"), "BELFRY_LISTEN=127.0.0.1:0", "TOKEN=blf_example")
	if s.address != "" {
		env = append(env, "BELFRY_ADDRESS="+s.address)
	}
	return env
}

func (s *stage) file(name, text string) string {
	s.t.Helper()
	path := filepath.Join(s.root, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *stage) script(name, text string) {
	bin := filepath.Join(s.root, "bin")
	if err := errors.Join(os.MkdirAll(bin, 0o700), program.Write(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"))); err != nil {
		s.t.Fatal(err)
	}
}

var (
	exampleRun    = regexp.MustCompile(`\b[a-z][a-z0-9-]*~[0-9a-z~]+`)
	exampleToken  = regexp.MustCompile(`\b[0-9a-f]{16}\b`)
	exampleServer = regexp.MustCompile(`(--address )https://belfry\.example\.org(:7340)?|http://127\.0\.0\.1:7340`)
	exampleListen = regexp.MustCompile(`(--listen[ =])\S+`)
	examplePath   = regexp.MustCompile(`(^|[\s='"@])(/(?:var|etc|srv|tmp|usr|run)/)`)
)

// smallBench makes a benchmark a matter of a moment.
var (
	benchName  = regexp.MustCompile(`^belfry bench (\S+)`)
	smallBench = map[string]string{"burn-down": " --runs 200", "insert": " --for 50ms --batch 20", "lateness": " --rate 0 --ahead 0s --burst 50",
		"scale": " --schedules 200 --due 20 --ticks 5 --edits 5 --in-flight 50", "soak": " --for 3s --every 1s --rate 20 --retention 24h",
		"workflow": " --for 20ms --callers 2"}
)

// run runs one example in a folder of its own.
func (s *stage) run(line string) {
	s.t.Helper()
	s.place(line)
	s.do(line)
}

// do runs a line where the one before it was run, and wants it to end well.
func (s *stage) do(line string) {
	s.t.Helper()
	offline := strings.Contains(line, "--data") || strings.HasPrefix(line, "belfry store")
	same := map[string]string{}
	as := func(id string, made func() string) string {
		if same[id] == "" {
			same[id] = made()
		}
		return same[id]
	}
	if bench := benchName.FindStringSubmatch(line); bench != nil {
		line += smallBench[bench[1]] // the last one of a flag holds
	}
	exchanged := exampleRun.ReplaceAllStringFunc(line, func(id string) string {
		if offline {
			return s.installed.run
		}
		return as(id, func() string { return s.aRun(id) })
	})
	exchanged = exampleToken.ReplaceAllStringFunc(exchanged, func(id string) string {
		if offline {
			return s.installed.token
		}
		return as(id, s.aToken)
	})
	if s.address != "" && exampleServer.MatchString(exchanged) {
		exchanged = strings.Replace(exchanged, " --token-file worker.token", "", 1) // the server asks for none, and refuses one
		exchanged = exampleServer.ReplaceAllString(exchanged, "${1}"+s.address)
	}
	exchanged = exampleListen.ReplaceAllString(exchanged, "${1}127.0.0.1:0")
	exchanged = examplePath.ReplaceAllString(exchanged, "${1}"+s.root+"${2}")
	if s.address != "" {
		s.jobs()
	}
	first := strings.Fields(strings.TrimPrefix(exchanged, "sudo -u belfry "))
	how := endsItself
	switch {
	case len(first) > 1 && first[0] == "belfry" && (slices.Contains(roles, first[1]) || first[1] == "console"):
		how = service
	case slices.Contains(first, "--watch"):
		how = watched
	}
	if out, err := s.shell(exchanged, how); err != nil {
		s.t.Errorf("$ %s\n%v\n%s", line, err, out)
	}
}

// examplePatience bounds one example that hangs.
const examplePatience = 5 * time.Minute

// lasting is what ends only when it is told to: by a service manager, or by Ctrl-C.
type lasting int

const (
	endsItself lasting = iota
	service
	watched
)

// shell runs a line on a terminal whose user says yes to every question. What lasts is ended when it has said that it is there.
func (s *stage) shell(line string, how lasting) (string, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), examplePatience)
	defer cancel()
	if how != endsItself {
		line = "exec " + line
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = s.root, s.env()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 25, Cols: 80})
	if err != nil {
		return "", err
	}
	defer terminal.Close()
	if how == endsItself {
		_, _ = terminal.WriteString("y\n")
	}
	var said lines
	spoke, gone := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(gone)
		block := make([]byte, 4096)
		for {
			n, err := terminal.Read(block)
			said.Write(block[:n])
			if text := said.String(); strings.Contains(text, "ready") || strings.Contains(text, "Ctrl-C") {
				select {
				case spoke <- struct{}{}:
				default:
				}
			}
			if err != nil {
				return // nobody has the terminal any more
			}
		}
	}()
	if how != endsItself {
		select {
		case <-spoke:
			if how == service {
				err = cmd.Process.Signal(syscall.SIGTERM)
			} else {
				_, err = terminal.WriteString("\x03")
			}
		case <-gone:
			err = errors.New("it ended by itself")
		case <-ctx.Done():
			err = errors.New("it does not say that it is there")
		}
	}
	err = errors.Join(err, cmd.Wait())
	<-gone
	return said.String(), err
}

// jobs makes the jobs that examples name be as they are at the beginning.
func (s *stage) jobs() {
	s.t.Helper()
	if got := belfry(s.t, exampleJobs, "job", "apply", "-f", "-", "--address", s.address); got.code != 0 {
		s.t.Fatal(got.errors)
	}
	if s.command == "belfry job history" { // so that there is one to compare with
		if got := belfry(s.t, "", "job", "pause", "report", "--address", s.address); got.code != 0 {
			s.t.Fatal(got.errors)
		}
	}
	if got := belfry(s.t, "Bearer 0123456789", "secret", "set", "hook-token", "--address", s.address); got.code != 0 {
		s.t.Fatal(got.errors)
	}
	if got := belfry(s.t, exampleFiles["gates.yaml"], "gate", "apply", "-f", "-", "--address", s.address); got.code != 0 {
		s.t.Fatal(got.errors)
	}
}

// aRun gives a run in the state that the command is for. as is the ID that the example has for it.
func (s *stage) aRun(as string) string {
	s.t.Helper()
	s.jobs()
	job, until, more := "report", "succeeded", []string{}
	if strings.HasPrefix(as, "etl~") {
		job = "etl"
	}
	switch s.command {
	case "belfry run cancel":
		until, more = "scheduled", []string{"--delay", "1h"}
	case "belfry run release":
		job, until = "serial", "waiting"
		s.trigger(job) // which is in the way
	case "belfry run retry", "belfry dead-letter redrive", "belfry dead-letter discard":
		job, until = "broken", "failed"
	case "belfry gate open":
		job, until = "ledger", "failed"
	}
	r := s.trigger(job, more...)
	eventually(s.t, "the run is "+until, func() (bool, string) {
		got := belfry(s.t, "", "run", "get", r, "-o", "json", "--address", s.address)
		var now wire.Run
		err := json.Unmarshal([]byte(got.out), &now)
		return err == nil && now.State == until, got.out + got.errors
	})
	return r
}

func (s *stage) trigger(job string, more ...string) string {
	s.t.Helper()
	got := belfry(s.t, "", append([]string{"job", "trigger", job, "-o", "json", "--address", s.address}, more...)...)
	if got.code != 0 {
		s.t.Fatal(got.errors)
	}
	return decode[wire.Run](s.t, got.out).ID
}

func (s *stage) aToken() string {
	s.t.Helper()
	got := belfry(s.t, "", "token", "create", "--scope", "read", "-o", "json", "--address", s.address)
	if got.code != 0 {
		s.t.Fatal(got.errors)
	}
	return decode[wire.NewToken](s.t, got.out).ID
}

// exampleJobs are those that stand on the server before each example.
const exampleJobs = `{"jobs": [
{"name": "report", "schedule": {"cron": "0 9 * * *", "timezone": "Europe/Berlin"}, "target": {"exec": {"argv": ["cat"]}}, "labels": {"team": "billing"}},
{"name": "etl", "target": {"workflow": {"steps": {"extract": {"exec": {"argv": ["cat"]}}, "parts": {"needs": ["extract"], "steps": {"index": {"exec": {"argv": ["echo", "done"]}}}}}}}},
{"name": "serial", "target": {"exec": {"argv": ["sleep", "60"]}}, "overlap": "queue"},
{"name": "clean-up", "target": {"exec": {"argv": ["true"]}}},
{"name": "tell-ops", "target": {"exec": {"argv": ["cat"]}}},
{"name": "hello", "target": {"exec": {"argv": ["echo", "hello"]}}},
{"name": "broken", "target": {"exec": {"argv": ["sh", "-c", "echo connection refused; exit 3"], "permanent_exit_codes": [3]}}},
{"name": "ledger", "target": {"exec": {"argv": ["sh", "-c", "exit 3"], "permanent_exit_codes": [3]}}, "overlap": "strict"}]}`

// exampleFiles are those that examples name.
var exampleFiles = map[string]string{
	"job.json":               `{"name": "hello", "schedule": {"every": "1h"}, "target": {"exec": {"argv": ["echo", "hello"]}}}`,
	"gates.yaml":             "name: stripe\nlimit: 10\n",
	"password.txt":           "correct horse\n",
	"secrets.key":            "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY=\n",
	"runs.jsonl":             `{"job": "report", "key": "1", "payload": {"day": "2026-11-20"}}` + "\n",
	"patch.yaml":             "description: nightly figures\n",
	"body.json":              `{"day": "2026-11-21"}`,
	"jobs/report.yaml":       "name: report\ntarget:\n  exec:\n    argv: [cat]\nlabels:\n  team: billing\n",
	"etc/cron.d/sysstat":     "5-55/10 * * * * root true\n",
	"etl.yaml":               exampleWorkflow,
	"outcomes.yaml":          "load: failed\n",
	"job-with-workflow.yaml": "name: etl\nschedule: {cron: \"0 4 * * *\"}\ntarget:\n  workflow:\n    steps: {load: {handler: {name: load}}}\n",
	"cronjobs.yaml":          exampleCronJob,
	"schedules.json":         exampleSchedule,
	"night.yaml":             exampleScenario,
	"scenarios/night.yaml":   exampleScenario,
}

// exampleScripts stand in for programs of the host.
var exampleScripts = map[string]string{
	"crontab":   `printf '0 9 * * * true\n'`,
	"sudo":      `[ "$1" = -u ] && shift 2; exec "$@"`,
	"man":       `test -s "$1"`,
	"age":       `cat`,
	"systemctl": `:`,
	"xdg-open":  `test -s "$1"`,
	"open":      `test -s "$1"`,
	"vi":        `echo 'description: edited' >> "$1"`,
	"kubectl": `case "$1 $2" in
"get cronjobs") printf '%s\n' '` + exampleCronJob + `' ;;
"create job") echo "job.batch/$3 created" ;;
"get job") echo "is:SuccessCriteriaMet Complete" ;;
"logs "*) echo "1742 invoices" ;;
"patch cronjob") echo "cronjob.batch/$3 patched" ;;
esac`,
	"aws": `case "$*" in
*"list-schedules"*) printf 'billing\tnightly\n' ;;
*"get-schedule"*) printf '%s\n' '` + exampleSchedule + `' ;;
*"update-schedule"*) echo '{"ScheduleArn": "arn:aws:scheduler:eu-central-1:123456789012:schedule/billing/nightly"}' ;;
*"lambda invoke"*) echo '{"StatusCode": 202}' ;;
esac`,
}

const exampleWorkflow = `steps:
  extract: {http: {url: "https://example.org/extract"}}
  choose: {needs: [extract], switch: [{when: .input.rows > 1000, to: parts}, {to: load}]}
  parts:
    steps:
      index: {exec: {argv: [index, --all]}}
  load: {exec: {argv: [load]}, retry: {max_attempts: 3}}
  report: {needs: [parts, load], rule: none_failed_min_one_success, handler: {name: report}}
`

// What a cluster and a cloud answer when they are asked for what they fire.
const (
	exampleCronJob = `{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "invoices", "namespace": "billing"}, "spec": {"schedule": "30 6 1 * *",
"timeZone": "Europe/Berlin", "jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "invoices", "image": "registry.example.org/invoices:1.8.2"}]}}}}}}`
	exampleSchedule = `{"GroupName": "billing", "Name": "nightly", "ScheduleExpression": "cron(30 22 ? * MON-FRI *)", "State": "ENABLED",
"Target": {"Arn": "arn:aws:lambda:eu-central-1:123456789012:function:totals", "Input": "{}"}}`
)

const exampleScenario = "start: 2026-01-05T00:00:00Z\nuntil: 1d\njobs: {report: {schedule: {cron: \"0 2 * * *\"}, target: {handler: {name: report}}}}\n"
