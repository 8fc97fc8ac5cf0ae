package dynamo_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
)

// wire is a DynamoDB that says what a test makes it say, and counts what it was asked. The read with which a store is opened
// gets a good answer and is not counted.
type wire struct {
	answer func(operation string, n int, body map[string]any) (*reply, error)

	mu     sync.Mutex
	asked  map[string]int
	opened bool
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	w.mu.Lock()
	if !w.opened {
		w.opened = true
		w.mu.Unlock()
		return says(200, `{}`).response(), nil
	}
	if w.asked == nil {
		w.asked = map[string]int{}
	}
	w.asked[operation]++
	n := w.asked[operation]
	w.mu.Unlock()
	answer, err := w.answer(operation, n, body)
	if answer == nil && err == nil { // no answer, ever
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if err != nil {
		return nil, err
	}
	return answer.response(), nil
}

func (w *wire) count(operation string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[operation]
}

// reply is what a DynamoDB answers.
type reply struct {
	status int
	body   string
}

func says(status int, body string) *reply { return &reply{status, body} }

func (r *reply) response() *http.Response {
	return &http.Response{
		StatusCode: r.status, Body: io.NopCloser(strings.NewReader(r.body)), ContentLength: int64(len(r.body)),
		Header: http.Header{
			"Content-Type": {"application/x-amz-json-1.0"},
			"X-Amz-Crc32":  {fmt.Sprint(crc32.ChecksumIEEE([]byte(r.body)))},
		},
	}
}

// refuses is an error as DynamoDB says it.
func refuses(status int, code string, more ...string) *reply {
	return says(status, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"by the test"%s}`, code, strings.Join(more, "")))
}

// record is an item in DynamoDB's JSON.
func record(version, attempt int, value string) string {
	return fmt.Sprintf(`{"p":{"B":"cA=="},"s":{"B":"cw=="},"n":{"N":"%d"},"a":{"N":"%d"},"v":{"B":"%s"}}`,
		version, attempt, base64.StdEncoding.EncodeToString([]byte(value)))
}

func config(w aws.HTTPClient) dynamo.Config {
	return dynamo.Config{
		AWS: aws.Config{
			Region: "eu-central-1", HTTPClient: w,
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
			}),
		},
		Table: "belfry", Random: rand.Uint64,
	}
}

func opened(t *testing.T, w *wire) *dynamo.Store {
	t.Helper()
	s, err := dynamo.Open(t.Context(), config(w))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

var at = store.Key{Partition: "p", Sort: "s"}

func putAt(cond store.Cond) store.Op {
	return store.Op{Kind: store.Put, Key: at, If: cond, Value: []byte("v"), Attempt: 7}
}

var errBroken = errors.New("connection reset by peer")

func always(status int, code string, more ...string) func(string, int, map[string]any) (*reply, error) {
	return func(string, int, map[string]any) (*reply, error) { return refuses(status, code, more...), nil }
}

// during runs calls until they end, or the time is over, and gives how long they took.
func during(call func()) time.Duration {
	began := time.Now()
	call()
	return time.Since(began)
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
