package target

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// fromErr is a source with these values, and this error for every other name.
func fromErr(values map[string]string, missing error) Secrets {
	return func(_ context.Context, tenant, name string) (string, error) {
		if value, ok := values[name]; ok && tenant == "default" {
			return value, nil
		}
		return "", missing
	}
}

const hush = "hush-hush-0815"

func TestSecretsReachTheTargetAndNobodyElse(t *testing.T) {
	var got string
	answer := func(http.ResponseWriter, string) {}
	spec := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		answer(w, got)
	})
	spec.HTTP.Headers = map[string]Value{"Authorization": Secret("token"), "X-Team": Text("billing")}
	s := newSet(t, func(c *Config) { c.Secrets = from(map[string]string{"token": "Bearer " + hush}) })
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, string)
		kind   string // "" for success
		says   string // in the result or the message
	}{
		"result": {func(w http.ResponseWriter, token string) {
			w.Header().Set("Content-Type", "text/"+hush)
			w.Write([]byte("you sent " + token))
		}, "", "you sent [secret token]"},
		"long result": {func(w http.ResponseWriter, token string) {
			w.Write([]byte(strings.Repeat("x", MaxResultBytes-5) + token + "y"))
		}, KindResult, "larger than the 256 KiB"},
		"result that ends in it": {func(w http.ResponseWriter, token string) {
			w.Write([]byte(strings.Repeat("x", MaxResultBytes-5) + token[:10]))
		}, KindResult, "larger than the 256 KiB"},
		"refusal": {func(w http.ResponseWriter, token string) { http.Error(w, "unknown "+token, http.StatusUnauthorized) }, KindHTTPStatus, "unknown [secret token]"},
		"refusal cut in the midst of it": {func(w http.ResponseWriter, token string) {
			http.Error(w, strings.Repeat("x", 290)+" "+hush, http.StatusInternalServerError)
		}, KindHTTPStatus, "xxx [secret"},
		"redirect": {func(w http.ResponseWriter, token string) {
			w.Header().Set("Location", "/login/"+hush+"?t="+hush)
			w.WriteHeader(http.StatusFound)
		}, KindRedirect, "/login/[secret%20token]"},
		"broken": {func(w http.ResponseWriter, token string) {
			conn, out, _ := http.NewResponseController(w).Hijack()
			out.WriteString("HTTP/1.1 " + hush + "\r\n\r\n")
			out.Flush()
			conn.Close()
		}, KindLost, "[secret token]"},
	} {
		t.Run(name, func(t *testing.T) {
			answer = c.answer
			result, err := s.Call(t.Context(), spec, testCall())
			if got != "Bearer "+hush {
				t.Fatalf("the target got %q", got)
			}
			told := string(result.Body) + result.ContentType
			if c.kind != "" {
				f := wantFailure(t, err, c.kind, c.kind == KindRedirect || c.kind == KindResult || strings.Contains(err.Error(), "401"))
				told = f.Error()
			} else if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(told, "hush") || strings.Contains(told, "Bear") {
				t.Errorf("it tells the secret: …%s", told[max(0, len(told)-200):])
			}
			if !strings.Contains(told, c.says) && !strings.Contains(told, strings.ReplaceAll(c.says, "%20", " ")) {
				t.Errorf("it does not say %q: …%s", c.says, told[max(0, len(told)-200):])
			}
		})
	}
}

func TestSecretsInTheEnvironment(t *testing.T) {
	values := map[string]string{"password": hush, "quoted": "a\"b\nc-" + hush}
	s := newSet(t, func(c *Config) { c.Secrets = from(values) })
	env := map[string]Value{"PASSWORD": Secret("password"), "QUOTED": Secret("quoted"), "PLAIN": Text("yes")}
	for name, c := range map[string]struct {
		script string
		kind   string
		says   string
	}{
		"result":       {`test "$PASSWORD" = ` + hush + ` || exit 9; echo "$PASSWORD $PLAIN"`, "", "[secret password] yes"},
		"in pieces":    {`printf hush-; sleep 0.05; printf 'hush-08'; echo oops >&2; sleep 0.05; printf 15`, "", "[secret password]"},
		"standard err": {`echo "no $PASSWORD" >&2; exit 3`, KindExit, "no [secret password]"},
		"cut tail":     {`i=0; while [ $i -lt 390 ]; do printf x >&2; i=$((i+1)); done; echo "$PASSWORD$PASSWORD" >&2; exit 3`, KindExit, "x"},
		"environment":  {`env; exit 3`, KindExit, "exit code 3"},
		"signal":       {`echo "$QUOTED" >&2; kill -9 $$`, KindSignal, "[secret quoted]"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := shell(c.script)
			spec.Exec.Env = env
			var log bytes.Buffer
			call := testCall()
			call.Log = &log
			result, err := s.Call(t.Context(), spec, call)
			told := string(result.Body)
			if c.kind != "" {
				told = wantFailure(t, err, c.kind, false).Error()
			} else if err != nil {
				t.Fatal(err)
			}
			if all := told + log.String(); strings.Contains(all, "hush") || strings.Contains(all, "0815") {
				t.Errorf("it tells the secret: %s", all)
			}
			if !strings.Contains(told, c.says) {
				t.Errorf("it does not say %q: %s", c.says, told)
			}
		})
	}

	t.Run("timeout", func(t *testing.T) {
		ctx, end := timedOut(t)
		log := watch("begun")
		spec := shell(`printf "%s begun %s" "$PASSWORD" "${PASSWORD%5}"; exec sleep 60`)
		spec.Exec.Env = env
		call := testCall()
		call.Log = log
		go func() { <-log.seen; end() }()
		_, err := s.Call(ctx, spec, call)
		wantFailure(t, err, KindTimeout, false)
		if got := log.String(); got != "[secret password] begun [secret password]" {
			t.Errorf("the log is %q", got)
		}
	})
}

func TestASecretThatIsNotThereFailsTheAttemptBeforeItBegins(t *testing.T) {
	hits := 0
	spec := serve(t, func(http.ResponseWriter, *http.Request) { hits++ })
	spec.HTTP.Headers = map[string]Value{"Authorization": Secret("token")}
	missing := errors.New("nobody knows it")
	for name, c := range map[string]struct {
		source Secrets
		tenant string
		says   string
	}{
		"no source":       {nil, "default", "token: this worker has no source of secrets"},
		"unknown":         {fromErr(nil, missing), "default", "token: nobody knows it"},
		"another tenant":  {fromErr(map[string]string{"token": hush}, missing), "rival", "token: nobody knows it"},
		"no header value": {from(map[string]string{"token": hush + "\nX-Admin: yes"}), "default", "token cannot be the value of Authorization: want visible characters"},
		"too long":        {from(map[string]string{"token": strings.Repeat(hush, 2000)}), "default", "want at most 16384"},
	} {
		call := testCall()
		call.Tenant = c.tenant
		_, err := newSet(t, func(cfg *Config) { cfg.Secrets = c.source }).Call(t.Context(), spec, call)
		f := wantFailure(t, err, KindSecret, false)
		if !strings.Contains(f.Message, c.says) || strings.Contains(f.Message, "hush") {
			t.Errorf("%s: it says %q", name, f.Message)
		}
	}
	exec := shell("exit 3")
	exec.Exec.Env = map[string]Value{"A": Secret("token")}
	_, err := newSet(t, func(c *Config) { c.Secrets = from(map[string]string{"token": hush + "\x00"}) }).Call(t.Context(), exec, testCall())
	wantFailure(t, err, KindSecret, false)
	if hits != 0 {
		t.Errorf("%d calls arrived", hits)
	}
}

func TestSecretsOfACancelledAttempt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := newSet(t, func(c *Config) {
		c.Secrets = func(ctx context.Context, _, _ string) (string, error) {
			cancel()
			return "", ctx.Err()
		}
	})
	spec := shell("true")
	spec.Exec.Env = map[string]Value{"A": Secret("token")}
	_, err := s.Call(ctx, spec, testCall())
	wantCancelled(t, err)
}

// Each attempt asks again, so that a secret that was changed counts from the next attempt on.
func TestSecretsAreLookedUpAtEachAttempt(t *testing.T) {
	var got []string
	spec := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("A")) })
	spec.HTTP.Headers = map[string]Value{"A": Secret("token")}
	values := map[string]string{"token": "one"}
	s := newSet(t, func(c *Config) { c.Secrets = from(values) })
	for _, value := range []string{"one", "two"} {
		values["token"] = value
		if _, err := s.Call(t.Context(), spec, testCall()); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Join(got, " ") != "one two" {
		t.Errorf("got %q", got)
	}
}
