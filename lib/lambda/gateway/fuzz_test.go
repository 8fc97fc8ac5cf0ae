package gateway_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

// FuzzEvents invokes the function with anything. It answers with what API Gateway can pass on, which is none of its own errors, or
// refuses the event.
func FuzzEvents(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	for _, name := range files {
		event, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(event))
	}
	f.Add(`{"httpMethod":"PUT","resource":"/v1/jobs/{job}","path":"/stage/v1/jobs/report","headers":{"Content-Type":"application/json"},"body":"e30=","isBase64Encoded":true,"requestContext":{"identity":{"userArn":"a","accountId":"1"}}}`)
	f.Add(`{"httpMethod":"GET","resource":"/{proxy+}","path":"/v1/jobs","pathParameters":{"proxy":"v1/jobs"},"multiValueQueryStringParameters":{"label":["a=b","c=d"]},"requestContext":{"identity":{"userArn":"a","accountId":"1"}}}`)
	f.Add(`{"httpMethod":"GET","resource":"/+}","path":"/%zz"}`)
	var function *function
	f.Fuzz(func(t *testing.T, event string) {
		if function == nil {
			function = start(t, iam)
		}
		out, err := function.invoke(context.Background(), function.encode(event))
		if err != nil {
			return
		}
		answer, ok := out.(events.APIGatewayProxyResponse)
		if !ok || answer.StatusCode < 200 || answer.StatusCode >= 500 {
			t.Fatalf("%T %+v", out, out)
		}
		if answer.StatusCode >= 400 && answer.MultiValueHeaders["Content-Type"][0] != "application/problem+json" {
			t.Fatalf("%d without a problem: %s", answer.StatusCode, answer.Body)
		}
	})
}
