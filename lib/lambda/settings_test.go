package lambda_test

import (
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/lambda"
)

// required is the least that a function wants.
var required = map[string]string{"BELFRY_STORE": "dynamodb://belfry", "BELFRY_QUEUE": "sqs://belfry", "BELFRY_BLOB": "s3://belfry"}

func with(env map[string]string) func(string) string {
	return func(name string) string {
		if text, ok := env[name]; ok {
			return text
		}
		return required[name]
	}
}

func TestTheEnvironmentIsRead(t *testing.T) {
	s, err := lambda.Read(with(nil))
	if err != nil || s.Tenant != "default" || s.Auth.Kind != "" || !reflect.DeepEqual(s.Pools, []cloud.Pool{{Name: "default"}}) || s.LogLevel != slog.LevelInfo {
		t.Errorf("the least: %+v, %v", s, err)
	}
	s, err = lambda.Read(with(map[string]string{"BELFRY_QUEUES": "default=14m,gpu=6h", "BELFRY_SHARDS": "16", "BELFRY_LOOK_AHEAD": "150s", "BELFRY_MAX_RECEIVES": "10", "BELFRY_CATCH_UP_RATE": "250",
		"BELFRY_AUTH": "jwt", "BELFRY_JWT_ISSUER": "https://issuer.example/pool", "BELFRY_JWT_AUDIENCE": "belfry", "BELFRY_JWT_TENANT_CLAIM": "org",
		"BELFRY_TENANT": "acme", "BELFRY_LOG_LEVEL": "debug", "BELFRY_TRACE": "xray", "BELFRY_TRACE_RATIO": "1", "BELFRY_STACK": "prod",
		"BELFRY_ON_FAILED": "tell-ops, acme=ops", "BELFRY_ON_RECOVERED": "acme=ops"}))
	if err != nil || len(s.Pools) != 2 || s.Shards != 16 || s.LookAhead != 150*time.Second || s.MaxReceives != 10 || s.CatchUpRate != 250 || s.Tenant != "acme" || s.TraceRatio != 1 ||
		s.Auth != (lambda.Auth{Kind: "jwt", Issuer: "https://issuer.example/pool", Audience: "belfry", TenantClaim: "org"}) ||
		!reflect.DeepEqual(s.Callbacks, dispatch.DefaultCallbacks{Failed: dispatch.DefaultCallee{"": "tell-ops", "acme": "ops"}, Missed: dispatch.DefaultCallee{}, Recovered: dispatch.DefaultCallee{"acme": "ops"}}) {
		t.Errorf("all: %+v, %v", s, err)
	}
}

// What is wrong is told by the variable's name, all of it at once.
func TestTheEnvironmentIsCheckedAtOnce(t *testing.T) {
	wrong := map[string]string{"BELFRY_STORE": "", "BELFRY_SHARDS": "many", "BELFRY_LOOK_AHEAD": "150", "BELFRY_MAX_RECEIVES": "0", "BELFRY_CATCH_UP_RATE": "1001", "BELFRY_AUTH": "none",
		"BELFRY_TENANT": "a b", "BELFRY_LOG_LEVEL": "loud", "BELFRY_QUEUES": "gpu=soon", "BELFRY_TRACE": "jaeger", "BELFRY_TRACE_RATIO": "5%",
		"BELFRY_TARGET_ARNS": "everything", "BELFRY_ON_FAILED": "tell ops", "BELFRY_ON_MISSED": "Acme=ops", "BELFRY_ON_RECOVERED": "a,b"}
	_, err := lambda.Read(with(wrong))
	if err == nil {
		t.Fatal("it was accepted")
	}
	for name := range wrong {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
	for _, issuer := range []string{"", "http://issuer.example", "issuer.example", "https://"} {
		_, err := lambda.Read(with(map[string]string{"BELFRY_AUTH": "jwt", "BELFRY_JWT_AUDIENCE": "belfry", "BELFRY_JWT_ISSUER": issuer}))
		if err == nil || !strings.Contains(err.Error(), "BELFRY_JWT_ISSUER") {
			t.Errorf("the issuer %q: %v", issuer, err)
		}
	}
	if _, err := lambda.Read(with(map[string]string{"BELFRY_AUTH": "jwt", "BELFRY_JWT_ISSUER": "https://issuer.example"})); err == nil || !strings.Contains(err.Error(), "BELFRY_JWT_AUDIENCE") {
		t.Errorf("without an audience: %v", err)
	}
}

// A wrong address is one line that names it, before anything is asked.
func TestAWrongAddressIsOneLine(t *testing.T) {
	for name, text := range map[string]string{"BELFRY_STORE": "dynamo://belfry", "BELFRY_QUEUE": "https://sqs.eu-west-1.amazonaws.com/1/belfry", "BELFRY_BLOB": "gs://belfry"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_REGION", "eu-west-1")
			t.Setenv("AWS_ACCESS_KEY_ID", "test")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
			_, err := lambda.Open(t.Context(), with(map[string]string{name: text}), io.Discard)
			if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v", err)
			}
		})
	}
}
