package gateway_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/belfry-scheduler/belfry/lib/lambda"
)

// issuer issues tokens as an OpenID provider does.
type issuer struct {
	*httptest.Server
	t    *testing.T
	key  *ecdsa.PrivateKey
	id   string
	away atomic.Bool
	asks atomic.Int64 // for keys
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func issues(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{t: t, key: newKey(t), id: "1"}
	show := func(w http.ResponseWriter, what any) {
		if i.away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(what); err != nil {
			t.Error(err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		show(w, map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"}})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.asks.Add(1)
		show(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: i.key.Public(), KeyID: i.id, Algorithm: "ES256", Use: "sig"}}})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// token signs what is claimed beside the usual, by a key of the issuer's unless another is given.
func (i *issuer) token(claims map[string]any, by ...jose.SigningKey) string {
	i.t.Helper()
	all := map[string]any{"iss": i.URL, "sub": "ann", "aud": "belfry", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	key := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: i.id}}
	if len(by) > 0 {
		key = by[0]
	}
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		i.t.Fatal(err)
	}
	text, err := jwt.Signed(signer).Claims(all).Serialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

// judge asks the authorizer, and then the API with what it said; the status that a caller would see.
func (f *function) judge(token string, event events.APIGatewayProxyRequest) answer {
	f.t.Helper()
	text, err := os.ReadFile("testdata/token.json")
	if err != nil {
		f.t.Fatal(err)
	}
	out, err := f.invoke(f.t.Context(), json.RawMessage(strings.Replace(string(text), "Bearer TOKEN", token, 1)))
	if err != nil {
		refused := answer{}
		refused.StatusCode = http.StatusInternalServerError
		if err.Error() == "Unauthorized" {
			refused.StatusCode = http.StatusUnauthorized
		}
		return refused
	}
	said := out.(events.APIGatewayCustomAuthorizerResponse)
	statement := said.PolicyDocument.Statement
	if len(statement) != 1 || statement[0].Effect != "Allow" || len(statement[0].Resource) != 1 ||
		statement[0].Resource[0] != "arn:aws:execute-api:eu-west-1:123456789012:a1b2c3d4e5/v/*" {
		f.t.Fatalf("the policy is %+v", said.PolicyDocument)
	}
	event.RequestContext.Authorizer = map[string]any{"principalId": said.PrincipalID}
	for name, value := range said.Context {
		if _, ok := value.(string); !ok {
			f.t.Errorf("%s is a %T: API Gateway passes on texts", name, value)
		}
		event.RequestContext.Authorizer[name] = value
	}
	return f.ask(event)
}

func TestTokensAreJudgedByWhatTheyClaim(t *testing.T) {
	i := issues(t)
	stranger := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: newKey(t), KeyID: "1"}}
	public, err := jose.JSONWebKey{Key: i.key.Public(), KeyID: "1"}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	confused := jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: public, KeyID: "1"}}
	unsigned := "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + strings.Split(i.token(map[string]any{"scope": "admin", "org": "acme"}), ".")[1] + "."
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"Good":                   {i.token(map[string]any{"org": "acme", "scope": "openid read"}), http.StatusOK},
		"ScopesAsAList":          {i.token(map[string]any{"org": "acme", "scp": []string{"read"}}), http.StatusOK},
		"ScopesOfAResource":      {i.token(map[string]any{"org": "acme", "scope": "belfry/read"}), http.StatusOK},
		"SeveralAudiences":       {i.token(map[string]any{"org": "acme", "scope": "read", "aud": []string{"other", "belfry"}}), http.StatusOK},
		"ClientForAudience":      {i.token(map[string]any{"org": "acme", "scope": "read", "aud": nil, "client_id": "belfry"}), http.StatusOK},
		"NoScope":                {i.token(map[string]any{"org": "acme", "scope": "openid email"}), http.StatusForbidden},
		"AnotherResourcesScope":  {i.token(map[string]any{"org": "acme", "scope": "billing/read"}), http.StatusForbidden},
		"NoTenant":               {i.token(map[string]any{"scope": "read"}), http.StatusUnauthorized},
		"TenantThatIsNone":       {i.token(map[string]any{"org": "../acme", "scope": "read"}), http.StatusUnauthorized},
		"TenantThatIsNoText":     {i.token(map[string]any{"org": []string{"acme"}, "scope": "read"}), http.StatusUnauthorized},
		"AnotherAudience":        {i.token(map[string]any{"org": "acme", "scope": "read", "aud": "other"}), http.StatusUnauthorized},
		"AnotherAudiencesClient": {i.token(map[string]any{"org": "acme", "scope": "read", "aud": "other", "client_id": "belfry"}), http.StatusUnauthorized},
		"AnotherIssuer":          {i.token(map[string]any{"org": "acme", "scope": "read", "iss": "https://evil.example"}), http.StatusUnauthorized},
		"Expired":                {i.token(map[string]any{"org": "acme", "scope": "read", "exp": time.Now().Add(-time.Minute).Unix()}), http.StatusUnauthorized},
		"WithoutExpiry":          {i.token(map[string]any{"org": "acme", "scope": "read", "exp": nil}), http.StatusUnauthorized},
		"NotYet":                 {i.token(map[string]any{"org": "acme", "scope": "read", "nbf": time.Now().Add(time.Hour).Unix()}), http.StatusUnauthorized},
		"AnothersSignature":      {i.token(map[string]any{"org": "acme", "scope": "read"}, stranger), http.StatusUnauthorized},
		"SignedByThePublicKey":   {i.token(map[string]any{"org": "acme", "scope": "read"}, confused), http.StatusUnauthorized},
		"Unsigned":               {unsigned, http.StatusUnauthorized},
		"NoToken":                {"nothing", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, lambda.Settings{Auth: lambda.Auth{Kind: lambda.AuthJWT, Issuer: i.URL, Audience: "belfry", TenantClaim: "org"}})
			if got := f.judge("Bearer "+c.token, request("GET", "/v1/jobs", "/v1/jobs")); got.StatusCode != c.want {
				t.Errorf("%d: %s, want %d; log %s", got.StatusCode, got.Body, c.want, f.log)
			}
			if strings.Contains(f.log.String(), c.token) {
				t.Error("the token is in the log")
			}
		})
	}
	f := start(t, lambda.Settings{Auth: lambda.Auth{Kind: lambda.AuthJWT, Issuer: i.URL, Audience: "belfry"}})
	for _, given := range []string{"", "Bearer", "Basic YTpi", i.token(nil)} {
		if got := f.judge(given, request("GET", "/v1/jobs", "/v1/jobs")); got.StatusCode != http.StatusUnauthorized {
			t.Errorf("the header %.20q: %d", given, got.StatusCode)
		}
	}
}

func TestP12_ATokensTenantIsItsOwn(t *testing.T) {
	i := issues(t)
	f := start(t, lambda.Settings{Auth: lambda.Auth{Kind: lambda.AuthJWT, Issuer: i.URL, Audience: "belfry", TenantClaim: "org"}})
	of := func(org string) string { return "Bearer " + i.token(map[string]any{"org": org, "scope": "write"}) }
	put := request("PUT", "/v1/jobs/report", "/v1/jobs/{job}", body(aJob))
	if got := f.judge(of("acme"), put); got.StatusCode != http.StatusCreated {
		t.Fatalf("%d: %s", got.StatusCode, got.Body)
	}
	get := request("GET", "/v1/jobs/report", "/v1/jobs/{job}", header("Tenant", "acme"))
	if got := f.judge(of("other"), get); got.problem.Code != "job_not_found" {
		t.Errorf("another's job: %d: %s", got.StatusCode, got.Body)
	}
	if got := f.judge(of("acme"), get); got.StatusCode != http.StatusOK {
		t.Errorf("one's own job: %d: %s", got.StatusCode, got.Body)
	}
}

func TestKeysOfTheIssuer(t *testing.T) {
	i := issues(t)
	f := start(t, lambda.Settings{Auth: lambda.Auth{Kind: lambda.AuthJWT, Issuer: i.URL, Audience: "belfry"}})
	good := func() string { return "Bearer " + i.token(map[string]any{"scope": "read"}) }
	list := request("GET", "/v1/jobs", "/v1/jobs")
	i.away.Store(true)
	if got := f.judge(good(), list); got.StatusCode != http.StatusInternalServerError {
		t.Errorf("while the issuer is away: %d, want an error, not a refusal", got.StatusCode)
	}
	i.away.Store(false)
	for range 5 {
		if got := f.judge(good(), list); got.StatusCode != http.StatusOK {
			t.Fatalf("when it is back: %d: %s", got.StatusCode, got.Body)
		}
	}
	if asks := i.asks.Load(); asks != 1 {
		t.Errorf("the keys were asked for %d times, want once", asks)
	}
	i.key, i.id = newKey(t), "2"
	if got := f.judge(good(), list); got.StatusCode != http.StatusOK {
		t.Errorf("with a new key: %d: %s", got.StatusCode, got.Body)
	}
}
