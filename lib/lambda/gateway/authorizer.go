package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/lambda"
)

// errUnauthorized is the word by which API Gateway answers 401.
var errUnauthorized = errors.New("Unauthorized")

// asking is how long one request to the issuer may take. API Gateway waits 10 s for an authorizer.
const asking = 4 * time.Second

// authorizer verifies tokens of an issuer, whose keys it fetches when it first needs them, and again when a token names an unknown one.
type authorizer struct {
	lambda.Auth
	tenant string // of tokens that name none
	now    func() time.Time
	http   *http.Client

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil until the issuer has answered
}

func newAuthorizer(auth lambda.Auth, tenant string, now func() time.Time) *authorizer {
	return &authorizer{Auth: auth, tenant: tenant, now: now, http: &http.Client{Timeout: asking}}
}

// authorize answers whether a token lets its owner call the API at all; what he may do there, the API decides by his scopes. The answer
// is for all of the API, since API Gateway remembers it by the token. An error other than errUnauthorized is an answer of 500.
func (a *authorizer) authorize(ctx context.Context, event events.APIGatewayCustomAuthorizerRequest) (events.APIGatewayCustomAuthorizerResponse, string, error) {
	var none events.APIGatewayCustomAuthorizerResponse
	scheme, text, found := strings.Cut(event.AuthorizationToken, " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return none, "the Authorization header is not of the form Bearer …", errUnauthorized
	}
	verifier, err := a.issuer(ctx)
	if err != nil {
		return none, "", err
	}
	token, err := verifier.Verify(ctx, strings.TrimSpace(text))
	if err != nil {
		return none, err.Error(), errUnauthorized
	}
	var c claims
	if err := token.Claims(&c.all); err != nil {
		return none, err.Error(), errUnauthorized
	}
	if !a.meant(token.Audience, c) {
		return none, fmt.Sprintf("the token is for %q, want %q: the claim aud, or client_id where there is none", token.Audience, a.Audience), errUnauthorized
	}
	tenant := a.tenant
	if a.TenantClaim != "" {
		tenant = c.text(a.TenantClaim)
	}
	if err := access.ValidTenant(tenant); err != nil {
		return none, fmt.Sprintf("the claim %s: %v", a.TenantClaim, err), errUnauthorized
	}
	everything, err := allOf(event.MethodArn)
	if err != nil {
		return none, "", err
	}
	return events.APIGatewayCustomAuthorizerResponse{
		PrincipalID: token.Subject,
		PolicyDocument: events.APIGatewayCustomAuthorizerPolicy{Version: "2012-10-17", Statement: []events.IAMPolicyStatement{
			{Action: []string{"execute-api:Invoke"}, Effect: "Allow", Resource: []string{everything}}}},
		Context: map[string]any{saysTenant: tenant, saysScopes: strings.Join(c.scopes(), " "), saysExpires: strconv.FormatInt(token.Expiry.Unix(), 10)},
	}, "", nil
}

// issuer asks who the issuer is, once.
func (a *authorizer) issuer(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.verifier == nil {
		provider, err := oidc.NewProvider(oidc.ClientContext(ctx, a.http), a.Issuer)
		if err != nil {
			return nil, fmt.Errorf("ask the issuer %s for its keys: %w", a.Issuer, err)
		}
		// Who the token is for is looked at apart: an access token may say it in another claim than an ID token.
		a.verifier = provider.VerifierContext(oidc.ClientContext(context.WithoutCancel(ctx), a.http), &oidc.Config{SkipClientIDCheck: true, Now: a.now})
	}
	return a.verifier, nil
}

// meant tells whether a token is for this stack. Some issuers name whom an access token is for by the client alone.
func (a *authorizer) meant(audience []string, c claims) bool {
	if len(audience) > 0 {
		return slices.Contains(audience, a.Audience)
	}
	return c.text("client_id") == a.Audience
}

// allOf is the resource of a policy that is for every method and path of the stage in the ARN of a method:
// arn:aws:execute-api:REGION:ACCOUNT:API/STAGE/METHOD/PATH.
func allOf(method string) (string, error) {
	parts := strings.SplitN(method, "/", 3)
	if len(parts) < 3 || !strings.Contains(parts[0], ":execute-api:") {
		return "", fmt.Errorf("the method %q of the event: want an ARN such as arn:aws:execute-api:eu-west-1:123456789012:api/stage/GET/v1/jobs", method)
	}
	return parts[0] + "/" + parts[1] + "/*", nil
}

// claims are what a token says.
type claims struct{ all map[string]any }

func (c claims) text(name string) string { s, _ := c.all[name].(string); return s }

// prefix may stand before a scope: issuers such as Cognito have scopes begin with whom they are for.
const prefix = "belfry/"

// scopes are those of Belfry's that a token has, in the claim scope (RFC 9068) or scp, as a text with blanks or as a list.
func (c claims) scopes() []string {
	var found []string
	for _, name := range []string{"scope", "scp"} {
		var given []string
		switch v := c.all[name].(type) {
		case string:
			given = strings.Fields(v)
		case []any:
			for _, one := range v {
				if text, ok := one.(string); ok {
					given = append(given, text)
				}
			}
		}
		for _, one := range given {
			if scope := strings.TrimPrefix(one, prefix); slices.Contains(access.Scopes, access.Scope(scope)) && !slices.Contains(found, scope) {
				found = append(found, scope)
			}
		}
	}
	return found
}

// asksAuthorizer tells an event for an authorizer from one of a request.
func asksAuthorizer(event json.RawMessage) bool {
	var kind struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(event, &kind) == nil && kind.Type == "TOKEN"
}
