package awstarget

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/belfry-scheduler/belfry/lib/target"
)

const (
	functionARN = "arn:aws:lambda:eu-west-1:123456789012:function:report"
	queueARN    = "arn:aws:sqs:eu-west-1:123456789012:orders"
	fifoARN     = "arn:aws:sqs:eu-west-1:123456789012:orders.fifo"
	topicARN    = "arn:aws:sns:eu-west-1:123456789012:alerts"
	busARN      = "arn:aws:events:eu-west-1:123456789012:event-bus/shop"
	machineARN  = "arn:aws:states:eu-west-1:123456789012:stateMachine:nightly"
	roleARN     = "arn:aws:iam::123456789012:role/reports"
)

var all = []string{functionARN, queueARN, fifoARN, topicARN, busARN, machineARN}

// asked is a request as the services get it: its action, what it says, and who says it.
type asked struct {
	action string
	form   url.Values     // of SNS and STS
	body   map[string]any // of the others
	client map[string]any // the client context of Lambda
	signed string         // the Authorization header: key and region
}

// services answers like all services at once, and remembers what it was asked. Its answer is that of a success unless fail gives
// another.
type services struct {
	mu   sync.Mutex
	got  []asked
	fail func(a asked) (status int, headers map[string]string, body string)
}

func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	a := asked{signed: r.Header.Get("Authorization")}
	switch _, action, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); {
	case ok:
		a.action = action
		_ = json.Unmarshal(text, &a.body)
	case strings.HasPrefix(r.URL.Path, "/2015-03-31/functions/"):
		a.action = "Invoke " + r.Header.Get("X-Amz-Invocation-Type")
		_ = json.Unmarshal(text, &a.body)
		context, _ := base64.StdEncoding.DecodeString(r.Header.Get("X-Amz-Client-Context"))
		_ = json.Unmarshal(context, &a.client)
	default:
		a.form, _ = url.ParseQuery(string(text))
		a.action = a.form.Get("Action")
	}
	s.mu.Lock()
	s.got = append(s.got, a)
	s.mu.Unlock()
	status, headers, body := 200, map[string]string{}, ""
	if s.fail != nil {
		status, headers, body = s.fail(a)
	}
	switch {
	case body != "" || status != 200:
	case a.action == "SendMessage":
		body = fmt.Sprintf(`{"MessageId": "m1", "MD5OfMessageBody": %q}`, sum(a.body["MessageBody"].(string)))
	case a.action == "PutEvents":
		body = `{"FailedEntryCount": 0, "Entries": [{"EventId": "e1"}]}`
	case a.action == "StartExecution":
		body = `{"executionArn": "arn:x", "startDate": 1}`
	case a.action == "Publish":
		body = `<PublishResponse><PublishResult><MessageId>m2</MessageId></PublishResult></PublishResponse>`
	case a.action == "AssumeRole":
		body = `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ROLE-` + a.form.Get("ExternalId") + `</AccessKeyId><SecretAccessKey>s</SecretAccessKey>
			<SessionToken>t</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`
	case strings.HasPrefix(a.action, "Invoke"):
		w.Header().Set("X-Amz-Log-Result", base64.StdEncoding.EncodeToString([]byte("a line of its log\n")))
		body = `{"done": true}`
		if a.action == "Invoke Event" {
			status, body = 202, ""
		}
	}
	for name, value := range headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func sum(text string) string {
	s := md5.Sum([]byte(text))
	return hex.EncodeToString(s[:])
}

func keys(id string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: id, SecretAccessKey: "secret"}, nil
	})
}

func callerOf(t *testing.T, s http.Handler) *Caller {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return New(aws.Config{Region: "us-east-1", Credentials: keys("OWN"), BaseEndpoint: &server.URL})
}

func attempt() target.Call {
	return target.Call{Tenant: "acme", Run: "report~0mi8xk2p0", Job: "report", Attempt: 2, Fence: 5,
		Nominal: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), Payload: []byte(`{"day": 1}`)}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestWhatEachServiceIsAsked(t *testing.T) {
	s := &services{}
	c := callerOf(t, s)
	const facts = `"Belfry-Run":"report~0mi8xk2p0"`
	const inside = `"belfry":{"attempt":2,"fence":5,"idempotency_key":"report~0mi8xk2p0","job":"report","nominal_time":"2026-11-21T09:00:00Z","run":"report~0mi8xk2p0"},"day":1`
	for name, row := range map[string]struct {
		to     target.AWS
		action string
		says   []string // what the request holds, as JSON
		result string
	}{
		"function":        {target.AWS{ARN: functionARN}, "Invoke RequestResponse", []string{`{"day":1}`, facts, `"Belfry-Fence":"5"`, `"Belfry-Attempt":"2"`}, `{"done": true}`},
		"async function":  {target.AWS{ARN: functionARN, Invoke: "async"}, "Invoke Event", []string{`{` + inside + `}`}, `{"status":"202"}`},
		"queue":           {target.AWS{ARN: queueARN}, "SendMessage", []string{`"MessageBody":"{\"day\": 1}"`, `"QueueUrl":"https://sqs.eu-west-1.amazonaws.com/123456789012/orders"`, `"Belfry-Run":{"DataType":"String","StringValue":"report~0mi8xk2p0"}`}, `{"message_id":"m1"}`},
		"fair queue":      {target.AWS{ARN: queueARN, MessageGroup: "g"}, "SendMessage", []string{`"MessageGroupId":"g"`}, `{"message_id":"m1"}`},
		"fifo queue":      {target.AWS{ARN: fifoARN}, "SendMessage", []string{`"MessageGroupId":"report"`, `"MessageDeduplicationId":"acme/report~0mi8xk2p0"`}, `{"message_id":"m1"}`},
		"topic":           {target.AWS{ARN: topicARN}, "Publish", []string{`"TopicArn":["` + topicARN + `"]`, `"Message":["{\"day\": 1}"]`, `.Name":["Belfry-Fence"]`}, `{"message_id":"m2"}`},
		"fifo topic":      {target.AWS{ARN: topicARN + ".fifo", MessageGroup: "g"}, "Publish", []string{`"MessageGroupId":["g"]`, `"MessageDeduplicationId":["acme/report~0mi8xk2p0"]`}, `{"message_id":"m2"}`},
		"bus":             {target.AWS{ARN: busARN}, "PutEvents", []string{`"EventBusName":"` + busARN + `"`, `"Source":"belfry"`, `"DetailType":"report"`, `\"fence\":5`}, `{"event_id":"e1"}`},
		"bus in words":    {target.AWS{ARN: busARN, Source: "shop", DetailType: "Daily"}, "PutEvents", []string{`"Source":"shop"`, `"DetailType":"Daily"`}, `{"event_id":"e1"}`},
		"state machine":   {target.AWS{ARN: machineARN}, "StartExecution", []string{`"stateMachineArn":"` + machineARN + `"`, `"name":"report-`, `\"fence\":5`}, `{"execution_arn":"arn:x"}`},
		"function's role": {target.AWS{ARN: functionARN, RoleARN: roleARN}, "Invoke RequestResponse", []string{`{"day":1}`}, `{"done": true}`},
	} {
		s.got = nil
		var log bytes.Buffer
		call := attempt()
		call.Log = &log
		got, err := c.Call(t.Context(), row.to, call)
		if err != nil || string(got.Body) != row.result || got.ContentType != "application/json" {
			t.Errorf("%s: %s, %v, want %s", name, got.Body, err, row.result)
			continue
		}
		last := s.got[len(s.got)-1]
		said := text(t, last.body) + text(t, last.client) + text(t, last.form)
		for _, want := range row.says {
			if !strings.Contains(said, want) {
				t.Errorf("%s: asked with %s, want %s in it", name, said, want)
			}
		}
		if last.action != row.action || !strings.Contains(last.signed, "/eu-west-1/") {
			t.Errorf("%s: asked %s signed by %s, want %s in the target's region", name, last.action, last.signed, row.action)
		}
		if wants := last.action == "Invoke RequestResponse"; wants != (log.String() == "a line of its log\n") {
			t.Errorf("%s: the log is %q", name, log.String())
		}
	}
}

// What a callback tells is what the mails of a topic's subscribers are about. SNS takes less than 100 letters.
func TestATopicIsToldWhatACallbackIsAbout(t *testing.T) {
	s := &services{}
	c := callerOf(t, s)
	long := strings.Repeat("x", 128)
	for payload, want := range map[string]string{
		`{"day": 1}`: "",
		`{"event": "failed", "run": {"id": "report~0mi4lf3k0", "job": "report", "state": "dead"}}`:          "report failed",
		`{"event": "recovered", "run": {"id": "x~0mi4lf3k0", "job": "` + long + `", "state": "succeeded"}}`: strings.Repeat("x", 86) + "... recovered",
	} {
		s.got = nil
		call := attempt()
		call.Payload = []byte(payload)
		if _, err := c.Call(t.Context(), target.AWS{ARN: topicARN}, call); err != nil {
			t.Fatal(err)
		}
		form := s.got[len(s.got)-1].form
		if got := form.Get("Subject"); got != want || form.Has("Subject") != (want != "") || len(got) > 99 {
			t.Errorf("subject %q, want %q", got, want)
		}
		if form.Get("Message") != payload {
			t.Errorf("the message is %s", form.Get("Message"))
		}
	}
}

func TestP5_OneCallIsOneRequest(t *testing.T) {
	for _, arn := range all {
		for name, end := range map[string]func(w http.ResponseWriter){
			"500": func(w http.ResponseWriter) { w.WriteHeader(500) },
			"429": func(w http.ResponseWriter) { w.WriteHeader(429) },
			"the connection breaks": func(w http.ResponseWriter) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					_ = conn.Close()
				}
			},
		} {
			var requests atomic.Int32
			var broken atomic.Bool
			s := &services{}
			c := callerOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if !broken.Load() {
					s.ServeHTTP(w, r)
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				end(w)
			}))
			// The first call leaves a connection that is used again: on such Go would send once more.
			if _, err := c.Call(t.Context(), target.AWS{ARN: arn}, attempt()); err != nil {
				t.Fatal(err)
			}
			broken.Store(true)
			_, err := c.Call(t.Context(), target.AWS{ARN: arn}, attempt())
			sent := requests.Load() - 1
			var f *target.Failure
			if decided := errors.As(err, &f); err == nil || sent != 1 || decided != (name == "429") {
				t.Errorf("%s, %s: %d requests, %v; want one, and a verdict only where nothing was done", arn, name, sent, err)
			}
		}
	}
}

func TestAnswersOfAWS(t *testing.T) {
	answer := func(status int, code string) func(asked) (int, map[string]string, string) {
		return func(a asked) (int, map[string]string, string) {
			if a.form != nil {
				return status, nil, `<ErrorResponse><Error><Type>Sender</Type><Code>` + code + `</Code><Message>words</Message></Error></ErrorResponse>`
			}
			return status, map[string]string{"X-Amzn-Errortype": code, "X-Amzn-Query-Error": code + ";Sender"}, `{"__type": "` + code + `", "message": "words"}`
		}
	}
	for _, row := range []struct {
		arn, code string
		status    int
		permanent bool
		says      string
	}{
		{functionARN, "TooManyRequestsException", 429, false, "words"},
		{functionARN, "AccessDeniedException", 403, true, "this worker's role must be allowed lambda:InvokeFunction on " + functionARN},
		{functionARN, "KMSAccessDeniedException", 502, true, "words"},
		{functionARN, "ResourceNotFoundException", 404, true, "there is no " + functionARN},
		{functionARN, "RequestTooLargeException", 413, true, "send less"},
		{functionARN, "ResourceConflictException", 409, false, "words"},
		{functionARN, "InvalidRequestContentException", 400, true, "words"},
		{queueARN, "QueueDoesNotExist", 400, true, "there is no " + queueARN},
		{queueARN, "ThrottlingException", 400, false, "words"},
		{queueARN, "ExpiredTokenException", 403, false, "words"},
		{queueARN, "OverLimit", 403, false, "words"},
		{topicARN, "AuthorizationError", 403, true, "sns:Publish on " + topicARN},
		{topicARN, "NotFound", 404, true, "there is no " + topicARN},
		{topicARN, "Throttled", 429, false, "words"},
		{topicARN, "InvalidParameter", 400, true, "words"},
		{busARN, "AccessDeniedException", 400, true, "events:PutEvents"},
		{machineARN, "StateMachineDoesNotExist", 400, true, "there is no " + machineARN},
		{machineARN, "ExecutionLimitExceeded", 400, false, "words"},
		{machineARN, "UnrecognizedClientException", 400, false, "words"},
	} {
		c := callerOf(t, &services{fail: answer(row.status, row.code)})
		_, err := c.Call(t.Context(), target.AWS{ARN: row.arn}, attempt())
		var f *target.Failure
		if !errors.As(err, &f) || f.Kind != target.KindAWS || f.Permanent != row.permanent || !strings.Contains(f.Message, row.says) {
			t.Errorf("%s, %d %s: %v, want permanent %v and %q", row.arn, row.status, row.code, err, row.permanent, row.says)
		}
	}
}

func TestAnswersThatTakeALook(t *testing.T) {
	for name, row := range map[string]struct {
		arn       string
		fail      func(asked) (int, map[string]string, string)
		kind      string // "" for success, "unknown" where nobody knows
		permanent bool
		says      string
	}{
		"a function that throws": {functionARN, func(asked) (int, map[string]string, string) {
			return 200, map[string]string{"X-Amz-Function-Error": "Unhandled"}, `{"errorType": "KeyError", "errorMessage": "no day"}`
		}, target.KindFunction, false, "KeyError: no day"},
		"a function that ran out of time": {functionARN, func(asked) (int, map[string]string, string) {
			return 200, map[string]string{"X-Amz-Function-Error": "Unhandled"}, `{"errorMessage": "Task timed out after 3.00 seconds"}`
		}, target.KindFunction, false, "Task timed out"},
		"an execution that stands": {machineARN, func(asked) (int, map[string]string, string) {
			return 400, nil, `{"__type": "com.amazonaws.swf.service.v2.model#ExecutionAlreadyExists", "message": "Execution Already Exists"}`
		}, "", false, ""},
		"an event for later": {busARN, func(asked) (int, map[string]string, string) {
			return 200, nil, `{"FailedEntryCount": 1, "Entries": [{"ErrorCode": "ThrottlingException", "ErrorMessage": "slow"}]}`
		}, target.KindAWS, false, "slow"},
		"an event that is refused": {busARN, func(asked) (int, map[string]string, string) {
			return 200, nil, `{"FailedEntryCount": 1, "Entries": [{"ErrorCode": "NotAuthorizedForSource"}]}`
		}, target.KindAWS, true, "NotAuthorizedForSource"},
		"an event that broke something": {busARN, func(asked) (int, map[string]string, string) {
			return 200, nil, `{"FailedEntryCount": 1, "Entries": [{"ErrorCode": "InternalFailure", "ErrorMessage": "x"}]}`
		}, "unknown", false, "InternalFailure"},
		"an answer that is none": {queueARN, func(asked) (int, map[string]string, string) { return 200, nil, `{"MessageId"` }, "unknown", false, "not known"},
		"a server error":         {topicARN, func(asked) (int, map[string]string, string) { return 503, nil, `busy` }, "unknown", false, "not known"},
	} {
		_, err := callerOf(t, &services{fail: row.fail}).Call(t.Context(), target.AWS{ARN: row.arn}, attempt())
		var f *target.Failure
		errors.As(err, &f)
		switch {
		case row.kind == "" && err != nil,
			row.kind == "unknown" && (err == nil || f != nil || !strings.Contains(err.Error(), row.says)),
			row.kind != "" && row.kind != "unknown" && (f == nil || f.Kind != row.kind || f.Permanent != row.permanent || !strings.Contains(f.Message, row.says)):
			t.Errorf("%s: %v", name, err)
		}
	}
	busy := &services{fail: func(asked) (int, map[string]string, string) {
		return 429, map[string]string{"X-Amzn-Errortype": "TooManyRequestsException", "Retry-After": "7"}, `{"Reason": "ReservedFunctionConcurrentInvocationLimitExceeded"}`
	}}
	_, err := callerOf(t, busy).Call(t.Context(), target.AWS{ARN: functionARN}, attempt())
	var f *target.Failure
	if !errors.As(err, &f) || f.RetryAfter != 7*time.Second {
		t.Errorf("Retry-After of 7 seconds: %v", err)
	}
}

func TestWhatNeverLeftThisHost(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	_ = listener.Close()
	for name, c := range map[string]*Caller{
		"nobody listens": New(aws.Config{Credentials: keys("OWN"), BaseEndpoint: &closed}),
		"no credentials": New(aws.Config{BaseEndpoint: &closed}),
		"credentials that cannot be had": New(aws.Config{BaseEndpoint: &closed, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("no role here")
		})}),
	} {
		for _, arn := range all {
			_, err := c.Call(t.Context(), target.AWS{ARN: arn}, attempt())
			var f *target.Failure
			if !errors.As(err, &f) || f.Kind != target.KindConnect || f.Permanent {
				t.Errorf("%s, %s: %v, want connect", name, arn, err)
			}
		}
	}
}

func TestACallThatIsCalledOffSaysThatNothingWasSent(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	handshake, greeted := context.WithCancel(t.Context())
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = conn.Read(make([]byte, 4096)) // the greeting of TLS, to which nothing is said
		greeted()
		<-t.Context().Done()
	}()
	silent := "https://" + listener.Addr().String()
	looking, asked := context.WithCancel(t.Context())
	slow := aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		asked()
		<-ctx.Done()
		return aws.Credentials{}, ctx.Err()
	})
	for name, row := range map[string]struct {
		ctx         context.Context
		credentials aws.CredentialsProvider
	}{"a handshake": {handshake, keys("OWN")}, "credentials": {looking, slow}} {
		_, err := New(aws.Config{Credentials: row.credentials, BaseEndpoint: &silent}).Call(row.ctx, target.AWS{ARN: functionARN}, attempt())
		if !errors.Is(err, target.ErrUnsent) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want it called off with nothing sent", name, err)
		}
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	release := make(chan struct{})
	c := callerOf(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Call(ctx, target.AWS{ARN: functionARN}, attempt())
	var f *target.Failure
	if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &f) {
		t.Errorf("%v, want the end of the context and no verdict", err)
	}
}

// A service that takes what it is handed and does not answer holds no worker for the hours of an attempt; a function may.
func TestP11_HandingOverIsBounded(t *testing.T) {
	answer := make(chan struct{})
	s := &services{}
	c := callerOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-answer:
			s.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	c.patience = 2 * time.Second // enough to connect in on a busy machine
	var handed, invoked sync.WaitGroup
	for _, to := range []target.AWS{{ARN: functionARN, Invoke: target.InvokeAsync}, {ARN: queueARN}, {ARN: topicARN}, {ARN: busARN}, {ARN: machineARN}} {
		handed.Go(func() {
			_, err := c.Call(t.Context(), to, attempt())
			var f *target.Failure
			if err == nil || errors.As(err, &f) || !strings.Contains(err.Error(), "not known") {
				t.Errorf("%s: %v, want that nobody knows", to.ARN, err)
			}
		})
	}
	invoked.Go(func() {
		if _, err := c.Call(t.Context(), target.AWS{ARN: functionARN}, attempt()); err != nil {
			t.Errorf("a function that takes longer: %v", err)
		}
	})
	handed.Wait()
	close(answer)
	invoked.Wait()
}

func TestP12_RolesAreTakenForATenant(t *testing.T) {
	s := &services{}
	c := callerOf(t, s)
	for _, tenant := range []string{"acme", "acme", "rival"} {
		call := attempt()
		call.Tenant = tenant
		if _, err := c.Call(t.Context(), target.AWS{ARN: queueARN, RoleARN: roleARN}, call); err != nil {
			t.Fatal(err)
		}
		if last := s.got[len(s.got)-1]; !strings.Contains(last.signed, "Credential=ROLE-belfry:"+tenant+"/") {
			t.Errorf("for %s signed by %s", tenant, last.signed)
		}
	}
	var taken []string
	for _, a := range s.got {
		if a.action == "AssumeRole" {
			taken = append(taken, a.form.Get("RoleArn")+" "+a.form.Get("RoleSessionName")+" "+a.form.Get("ExternalId"))
			if !strings.Contains(a.signed, "Credential=OWN/") || !strings.Contains(a.signed, "/eu-west-1/sts/") {
				t.Errorf("taken by %s", a.signed)
			}
		}
	}
	want := roleARN + " belfry-acme belfry:acme, " + roleARN + " belfry-rival belfry:rival"
	if got := strings.Join(taken, ", "); got != want {
		t.Errorf("taken: %s, want each once: %s", got, want)
	}
}

func TestARoleThatCannotBeTaken(t *testing.T) {
	for code, permanent := range map[string]bool{"AccessDenied": true, "Throttling": false, "InternalFailure": false} {
		s := &services{fail: func(a asked) (int, map[string]string, string) {
			status := 400
			if code == "InternalFailure" {
				status = 500
			}
			return status, nil, `<ErrorResponse><Error><Code>` + code + `</Code><Message>words</Message></Error></ErrorResponse>`
		}}
		_, err := callerOf(t, s).Call(t.Context(), target.AWS{ARN: queueARN, RoleARN: roleARN}, attempt())
		var f *target.Failure
		if !errors.As(err, &f) || f.Permanent != permanent || permanent != strings.Contains(f.Message, "external ID belfry:acme") || len(s.got) != 1 {
			t.Errorf("%s: %v after %d requests", code, err, len(s.got))
		}
	}
}

// Whatever jobs and tenants are called, the names that services know repeated requests by are valid, and differ where runs differ.
func TestNamesOfRepeats(t *testing.T) {
	seen := map[string]bool{}
	long := strings.Repeat("a", 128)
	for _, tenant := range []string{"acme", "rival", long} {
		for _, job := range []string{"report", "re.port", "re-port", long} {
			for _, run := range []string{job + "~0mi8xk2p0", job + "~0mi8xk2p0~0123456789abc"} {
				call := target.Call{Tenant: tenant, Job: job, Run: run}
				r := request{arn: target.ARN{Service: target.ServiceSQS, Resource: "q.fifo"}, call: call}
				_, once := r.order()
				name := executionName(call)
				if len(name) > 80 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(*once) > 128 {
					t.Errorf("the names %s and %s", name, *once)
				}
				if seen[name] || seen[*once] {
					t.Errorf("%s and %s of tenant %s have the name of another run", name, *once, tenant)
				}
				seen[name], seen[*once] = true, true
				call.Attempt, call.Fence = 9, 9
				if executionName(call) != name {
					t.Error("a later attempt has another name")
				}
			}
		}
	}
}
