package api_test

import (
	"bytes"
	crand "crypto/rand"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/api"
	"github.com/belfry-scheduler/belfry/lib/secret"
	"github.com/belfry-scheduler/belfry/lib/store/memory"
	"github.com/belfry-scheduler/belfry/lib/wire"
)

// keeping starts a server that keeps secrets under the keys that keys gives at the time.
func keeping(t *testing.T, keys func() (*secret.Ring, error)) *server {
	t.Helper()
	vault, err := secret.New(secret.Config{Store: memory.New(memory.Config{}), Now: time.Now, Random: crand.Reader, NewID: rand.Uint64, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, 0, func(c *api.Config) { c.Secrets = vault })
}

func newKey(t *testing.T) string {
	t.Helper()
	key, err := secret.NewKey(crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestSecretsAreSetListedAndDeleted(t *testing.T) {
	file := newKey(t)
	s := keeping(t, func() (*secret.Ring, error) {
		if file == "" {
			return nil, errors.New("keys.txt is gone")
		}
		return secret.ParseRing(file)
	})
	var said bytes.Buffer
	send := func(method, path, body string, headers ...string) reply {
		r := s.send(method, path, body, headers...)
		said.Write(r.body)
		return r
	}
	first := into[wire.Secret](send("PUT", "/v1/secrets/hook-token", `{"value": "hush-hush-1"}`).is(201))
	if first.Name != "hook-token" || first.CreatedAt.IsZero() || !first.Rotated || first.Key == "" {
		t.Errorf("got %+v", first)
	}
	send("PUT", "/v1/secrets/hook-token", `{"value": "hush-hush-2"}`).is(200)
	send("PUT", "/v1/secrets/batch", `{"value": "hush-hush-3"}`).is(201)
	send("PUT", "/v1/secrets/c.d", `{"value": "hush-hush-4"}`, s.of("rival")...).is(201)

	page := into[wire.SecretPage](send("GET", "/v1/secrets?limit=1", "").is(200))
	if len(page.Items) != 1 || page.Items[0].Name != "batch" || page.Next == "" {
		t.Errorf("the first page is %+v", page)
	}
	page = into[wire.SecretPage](send("GET", "/v1/secrets?limit=1&cursor="+page.Next, "").is(200))
	if len(page.Items) != 1 || page.Items[0].Name != "hook-token" || page.Next != "" {
		t.Errorf("the second page is %+v", page)
	}
	send("GET", "/v1/secrets?cursor=%2F", "").refused(422, "invalid")

	file = newKey(t) + "\n" + file
	if done := into[wire.KeyRotation](send("POST", "/v1/secret-keys/rotate", `{}`).is(200)); done.Encrypted != 2 {
		t.Errorf("the rotation encrypted %d, want 2", done.Encrypted)
	}
	if page = into[wire.SecretPage](send("GET", "/v1/secrets", "")); page.Items[0].Key == first.Key || !page.Items[0].Rotated {
		t.Errorf("after it %+v", page.Items[0])
	}
	file = ""
	send("POST", "/v1/secret-keys/rotate", `{}`).refused(409, "no_secrets_key")

	send("DELETE", "/v1/secrets/c.d", "").refused(404, "secret_not_found")
	send("DELETE", "/v1/secrets/hook-token", "").is(204)
	send("DELETE", "/v1/secrets/hook-token", "").refused(404, "secret_not_found")
	send("GET", "/v1/secrets/hook-token", "").refused(405, "method_not_allowed")
	if strings.Contains(said.String(), "hush") {
		t.Errorf("an answer holds a value: %s", said.String())
	}
}

func TestSecretsAreForAdministrators(t *testing.T) {
	s := keeping(t, func() (*secret.Ring, error) { return secret.ParseRing(newKey(t)) })
	weak := bearing(s.token("default", access.Write, access.Work))
	for _, c := range [][3]string{
		{"PUT", "/v1/secrets/a", `{"value": "x"}`}, {"GET", "/v1/secrets", ""}, {"DELETE", "/v1/secrets/a", ""}, {"POST", "/v1/secret-keys/rotate", `{}`},
	} {
		s.send(c[0], c[1], c[2], weak...).refused(403, "forbidden")
	}
}

func TestSecretsThatCannotBeKeptAreRefusedWithoutTheirValue(t *testing.T) {
	s := keeping(t, func() (*secret.Ring, error) { return secret.ParseRing(newKey(t)) })
	for body, status := range map[string]int{
		`{"value": ""}`: 400, `{}`: 400, `{"value": ["hush"]}`: 400, `{"value": "` + strings.Repeat("hush", 10_000) + `"}`: 400,
		`{"value": "hush\u0000"}`: 422, `{"value": "` + strings.Repeat("ü", 20_000) + `"}`: 422,
	} {
		r := s.send("PUT", "/v1/secrets/a", body).is(status)
		if !strings.Contains(string(r.body), `"field":"value"`) || strings.Contains(string(r.body), "hush") || strings.Contains(string(r.body), "ü") {
			t.Errorf("%.30s: %s", body, r.body)
		}
	}
	without := keeping(t, nil)
	without.send("PUT", "/v1/secrets/a", `{"value": "hush"}`).refused(409, "no_secrets_key")
	if page := into[wire.SecretPage](without.send("GET", "/v1/secrets", "").is(200)); len(page.Items) != 0 {
		t.Errorf("listed %+v", page)
	}
}

// What GET shows of a job that names secrets, PUT takes, as no change.
func TestNamesOfSecretsComeBackAsTheyWere(t *testing.T) {
	s := start(t, 0, nil)
	const job = `{"target": {"http": {"url": "http://a.b", "headers": {"A": "x", "B": {"secret": "b"}}, "sign": {"secret": "c", "previous": "d"}}}}`
	first := s.send("PUT", "/v1/jobs/a", job).is(201)
	shown := s.send("GET", "/v1/jobs/a", "").is(200)
	for _, want := range []string{`"A":"x"`, `"B":{"secret":"b"}`, `"sign":{"secret":"c","previous":"d"}`} {
		if !strings.Contains(string(shown.body), want) {
			t.Errorf("it shows %s, want %s in it", shown.body, want)
		}
	}
	again := s.send("PUT", "/v1/jobs/a", string(shown.body)).is(200)
	if again.header.Get("ETag") != first.header.Get("ETag") {
		t.Error("sent back, it is another generation")
	}
	if changed := s.send("PUT", "/v1/jobs/a", strings.Replace(job, `{"secret": "b"}`, `"b"`, 1)).is(200); changed.header.Get("ETag") == first.header.Get("ETag") {
		t.Error("a text in place of a secret's name is no change")
	}
}
