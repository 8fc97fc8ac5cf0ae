package gateway

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// requestOf is the request that an event stands for.
func requestOf(ctx context.Context, event events.APIGatewayProxyRequest) (*http.Request, error) {
	body := []byte(event.Body)
	if event.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(event.Body); err != nil {
			return nil, fmt.Errorf("the body of the event: %w", err)
		}
	}
	at := &url.URL{Scheme: "https", Host: event.RequestContext.DomainName, Path: pathOf(event), RawQuery: queryOf(event).Encode()}
	r, err := http.NewRequestWithContext(ctx, event.HTTPMethod, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the request of the event: %w", err)
	}
	for name, value := range event.Headers {
		r.Header.Set(name, value)
	}
	for name, values := range event.MultiValueHeaders {
		r.Header.Del(name)
		for _, value := range values {
			r.Header.Add(name, value)
		}
	}
	if host := r.Header.Get("Host"); host != "" {
		r.Host = host
	}
	r.Header.Del("Host")
	if r.Header.Get("X-Request-Id") == "" {
		r.Header.Set("X-Request-Id", event.RequestContext.RequestID) // by which API Gateway's own log has it
	}
	r.RemoteAddr = event.RequestContext.Identity.SourceIP
	return r, nil
}

func queryOf(event events.APIGatewayProxyRequest) url.Values {
	query := url.Values{}
	for name, value := range event.QueryStringParameters {
		query.Set(name, value)
	}
	for name, values := range event.MultiValueQueryStringParameters {
		query[name] = values
	}
	return query
}

// pathOf is the path that the API knows. Before it there may be a stage, or what a custom domain maps the API to: the resource, as the
// template has it, tells where the API's own path begins.
func pathOf(event events.APIGatewayProxyRequest) string {
	path := event.Path
	if decoded, err := url.PathUnescape(path); err == nil {
		path = decoded
	}
	known := strings.Split(strings.Trim(event.Resource, "/"), "/")
	if known[0] == "" {
		return path
	}
	if last := known[len(known)-1]; strings.HasPrefix(last, "{") && strings.HasSuffix(last, "+}") { // all that follows
		known = append(known[:len(known)-1], strings.Split(event.PathParameters[strings.Trim(last, "{+}")], "/")...)
	}
	given := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if extra := len(given) - len(known); extra > 0 && given[len(given)-1] != "" {
		given = given[extra:]
	}
	return "/" + strings.Join(given, "/")
}
