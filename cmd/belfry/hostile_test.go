package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// These are the promises of a server towards whoever may write a job, or only send a request, tried on the program as it is.

// A target that answers 101 hands over its connection, and says nothing on it: the attempt ends all the same, and so does the server.
func TestATargetThatSwitchesProtocolsHoldsNothing(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: anything\r\n\r\n")
				<-t.Context().Done()
			}()
		}
	}()
	cmd, address, log := startProcess(t, "--data", t.TempDir())
	job := `{"retry": {"max_attempts": 1}, "timeout": "1h", "target": {"http": {"url": "http://` + listener.Addr().String() + `"}}}`
	if got := belfry(t, job, "job", "apply", "a", "-f", "-", "--address", address); got.code != 0 {
		t.Fatal(got.errors)
	}
	for range 60 { // more than there are places for
		if got := belfry(t, "", "job", "trigger", "a", "--address", address); got.code != 0 {
			t.Fatal(got.errors)
		}
	}
	if got := belfry(t, "", "job", "trigger", "a", "--wait", "--address", address); !strings.Contains(got.out+got.errors, "answered 101 Switching Protocols") {
		t.Errorf("it ended as %s%s", got.out, got.errors)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it stopped with %v\n%s", err, log.String())
	}
}

// Bodies as large as a request may be, wrong from the beginning to the end, three at once.
func TestP11_HostileBodiesCostLittle(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("only Linux tells how much memory a process has taken")
	}
	cmd, address, _ := startProcess(t, "--data", t.TempDir())
	const size = 16<<20 - 100
	fill := func(first, format, last string) []byte {
		body := bytes.NewBufferString(first)
		for i := 0; body.Len() < size; i++ {
			fmt.Fprintf(body, format, i)
		}
		return append(bytes.TrimSuffix(body.Bytes(), []byte(",")), last...)
	}
	bodies := [][]byte{
		fill("{", `"%d":0,`, "}"), fill(`{"labels":{`, `"k%d":"",`, "}}"), fill(`{"target":{"exec":{"argv":[`, `"%d",`, "]}}}"),
		fill(`{"jobs":[`, `{"n%d":1},`, "]}"), fill(`{"payload":[`, "[%d],", "]}"), fill("{", `"a":{"a":{"a":{"%d":[`, ""),
	}
	for p, path := range []string{"/v1/jobs/a", "/v1/jobs/batch", "/v1/runs/batch", "/v1/runs/cancel", "/v1/jobs/a/runs"} {
		method := map[bool]string{true: http.MethodPut, false: http.MethodPost}[path == "/v1/jobs/a"]
		for b, body := range bodies {
			if testing.Short() && (p+b)%3 != 0 {
				continue // each path, and each body
			}
			var together sync.WaitGroup
			for range 3 {
				together.Go(func() {
					req, err := http.NewRequestWithContext(t.Context(), method, address+path, bytes.NewReader(body))
					if err != nil {
						t.Error(err)
						return
					}
					req.Header.Set("Content-Type", "application/json")
					answer, err := http.DefaultClient.Do(req)
					if err != nil {
						return // it may hang up on what is larger than it takes
					}
					defer answer.Body.Close()
					n, _ := io.Copy(io.Discard, answer.Body)
					if most := int64(len(body)*4 + 64<<10); n > most || answer.StatusCode < 400 && path != "/v1/jobs/a/runs" {
						t.Errorf("%s %s with %.30s…: %s, %d bytes", method, path, body, answer.Status, n)
					}
				})
			}
			together.Wait()
		}
	}
	kilobytes, err := peak(cmd.Process.Pid)
	t.Logf("%d MB at the most", kilobytes>>10)
	if err != nil || kilobytes > 1_500_000 {
		t.Errorf("it took %d MB, %v; want at most 1,500", kilobytes>>10, err)
	}
}

// A ticket opens nothing but the attempt that it was given for, whoever made it up; and that one goes on over a kill of the server.
func TestP6_ATicketIsNotMadeUp(t *testing.T) {
	data := t.TempDir()
	server, address, _ := startProcess(t, "--data", data, "--remote-queue", "far")
	type answer struct {
		Items       []struct{ Run, Ticket string }
		Run, Ticket string
		Fence       uint64
		Code, State string
		Errors      []struct{ Field string }
	}
	post := func(path string, body map[string]any) (int, answer) {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+path, bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		got, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		var a answer
		if err := json.NewDecoder(got.Body).Decode(&a); err != nil && got.StatusCode != http.StatusNoContent {
			t.Fatalf("%s: %s, %v", path, got.Status, err)
		}
		return got.StatusCode, a
	}
	job := `{"queue": "far", "guarantee": "at_most_once", "target": {"http": {"url": "https://example.org/"}}}`
	if got := belfry(t, job, "job", "apply", "a", "-f", "-", "--address", address); got.code != 0 {
		t.Fatal(got.errors)
	}
	attempt := func(name string) map[string]any {
		t.Helper()
		if got := belfry(t, "", "job", "trigger", "a", "--address", address); got.code != 0 {
			t.Fatal(got.errors)
		}
		status, taken := post("/v1/work/take", map[string]any{"queue": "far", "worker": name, "max": 1, "wait": "20s", "http": true})
		if status != 200 || len(taken.Items) != 1 {
			t.Fatalf("take: %d %+v", status, taken)
		}
		offer := taken.Items[0]
		status, begun := post("/v1/work/start", map[string]any{"run": offer.Run, "ticket": offer.Ticket, "worker": name, "start": "1"})
		if status != 200 || begun.Ticket == "" {
			t.Fatalf("start: %d %+v", status, begun)
		}
		return map[string]any{"run": offer.Run, "fence": begun.Fence, "worker": name, "start": "1", "ticket": begun.Ticket}
	}
	mine, theirs := attempt("w-1"), attempt("w-2")
	with := func(claim map[string]any, more ...any) map[string]any {
		changed := maps.Clone(claim)
		for i := 0; i < len(more); i += 2 {
			changed[more[i].(string)] = more[i+1]
		}
		return changed
	}
	refuses := func() {
		t.Helper()
		for what, ticket := range map[string]string{"an empty one": "", "a word": "ticket", "a made-up one": strings.Repeat("QUJD", 60), "bytes": "\x00\xff",
			"another run's": theirs["ticket"].(string), "a part": mine["ticket"].(string)[:40], "one and more": mine["ticket"].(string) + "AAAA"} {
			claim, end, leave := with(mine, "ticket", ticket), with(mine, "ticket", ticket, "outcome", "succeeded"), with(mine, "ticket", ticket, "reason", "busy")
			begin := with(mine, "ticket", ticket)
			delete(begin, "fence")
			delete(leave, "fence")
			for path, body := range map[string]map[string]any{"renew": claim, "finish": end, "start": begin, "leave": leave} {
				status, got := post("/v1/work/"+path, body)
				empty := status == 400 && got.Code == "malformed" && len(got.Errors) == 1 && got.Errors[0].Field == "ticket"
				if made := status == 403 && got.Code == "wrong_ticket"; ticket == "" && !empty || ticket != "" && !made {
					t.Errorf("%s with %s: %d %+v", path, what, status, got)
				}
			}
		}
		if got := belfry(t, "", "run", "get", mine["run"].(string), "-o", "json", "--address", address); !strings.Contains(got.out, `"state": "running"`) {
			t.Errorf("the run afterwards: %s%s", got.out, got.errors)
		}
		if status, got := post("/v1/work/renew", mine); status != 200 {
			t.Errorf("the right ticket renews: %d %+v", status, got)
		}
	}
	refuses()
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	_, address, _ = startProcess(t, "--data", data, "--remote-queue", "far")
	refuses()
	for range 2 { // an end whose answer was lost
		if status, got := post("/v1/work/finish", with(mine, "outcome", "succeeded")); status != 200 || got.State != "succeeded" {
			t.Errorf("the right ticket finishes: %d %+v", status, got)
		}
	}
	if status, got := post("/v1/work/renew", mine); status != 409 || got.Code != "fenced" {
		t.Errorf("after the end: %d %+v, want it fenced", status, got)
	}
}

// Jobs as large as they may be, most of whose bytes take six in an answer: no page of them is larger than one may be, and every command
// that reads them has all of them.
func TestP11_ManyLargeJobsBreakNoList(t *testing.T) {
	t.Parallel()
	cmd, address, _ := startProcess(t, "--data", t.TempDir(), "--allow-exec")
	call := to(t, address)
	const jobs, maxArgs, maxPage, maxItem = 60, 64<<10 - 8, 8_000_000, 500_000
	labels := map[string]string{}
	for i := range 31 {
		labels[fmt.Sprintf("label-%0122d", i)] = strings.Repeat("\x01", 128)
	}
	labels["team"] = "a"
	all := make([]map[string]any, jobs)
	for i := range all {
		all[i] = map[string]any{
			"name": fmt.Sprintf("large-%03d-%s", i, strings.Repeat("n", 118)), "description": strings.Repeat("\x01", 1024), "labels": labels, "payload": strings.Repeat("p", 8<<10-2),
			"target": map[string]any{"exec": map[string]any{"argv": []string{"/bin/true", strings.Repeat("\x01", maxArgs-len("/bin/true"))}, "dir": "/" + strings.Repeat("\x01", 4095)}},
		}
	}
	names := func(what string, got []wire.Job) {
		t.Helper()
		for i, j := range got {
			if j.Name != all[i]["name"] || len(got) != jobs {
				t.Fatalf("%s: %d jobs, and %.12s where %.12s is wanted", what, len(got), j.Name, all[i]["name"])
			}
		}
		if len(got) != jobs {
			t.Fatalf("%s: %d jobs, want %d", what, len(got), jobs)
		}
	}
	for chunk := range slices.Chunk(all, 10) {
		text, err := json.Marshal(map[string]any{"jobs": chunk})
		if err != nil {
			t.Fatal(err)
		}
		if got := call(0, string(text), "job", "apply", "-f", "-"); strings.Count(got.out, "created") != len(chunk) {
			t.Fatal(got.out)
		}
		var verdicts wire.JobVerdicts
		if size := ask(t, http.MethodPost, address+"/v1/jobs/batch?dry_run=true", text, &verdicts); size > 64<<10 || len(verdicts.Items) != len(chunk) {
			t.Errorf("a dry run of %d bytes is answered with %d, %d verdicts", len(text), size, len(verdicts.Items))
		}
	}
	for _, query := range []string{"limit=1000", "limit=1000&label=team%3Da", "limit=1000&paused=false", "limit=50&prefix=large"} {
		var listed []wire.Job
		pages, cursor := 0, ""
		for ; pages == 0 || cursor != ""; pages++ {
			var page wire.JobPage
			more := ""
			if cursor != "" {
				more = "&cursor=" + cursor
			}
			size := ask(t, http.MethodGet, address+"/v1/jobs?"+query+more, nil, &page)
			if size > maxPage || size > maxItem*len(page.Items) || len(page.Items) == 0 {
				t.Errorf("%s: page %d has %d bytes and %d jobs", query, pages, size, len(page.Items))
			}
			listed, cursor = append(listed, page.Items...), page.Next
		}
		names(query, listed)
		if pages < 4 {
			t.Errorf("%s is %d pages, which is no test", query, pages)
		}
	}
	names("job list", decode[[]wire.Job](t, call(0, "", "job", "list", "-o", "json", "--limit", "0").out))
	exported := call(0, "", "export").out
	if got := call(0, exported, "job", "apply", "-f", "-", "--dry-run", "--prune", "--label", "team=a").out; !strings.Contains(got, fmt.Sprintf("nothing would change, %d unchanged", jobs)) {
		t.Errorf("what was exported, applied again: %.500s", got)
	}
	if got := call(0, "", "doctor"); !strings.Contains(got.out, fmt.Sprintf("%d, none with a fault", jobs)) {
		t.Errorf("doctor says %s", got.out)
	}
	if got := call(0, "", "job", "pause", "--label", "team=a", "--yes"); strings.Contains(got.errors, "belfry:") {
		t.Errorf("pausing all: %.500s", got.errors)
	}
	if kilobytes, err := peak(cmd.Process.Pid); err == nil && kilobytes > 1_000_000 {
		t.Errorf("it took %d MB; want at most 1,000", kilobytes>>10)
	} else {
		t.Logf("%d MB at the most, %v", kilobytes>>10, err)
	}
}

// ask sends a request, reads its answer of JSON and gives how many bytes that has.
func ask(t *testing.T, method, address string, body []byte, into any) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s, %v: %.300s", method, address, answer.Status, err, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// peak is how much memory a process has taken at the most. Only Linux tells.
func peak(pid int) (kilobytes int, err error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	_, most, _ := strings.Cut(string(status), "VmHWM:")
	return strconv.Atoi(strings.Fields(most)[0])
}
