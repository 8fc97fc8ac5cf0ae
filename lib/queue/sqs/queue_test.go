package sqs_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
)

// virtual runs a test in virtual time, on a fake service behind a transport, nil for none.
func virtual(t *testing.T, between through, test func(t *testing.T, s *service, q *sqs.Queue)) {
	synctest.Test(t, func(t *testing.T) {
		s := pool()
		s.latency = 10 * time.Millisecond
		var transport http.RoundTripper = s
		if between != nil {
			transport = between.over(s)
		}
		q := over(t, transport)
		test(t, s, q)
		q.Close()
	})
}

func send(t *testing.T, q *sqs.Queue, p queue.Priority, texts ...string) []error {
	t.Helper()
	var batch []queue.Outgoing
	for _, text := range texts {
		batch = append(batch, queue.Outgoing{Body: []byte(text)})
	}
	errs, err := q.Send(t.Context(), p, batch...)
	if err != nil {
		t.Fatal(err)
	}
	return errs
}

func receive(t *testing.T, q *sqs.Queue, wait, visibility time.Duration) []queue.Message {
	t.Helper()
	got, err := q.Receive(t.Context(), queue.MaxBatch, wait, visibility)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func ready(t *testing.T, s *service, p queue.Priority) int64 {
	t.Helper()
	depth, err := s.queues["test-"+string(p)].Depth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return depth[queue.Normal].Ready
}

func TestThrottledSendsAreRefusedForLoad(t *testing.T) {
	sends := 0
	virtual(t, func(operation string, body []byte, forward func([]byte) (*http.Response, error)) (*http.Response, error) {
		if operation == "SendMessageBatch" {
			sends++
			return throttle(), nil
		}
		return forward(body)
	}, func(t *testing.T, s *service, q *sqs.Queue) {
		start := time.Now()
		for _, err := range send(t, q, queue.Normal, "a", "b") {
			if !errors.Is(err, queue.ErrFull) {
				t.Errorf("got %v, want ErrFull", err)
			}
		}
		if took := time.Since(start); sends != 4 || took > time.Second {
			t.Errorf("%d tries in %v, want 4 within a second", sends, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
		defer cancel()
		errs, err := q.Send(ctx, queue.Normal, queue.Outgoing{Body: []byte("x")})
		if err := errors.Join(append(errs, err)...); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the pause to end with the context", err)
		}
	})
}

func TestThrottledEntriesGoAgain(t *testing.T) {
	sends := 0
	virtual(t, func(operation string, body []byte, forward func([]byte) (*http.Response, error)) (*http.Response, error) {
		if operation == "SendMessageBatch" {
			if sends++; sends < 3 {
				return partly(body, forward, func(i int) bool { return i == 0 }, failure{Code: "RequestThrottled", SenderFault: true})
			}
		}
		return forward(body)
	}, func(t *testing.T, s *service, q *sqs.Queue) {
		if err := errors.Join(send(t, q, queue.High, "a", "b", "c")...); err != nil {
			t.Error(err)
		}
		if n := ready(t, s, queue.High); n != 3 || sends != 3 {
			t.Errorf("%d messages by %d requests, want 3 by 3", n, sends)
		}
	})
}

func TestALostAnswerDoublesAndLosesNothing(t *testing.T) {
	lost := false
	virtual(t, func(operation string, body []byte, forward func([]byte) (*http.Response, error)) (*http.Response, error) {
		if operation == "SendMessageBatch" && !lost {
			lost = true
			if _, err := forward(body); err != nil {
				return nil, err
			}
			return nil, errReset
		}
		return forward(body)
	}, func(t *testing.T, s *service, q *sqs.Queue) {
		if err := errors.Join(send(t, q, queue.Low, "a")...); err != nil {
			t.Error(err)
		}
		if n := ready(t, s, queue.Low); n != 2 {
			t.Errorf("%d messages, want the doubled one", n)
		}
	})
}

func TestASendThatNobodyAnswersEndsAndIsOpen(t *testing.T) {
	var ended []time.Duration
	synctest.Test(t, func(t *testing.T) {
		s := pool()
		q := over(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), "SendMessageBatch") {
				return s.RoundTrip(r)
			}
			start := time.Now()
			<-r.Context().Done()
			ended = append(ended, time.Since(start))
			return nil, r.Context().Err()
		}))
		errs := send(t, q, queue.Normal, "a", "b")
		for _, err := range errs {
			if err == nil || errors.Is(err, queue.ErrFull) || !strings.Contains(err.Error(), "no answer in time") {
				t.Errorf("got %v, want an error that leaves it open", err)
			}
		}
		if len(ended) != 4 || ended[0] != 5*time.Second {
			t.Errorf("tries ended after %v, want 4 of 5s", ended)
		}
		q.Close()
	})
}

func TestBatchesAreFilledByBytes(t *testing.T) {
	var sizes []int
	virtual(t, func(operation string, body []byte, forward func([]byte) (*http.Response, error)) (*http.Response, error) {
		if operation == "SendMessageBatch" {
			sizes = append(sizes, strings.Count(string(body), `"MessageBody"`))
		}
		return forward(body)
	}, func(t *testing.T, s *service, q *sqs.Queue) {
		large := strings.Repeat("x", 70_000) // 93,336 as base64: two in 256 KiB
		if err := errors.Join(send(t, q, queue.Normal, large, large, "a", large, large, large, "b")...); err != nil {
			t.Error(err)
		}
		if want := []int{3, 2, 2}; len(sizes) != 3 || sizes[0] != want[0] || sizes[1] != want[1] || sizes[2] != want[2] {
			t.Errorf("requests of %v messages, want %v", sizes, want)
		}
	})
}

// A poll that a call began goes on after it. What it brings is given to the next call with the visibility that this one asks for.
func TestWhatComesBetweenTwoCallsIsKeptForTheNext(t *testing.T) {
	virtual(t, nil, func(t *testing.T, s *service, q *sqs.Queue) {
		receive(t, q, time.Second, time.Minute)
		send(t, q, queue.Low, "early", "late")
		time.Sleep(1500 * time.Millisecond)
		got := receive(t, q, 0, 2*time.Minute)
		if len(got) != 2 || s.requests("ReceiveMessage") != 3 {
			t.Fatalf("received %v by %d polls, want both by the 3 of the first call", got, s.requests("ReceiveMessage"))
		}
		if n := s.requests("ChangeMessageVisibilityBatch"); n != 1 {
			t.Errorf("%d requests made the visibility what was asked for, want 1", n)
		}
		time.Sleep(119 * time.Second)
		if n := ready(t, s, queue.Low); n != 0 {
			t.Error("the message came back before its visibility was over")
		}
	})
}

func TestWhatNobodyTakesIsHandedBack(t *testing.T) {
	virtual(t, nil, func(t *testing.T, s *service, q *sqs.Queue) {
		receive(t, q, time.Second, time.Hour)
		send(t, q, queue.High, "for others")
		time.Sleep(3 * time.Second)
		if n := ready(t, s, queue.High); n != 1 {
			t.Error("a message that nobody takes is not handed back")
		}
		receive(t, q, time.Second, time.Hour)
	})
}

func TestCloseHandsBackWhatWasKept(t *testing.T) {
	virtual(t, nil, func(t *testing.T, s *service, q *sqs.Queue) {
		receive(t, q, time.Second, time.Hour)
		send(t, q, queue.Normal, "kept")
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		q.Close()
		if n := ready(t, s, queue.Normal); n != 1 || time.Since(start) > time.Second {
			t.Errorf("%d handed back after %v", n, time.Since(start))
		}
	})
}

func TestCloseCarriesOutWhatWasSettled(t *testing.T) {
	virtual(t, nil, func(t *testing.T, s *service, q *sqs.Queue) {
		send(t, q, queue.Normal, "done")
		got := receive(t, q, time.Second, time.Second)
		settled := make(chan error, 1)
		go func() {
			errs, err := q.Delete(t.Context(), got...)
			settled <- errors.Join(append(errs, err)...)
		}()
		synctest.Wait()
		q.Close()
		if err := <-settled; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if n := ready(t, s, queue.Normal); n != 0 {
			t.Error("the message was not deleted")
		}
	})
}

func TestAMissingQueueDoesNotHoldUpTheOthers(t *testing.T) {
	virtual(t, nil, func(t *testing.T, s *service, q *sqs.Queue) {
		delete(s.queues, "test-low")
		send(t, q, queue.Normal, "work")
		if got := receive(t, q, queue.MaxWait, time.Minute); len(got) != 1 {
			t.Errorf("received %v", got)
		}
		start := time.Now()
		_, err := q.Receive(t.Context(), 1, 10*time.Second, time.Minute)
		if err == nil || !strings.Contains(err.Error(), "there is no queue test-low in eu-west-1") || time.Since(start) < 10*time.Second {
			t.Errorf("got %v after %v, want the missing queue at the end of the wait", err, time.Since(start))
		}
		if n := s.requests("GetQueueUrl"); n > 12 {
			t.Errorf("asked %d times for 3 queues", n)
		}
	})
}

// SQS holds 120,000 messages in flight and then says OverLimit: that is told, nothing spins, and work goes on when it is over.
func TestFault26_TooManyInFlight(t *testing.T) {
	var full atomic.Bool
	full.Store(true)
	var polls atomic.Int64
	virtual(t, func(operation string, body []byte, forward func([]byte) (*http.Response, error)) (*http.Response, error) {
		if operation == "ReceiveMessage" {
			polls.Add(1)
			if full.Load() {
				return reply(http.StatusForbidden, map[string]string{"__type": "com.amazonaws.sqs#OverLimit", "message": "too many in flight"}), nil
			}
		}
		return forward(body)
	}, func(t *testing.T, s *service, q *sqs.Queue) {
		send(t, q, queue.High, "work")
		for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(time.Second) {
			if _, err := q.Receive(t.Context(), 1, queue.MaxWait, time.Minute); err == nil || !strings.Contains(err.Error(), "OverLimit") {
				t.Fatalf("got %v, want it told", err)
			}
		}
		if n := polls.Load(); n > 3*4*12 {
			t.Errorf("%d requests in a minute", n)
		}
		full.Store(false)
		time.Sleep(30 * time.Second)
		if got := receive(t, q, queue.MaxWait, time.Minute); len(got) != 1 {
			t.Errorf("received %v, want the message", got)
		}
	})
}

// What SQS and its emulators say of receipts.
func TestFault22_OldReceiptsAreHarmless(t *testing.T) {
	harmless := func(err error) bool { return err == nil }
	limit := func(err error) bool { return errors.Is(err, queue.ErrLimit) }
	told := func(err error) bool { return err != nil && !limit(err) }
	for _, c := range []struct {
		code, message string
		right         func(error) bool
	}{
		{"ReceiptHandleIsInvalid", "The receipt handle has expired", harmless},
		{"AWS.SimpleQueueService.MessageNotInflight", "", harmless},
		{"InvalidParameterValue", "Value r for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.", harmless},
		{"InvalidParameterValue", "Value 43200 for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [43200 seconds].", limit},
		{"InvalidAddress", "something else", told},
	} {
		t.Run(c.code+" "+c.message, func(t *testing.T) {
			virtual(t, func(operation string, body []byte, forward func([]byte) (*http.Response, error)) (*http.Response, error) {
				if strings.HasSuffix(operation, "Batch") {
					return partly(body, forward, func(int) bool { return false }, failure{Code: c.code, Message: c.message, SenderFault: true})
				}
				return forward(body)
			}, func(t *testing.T, s *service, q *sqs.Queue) {
				m := queue.Message{Priority: queue.Normal, Receipt: "r"}
				extended, err := q.Extend(t.Context(), 12*time.Hour, m)
				if err != nil {
					t.Fatal(err)
				}
				deleted, err := q.Delete(t.Context(), m)
				if err != nil {
					t.Fatal(err)
				}
				for _, err := range []error{extended[0], deleted[0]} {
					if !c.right(err) {
						t.Errorf("got %v", err)
					}
				}
			})
		})
	}
}

// SQS knows whole seconds: a message that is to be hidden for a part of one more is hidden for all of it, at its taking and after it.
func TestP10_Fault35_AVisibilityIsRoundedUp(t *testing.T) {
	virtual(t, nil, func(t *testing.T, s *service, q *sqs.Queue) {
		send(t, q, queue.Normal, "a")
		const hidden = 1500 * time.Millisecond
		for _, extended := range []bool{false, true} {
			got := receive(t, q, time.Second, hidden)
			if len(got) != 1 {
				t.Fatalf("%d messages, want the one", len(got))
			}
			if extended {
				if errs, err := q.Extend(t.Context(), hidden, got...); err != nil || errs[0] != nil {
					t.Fatal(errs, err)
				}
			}
			time.Sleep(hidden - 100*time.Millisecond)
			if n := ready(t, s, queue.Normal); n != 0 {
				t.Errorf("extended %t: the message can be taken before its %s are over", extended, hidden)
			}
			time.Sleep(time.Second)
		}
	})
}

// Whoever began a poll may give up, or be a request that is over: what the poll brings is for the next.
func TestAPollOutlivesWhoBeganIt(t *testing.T) {
	virtual(t, nil, func(t *testing.T, s *service, q *sqs.Queue) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := q.Receive(ctx, 1, queue.MaxWait, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v, want the context's error", err)
		}
		time.Sleep(time.Second)
		send(t, q, queue.Low, "later")
		if got := receive(t, q, queue.MaxWait, time.Minute); len(got) != 1 || s.requests("ReceiveMessage") != 3 {
			t.Errorf("received %v by %d polls, want the message by the 3 of the first call", got, s.requests("ReceiveMessage"))
		}
	})
}

func TestABodyOfSomebodyElseIsGivenAsItIs(t *testing.T) {
	if m := sqs.Delivery(queue.Low, "not base64!", "r", nil); string(m.Body) != "not base64!" || m.Priority != queue.Low || m.Receives != 1 {
		t.Errorf("got %+v", m)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		code string // that SQS refuses with; "" for an error on the way
		lost error
		want string
	}{
		"missing queue":   {"com.amazonaws.sqs#QueueDoesNotExist", nil, "sqs: there is no queue test-high in eu-west-1: deploy the template there, make it by \"belfry queue create\", or correct the prefix or the region of the queue's address"},
		"no right":        {"AccessDeniedException", nil, "sqs: no right to GetQueueUrl on test-high in eu-west-1: allow sqs:GetQueueUrl on it to the role that this process has (aws sts get-caller-identity names it)"},
		"old credentials": {"ExpiredToken", nil, "sqs: AWS does not accept the credentials (ExpiredToken): renew them, or choose others by AWS_PROFILE"},
		"key":             {"KmsAccessDenied", nil, "sqs: the key of test-high cannot be used (KmsAccessDenied): allow kms:GenerateDataKey and kms:Decrypt on it"},
		"wrong region":    {"", &net.DNSError{Err: "no such host", Name: "sqs.eu-wst-1.amazonaws.com", IsNotFound: true}, "sqs: there is no host sqs.eu-wst-1.amazonaws.com: correct the region or the endpoint of the queue's address (eu-west-1)"},
		"nobody there":    {"", &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}, "sqs: GetQueueUrl on test-high: eu-west-1 does not answer: see that it can be reached from here: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := over(t, roundTripper(func(*http.Request) (*http.Response, error) {
					if c.lost != nil {
						return nil, c.lost
					}
					return reply(http.StatusBadRequest, map[string]string{"__type": c.code, "message": "no"}), nil
				}))
				_, err := q.Send(t.Context(), queue.High, queue.Outgoing{Body: []byte("x")})
				if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("send gave\n%v, want\n%s", err, c.want)
				}
				if err := q.Check(t.Context()); err == nil || strings.Count(err.Error(), "\n") != 2 {
					t.Errorf("the check gave %v, want a line for each queue", err)
				}
				q.Close()
			})
		})
	}
	t.Run("no credentials", func(t *testing.T) {
		cfg := awsConfig()
		cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("no EC2 IMDS role found")
		})
		q, err := sqs.New(sqs.Config{Address: sqs.Address{Prefix: "test"}, AWS: cfg, Rand: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = q.Send(t.Context(), queue.High, queue.Outgoing{Body: []byte("x")})
		if want := "sqs: there are no AWS credentials: give this process a role, or choose a profile by AWS_PROFILE"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]sqs.Address{
		"sqs://belfry":                    {Prefix: "belfry"},
		"sqs://Belfry_2?region=eu-west-1": {Prefix: "Belfry_2", Region: "eu-west-1"},
		"sqs://belfry-gpu?region=elasticmq&endpoint=http://127.0.0.1:9324": {Prefix: "belfry-gpu", Region: "elasticmq", Endpoint: "http://127.0.0.1:9324"},
	} {
		if got, err := sqs.ParseURL(text); err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "sqs:", "sqs://", "sqs:belfry", "http://belfry", "sqs://belfry/high", "sqs://bel.fry", "sqs://me@belfry", "sqs://belfry:80",
		"sqs://belfry?regoin=eu-west-1", "sqs://belfry?endpoint=127.0.0.1:9324", "sqs://belfry#a", "sqs://" + strings.Repeat("x", 74)} {
		if got, err := sqs.ParseURL(text); err == nil || !strings.HasPrefix(err.Error(), "queue") {
			t.Errorf("%q is %+v, %v, want an error that names it", text, got, err)
		}
	}
	if _, err := sqs.New(sqs.Config{Address: sqs.Address{Prefix: "belfry"}, AWS: aws.Config{Credentials: awsConfig().Credentials}, Rand: func() float64 { return 0 }}); err == nil || !strings.HasPrefix(err.Error(), "queue region: ") {
		t.Errorf("without a region: %v", err)
	}
}
