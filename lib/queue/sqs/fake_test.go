package sqs_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/local"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
)

// service is SQS as a transport, without a network, so that it also runs in virtual time. Each of its queues is a local one.
// What it is not asked for by this package it does not know.
type service struct {
	latency time.Duration

	mu     sync.Mutex
	queues map[string]*local.Queue
	asked  map[string]int // requests, by operation
	bodies []string       // of all messages: as text they are longer than a local queue takes
}

// pool makes a service with the queues of the pool "test".
func pool() *service {
	s := &service{queues: map[string]*local.Queue{}, asked: map[string]int{}}
	for _, p := range queue.Priorities {
		s.queues["test-"+string(p)] = local.New(local.Config{Now: time.Now})
	}
	return s
}

func (s *service) requests(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[operation]
}

// ask is a request or an answer, as far as the fake knows them.
type ask struct {
	QueueName           string
	QueueUrl            string
	Entries             []entry `json:",omitempty"`
	MaxNumberOfMessages int
	WaitTimeSeconds     int
	VisibilityTimeout   *int
}

type entry struct {
	Id                string
	MessageBody       string `json:",omitempty"`
	MessageGroupId    string `json:",omitempty"`
	DelaySeconds      int    `json:",omitempty"`
	ReceiptHandle     string `json:",omitempty"`
	VisibilityTimeout int
}

type failure struct {
	Id, Code, Message string
	SenderFault       bool
}

type refused struct{ code, message string }

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
	var in ask
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.asked[operation]++
	s.mu.Unlock()
	if err := pass(r.Context(), s.latency); err != nil {
		return nil, err
	}
	out, no, err := s.do(r.Context(), operation, in)
	if err != nil {
		return nil, err
	}
	if no != nil {
		return reply(http.StatusBadRequest, map[string]string{"__type": "com.amazonaws.sqs#" + no.code, "message": no.message}), nil
	}
	return reply(http.StatusOK, out), nil
}

// pass lets time go by.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func reply(status int, body any) *http.Response {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(bytes.NewReader(text))}
}

func (s *service) do(ctx context.Context, operation string, in ask) (any, *refused, error) {
	name := in.QueueName
	if name == "" {
		name = path.Base(in.QueueUrl)
	}
	q := s.queues[name]
	if q == nil {
		return nil, &refused{"QueueDoesNotExist", "The specified queue does not exist."}, nil
	}
	switch operation {
	case "GetQueueUrl":
		return map[string]string{"QueueUrl": "https://sqs.test/1/" + name}, nil, nil
	case "SendMessageBatch":
		size := 0
		for _, e := range in.Entries {
			size += len(e.MessageBody)
		}
		if size > 1<<20 {
			return nil, &refused{"BatchRequestTooLong", "The length of all the messages put together is more than the limit."}, nil
		}
		return each(in.Entries, func(e entry) (map[string]string, error) {
			_, err := q.Send(ctx, queue.Normal, queue.Outgoing{Body: s.keep(e.MessageBody), Delay: time.Duration(e.DelaySeconds) * time.Second, Group: e.MessageGroupId})
			return map[string]string{"Id": e.Id, "MessageId": "m", "MD5OfMessageBody": sum(e.MessageBody)}, err
		}), nil, nil
	case "ReceiveMessage":
		hidden := 30 * time.Second
		if in.VisibilityTimeout != nil {
			hidden = time.Duration(*in.VisibilityTimeout) * time.Second
		}
		got, err := q.Receive(ctx, max(in.MaxNumberOfMessages, 1), time.Duration(in.WaitTimeSeconds)*time.Second, hidden)
		messages := []any{}
		for _, m := range got {
			body := s.kept(m.Body)
			messages = append(messages, map[string]any{"MessageId": "m", "Body": body, "MD5OfBody": sum(body), "ReceiptHandle": m.Receipt,
				"Attributes": map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.Receives), "SentTimestamp": strconv.FormatInt(m.Sent.UnixMilli(), 10)}})
		}
		return map[string]any{"Messages": messages}, nil, err
	case "DeleteMessageBatch":
		return each(in.Entries, func(e entry) (map[string]string, error) {
			errs, err := q.Delete(ctx, queue.Message{Receipt: e.ReceiptHandle})
			if err == nil {
				err = errs[0]
			}
			return map[string]string{"Id": e.Id}, err
		}), nil, nil
	case "ChangeMessageVisibilityBatch":
		return each(in.Entries, func(e entry) (map[string]string, error) {
			errs, err := q.Extend(ctx, time.Duration(e.VisibilityTimeout)*time.Second, queue.Message{Receipt: e.ReceiptHandle})
			if err == nil {
				err = errs[0]
			}
			return map[string]string{"Id": e.Id}, err
		}), nil, nil
	case "GetQueueAttributes":
		depth, err := q.Depth(ctx)
		d := depth[queue.Normal]
		return map[string]any{"Attributes": map[string]string{
			"ApproximateNumberOfMessages":           strconv.FormatInt(d.Ready, 10),
			"ApproximateNumberOfMessagesDelayed":    strconv.FormatInt(d.Delayed, 10),
			"ApproximateNumberOfMessagesNotVisible": strconv.FormatInt(d.Taken, 10),
		}}, nil, err
	}
	return nil, &refused{"InvalidAction", operation}, nil
}

func each(entries []entry, do func(entry) (map[string]string, error)) any {
	done, failed := []any{}, []failure{}
	for _, e := range entries {
		if out, err := do(e); err != nil {
			failed = append(failed, failure{e.Id, "ReceiptHandleIsInvalid", err.Error(), true})
		} else {
			done = append(done, out)
		}
	}
	return map[string]any{"Successful": done, "Failed": failed}
}

func (s *service) keep(body string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, body)
	return strconv.AppendInt(nil, int64(len(s.bodies)-1), 10)
}

func (s *service) kept(key []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, err := strconv.Atoi(string(key))
	if err != nil {
		panic(err)
	}
	return s.bodies[i]
}

func sum(text string) string {
	sum := md5.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// over gives a Queue whose requests a transport answers.
func over(t *testing.T, transport http.RoundTripper) *sqs.Queue {
	t.Helper()
	cfg := awsConfig()
	cfg.HTTPClient = &http.Client{Transport: transport}
	q, err := sqs.New(sqs.Config{Address: sqs.Address{Prefix: "test"}, AWS: cfg, Rand: rand.Float64})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

func awsConfig() aws.Config {
	return aws.Config{Region: "eu-west-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
	})}
}
