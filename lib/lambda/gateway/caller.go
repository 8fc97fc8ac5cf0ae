package gateway

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/lambda"
)

// What the authorizer says to the function, in the context of the request.
const (
	saysTenant  = "tenant"
	saysScopes  = "scopes"
	saysExpires = "expires" // Unix seconds
)

// callerOf is who makes a request, as API Gateway has proven it.
func (g *gateway) callerOf(of events.APIGatewayProxyRequestContext) (access.Caller, error) {
	who := of.Identity
	switch {
	case g.Auth.Kind == lambda.AuthIAM && who.UserArn != "" && who.AccountID != "":
		// What an identity may call is in its policies, path by path.
		return g.ours(who.UserArn, access.Admin), nil
	case g.Auth.Kind == lambda.AuthAPIKey && who.APIKeyID != "":
		return g.ours("API key "+who.APIKeyID, access.Write), nil
	case g.Auth.Kind == lambda.AuthJWT:
		return g.byToken(of.Authorizer)
	case g.Auth.Kind == "":
		return access.Caller{}, &access.Unauthenticated{Message: "This stack lets nobody in: BELFRY_AUTH is not set."}
	}
	return access.Caller{}, &access.Unauthenticated{Message: "API Gateway does not say who calls: the method wants " + want[g.Auth.Kind] + "."}
}

var want = map[string]string{
	lambda.AuthIAM:    "a request signed by an AWS identity (SigV4)",
	lambda.AuthAPIKey: "an API key of the stack's usage plan, in the header X-API-Key",
	lambda.AuthJWT:    "a token of the stack's issuer, as Authorization: Bearer …",
}

// ours is a caller of the tenant whose the stack is.
func (g *gateway) ours(name string, scopes ...access.Scope) access.Caller {
	return access.Caller{Tenant: g.Tenant, Name: name, Scopes: scopes, Host: true}
}

// byToken is who the authorizer has let in. API Gateway remembers what the authorizer said for a while, so that the token may have
// expired since.
func (g *gateway) byToken(said map[string]any) (access.Caller, error) {
	text := func(name string) string { s, _ := said[name].(string); return s }
	tenant, expires := text(saysTenant), text(saysExpires)
	seconds, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || access.ValidTenant(tenant) != nil {
		return access.Caller{}, &access.Unauthenticated{Message: "API Gateway does not say who calls: the method wants " + want[lambda.AuthJWT] + "."}
	}
	if !g.Now().Before(time.Unix(seconds, 0)) {
		return access.Caller{}, &access.Unauthenticated{Given: true, Message: "The token has expired. Ask its issuer for a new one."}
	}
	c := access.Caller{Tenant: tenant, Name: text("principalId"), Host: tenant == g.Tenant}
	for _, scope := range strings.Fields(text(saysScopes)) {
		c.Scopes = append(c.Scopes, access.Scope(scope))
	}
	return c, nil
}
