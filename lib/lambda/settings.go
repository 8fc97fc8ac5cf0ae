package lambda

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/cloud"
	"github.com/belfry-scheduler/belfry/lib/dispatch"
	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/target"
	"github.com/belfry-scheduler/belfry/lib/timer"
)

// Settings is what the environment of a function says; docs/functions.md lists the variables.
type Settings struct {
	Store string // dynamodb://TABLE
	Queue string // sqs://PREFIX
	Blob  string // s3://BUCKET
	Pools []cloud.Pool

	Shards      int           // of a store that is new. 0: the default
	LookAhead   time.Duration // of a tick. 0: the default
	CatchUpRate int           // missed fires that are started a second at the most. 0: the default
	TickQueue   string        // URL of the queue by which a tick asks for helpers; "" for none
	MaxReceives int           // after how many receives the queues give a message to the dead-letter queue; 0: never

	Callbacks dispatch.DefaultCallbacks // of jobs that name none themselves

	Tenant string // whose the callers are that bring none of their own, and the stack as a whole
	Auth   Auth
	Keys   string // of secrets, as lib/secret reads them; "" for none

	ARNs []target.ARNPattern // that jobs may name as aws targets, and as their roles

	Stack      string  // its name
	Trace      string  // where traces go: none, xray or otlp
	TraceRatio float64 // of the traces that begin here: so many are recorded, 0 to 1
	LogLevel   slog.Level

	xrayDaemon string
	inLambda   bool // and not where a test or an emulator runs a function
}

// Auth is how API Gateway finds out who calls.
type Auth struct {
	Kind        string // one of the Auth constants; "" lets nobody in
	Issuer      string // of tokens, for AuthJWT: its URL
	Audience    string // that tokens must be for
	TenantClaim string // that names the caller's tenant; "": all are of Settings.Tenant
}

// The kinds of Auth.
const (
	AuthIAM    = "iam"
	AuthAPIKey = "api-key"
	AuthJWT    = "jwt"
)

// Read reads the settings. The error names every variable that is wrong, and what would be right.
func Read(getenv func(string) string) (Settings, error) {
	e := environment{getenv: getenv}
	s := Settings{
		Store:       e.required("BELFRY_STORE", "the address of the table, as in dynamodb://belfry"),
		Queue:       e.required("BELFRY_QUEUE", "the address of the queues, as in sqs://belfry"),
		Blob:        e.required("BELFRY_BLOB", "the address of the bucket, as in s3://belfry"),
		Shards:      e.number("BELFRY_SHARDS", timer.Buckets),
		LookAhead:   e.duration("BELFRY_LOOK_AHEAD"),
		CatchUpRate: e.number("BELFRY_CATCH_UP_RATE", dispatch.MaxCatchUpRate),
		TickQueue:   getenv("BELFRY_TICK_QUEUE"),
		MaxReceives: e.number("BELFRY_MAX_RECEIVES", 1000),
		Callbacks:   dispatch.DefaultCallbacks{Failed: e.callee("BELFRY_ON_FAILED"), Missed: e.callee("BELFRY_ON_MISSED"), Recovered: e.callee("BELFRY_ON_RECOVERED")},
		Tenant:      getenv("BELFRY_TENANT"),
		Keys:        getenv("BELFRY_SECRETS_KEY"),
		Stack:       getenv("BELFRY_STACK"),
		Trace:       e.oneOf("BELFRY_TRACE", traceNone, traceXRay, traceOTLP),
		TraceRatio:  e.ratio("BELFRY_TRACE_RATIO"),
		xrayDaemon:  getenv("AWS_XRAY_DAEMON_ADDRESS"),
		inLambda:    getenv("LAMBDA_TASK_ROOT") != "",
		LogLevel:    e.level("BELFRY_LOG_LEVEL"),
		Auth: Auth{
			Kind:        e.oneOf("BELFRY_AUTH", AuthIAM, AuthAPIKey, AuthJWT),
			Issuer:      getenv("BELFRY_JWT_ISSUER"),
			Audience:    getenv("BELFRY_JWT_AUDIENCE"),
			TenantClaim: getenv("BELFRY_JWT_TENANT_CLAIM"),
		},
	}
	pools, err := cloud.ParsePools(getenv("BELFRY_QUEUES"))
	if err != nil {
		e.refuse(invalid.Under("BELFRY_QUEUES", err))
	}
	s.Pools = pools
	if s.ARNs, err = target.ParseARNPatterns(getenv("BELFRY_TARGET_ARNS")); err != nil {
		e.refuse(invalid.Under("BELFRY_TARGET_ARNS", err))
	}
	if s.Tenant == "" {
		s.Tenant = access.DefaultTenant
	}
	if err := access.ValidTenant(s.Tenant); err != nil {
		e.refuse(invalid.Under("BELFRY_TENANT", err))
	}
	if s.Auth.Kind == AuthJWT {
		e.issuer("BELFRY_JWT_ISSUER")
		e.required("BELFRY_JWT_AUDIENCE", "whom the tokens are for")
	}
	return s, errors.Join(e.errs...)
}

// environment collects what is wrong with it.
type environment struct {
	getenv func(string) string
	errs   []error
}

func (e *environment) refuse(err error) { e.errs = append(e.errs, err) }

func (e *environment) required(name, want string) string {
	text := e.getenv(name)
	if text == "" {
		e.refuse(invalid.Missing(name, want))
	}
	return text
}

// issuer refuses what would fetch keys over a network that others can write on.
func (e *environment) issuer(name string) {
	const want = "the URL of who issues the tokens, as in https://issuer.example"
	text := e.required(name, want)
	u, err := url.Parse(text)
	if text == "" || err == nil && u.Host != "" && u.RawQuery+u.Fragment == "" && (u.Scheme == "https" || u.Scheme == "http" && u.Hostname() == "127.0.0.1") {
		return
	}
	e.refuse(invalid.Field(name, text, want))
}

func (e *environment) number(name string, most int) int {
	text := e.getenv(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		e.refuse(invalid.Field(name, text, fmt.Sprintf("a number from 1 to %d", most)))
	}
	return n
}

func (e *environment) callee(name string) dispatch.DefaultCallee {
	callee, err := dispatch.ParseDefaultCallee(e.getenv(name))
	if err != nil {
		e.refuse(invalid.Under(name, err))
	}
	return callee
}

func (e *environment) duration(name string) time.Duration {
	text := e.getenv(name)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		e.refuse(invalid.Field(name, text, `a duration such as "150s"`))
	}
	return d
}

// defaultRatio is how many of the traces that begin here are recorded: each is paid for, and one in twenty shows what is usual.
const defaultRatio = 0.05

func (e *environment) ratio(name string) float64 {
	text := e.getenv(name)
	if text == "" {
		return defaultRatio
	}
	ratio, err := strconv.ParseFloat(text, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		e.refuse(invalid.Field(name, text, "a number from 0 to 1"))
	}
	return ratio
}

func (e *environment) oneOf(name string, allowed ...string) string {
	text := e.getenv(name)
	for _, one := range allowed {
		if text == one {
			return text
		}
	}
	if text != "" {
		e.refuse(invalid.Field(name, text, "one of "+strings.Join(allowed, ", ")))
	}
	return ""
}

func (e *environment) level(name string) (level slog.Level) {
	if text := e.getenv(name); text != "" {
		if err := level.UnmarshalText([]byte(text)); err != nil {
			e.refuse(invalid.Field(name, text, "debug, info, warn or error"))
		}
	}
	return level
}
