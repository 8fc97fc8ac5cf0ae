package sqs

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/belfry-scheduler/belfry/lib/queue"
)

const (
	// answering is how long one request may take. SQS answers within tens of milliseconds; after this a connection is likelier
	// dead than its answer late.
	answering = 5 * time.Second
	// tries and the pauses between them, of 50, 100 and 200 ms at most, get over a restart or a moment of load. What lasts longer is
	// for the caller, who has other things to do meanwhile.
	tries      = 4
	firstPause = 50 * time.Millisecond
)

// call makes a request until it is answered, fails for good, or has been tried often enough.
func call[T any](ctx context.Context, q *Queue, limit time.Duration, request func(context.Context) (T, error)) (T, error) {
	var nothing T
	open := false // whether an earlier try may have been carried out
	for try := 1; ; try++ {
		one, cancel := context.WithTimeout(ctx, limit)
		out, err := request(one)
		cancel()
		switch {
		case err == nil:
			return out, nil
		case ctx.Err() != nil:
			return nothing, ctx.Err()
		case !passing(err):
			return nothing, err
		}
		open = open || !throttled(err)
		if try == tries {
			if !open {
				return nothing, &refusal{err}
			}
			return nothing, err
		}
		if err := q.pause(ctx, try); err != nil {
			return nothing, err
		}
	}
}

// refusal is an error that says: for load, and nothing was done.
type refusal struct{ error }

func (r *refusal) Unwrap() []error { return []error{queue.ErrFull, r.error} }

// pause waits before the next try: anything from nothing to the bound, so that those who failed together do not come back together.
func (q *Queue) pause(ctx context.Context, try int) error {
	timer := time.NewTimer(time.Duration(q.rand() * float64(firstPause<<(try-1))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// busy are the ways in which SQS, and KMS behind it, say "later".
var busy = retry.ThrottleErrorCode{Codes: map[string]struct{}{
	"RequestThrottled": {}, "KmsThrottled": {}, "KMS.ThrottlingException": {}, "OverLimit": {},
	"Throttling": {}, "ThrottlingException": {}, "ThrottledException": {}, "RequestThrottledException": {},
	"TooManyRequestsException": {}, "RequestLimitExceeded": {}, "SlowDown": {},
}}

func throttled(err error) bool { return busy.IsErrorThrottle(err) == aws.TrueTernary }

// passing tells whether another try may do better.
func passing(err error) bool {
	var timeout net.Error
	var name *net.DNSError
	switch {
	case throttled(err), retry.IsErrorRetryables(retry.DefaultRetryables).IsErrorRetryable(err) == aws.TrueTernary:
		return true
	case status(err) != 0:
		return status(err) >= 500
	case errors.As(err, &name) && name.IsNotFound:
		return false
	default:
		return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	}
}

// answer is what SQS says of the entries of a batch, whose IDs are their places in it.
type answer struct {
	done   []string
	failed []types.BatchResultErrorEntry
}

// entries makes a request for n entries, and requests for those that it failed for a moment. It gives one error each, and an error
// of its own where nothing was tried.
func (l *lane) entries(ctx context.Context, action string, n int, request func(ctx context.Context, still []int) (answer, error)) ([]error, error) {
	errs := make([]error, n)
	still := make([]int, n)
	for i := range still {
		still[i] = i
	}
	for try := 1; ; try++ {
		got, err := call(ctx, l.q, answering, func(ctx context.Context) (answer, error) { return request(ctx, still) })
		if err != nil {
			err = l.explain(action, err)
			for _, i := range still {
				errs[i] = err
			}
			if try == 1 && untried(err) {
				return nil, err
			}
			return errs, nil
		}
		verdicts := map[string]types.BatchResultErrorEntry{}
		for _, f := range got.failed {
			verdicts[aws.ToString(f.Id)] = f
		}
		var again []int
		for _, i := range still {
			id := strconv.Itoa(i)
			if slices.Contains(got.done, id) {
				errs[i] = nil
				continue
			}
			err := errSilent
			failed, told := verdicts[id]
			if told {
				err = &smithy.GenericAPIError{Code: aws.ToString(failed.Code), Message: aws.ToString(failed.Message)}
				if throttled(err) {
					err = &refusal{err}
				}
			}
			errs[i] = l.explain(action, err)
			if !told || !failed.SenderFault || errors.Is(err, queue.ErrFull) {
				again = append(again, i)
			}
		}
		if len(again) == 0 || try == tries {
			return errs, nil
		}
		still = again
		if err := l.q.pause(ctx, try); err != nil {
			return errs, nil //nolint:nilerr // each of these has its error; there is no time for another try
		}
	}
}

var errSilent = errors.New("the answer does not say what became of the message")

// untried tells of an error that SQS refused the request as a whole, and not for load.
func untried(err error) bool {
	code := status(err)
	return code >= 400 && code < 500 && !errors.Is(err, queue.ErrFull)
}

// status is that of the answer, 0 where there is none.
func status(err error) int {
	var answered *smithyhttp.ResponseError
	if !errors.As(err, &answered) || answered.Response == nil {
		return 0
	}
	return answered.HTTPStatusCode()
}

// lookUp gives the URL of the lane's queue. It is asked for once; two who ask at the same time both do.
func (l *lane) lookUp(ctx context.Context) (*string, error) {
	if known := l.url.Load(); known != nil {
		return known, nil
	}
	out, err := call(ctx, l.q, answering, func(ctx context.Context) (*sqs.GetQueueUrlOutput, error) {
		return l.q.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(l.name)})
	})
	if err != nil {
		return nil, l.explain("GetQueueUrl", err)
	}
	l.url.Store(out.QueueUrl)
	return out.QueueUrl, nil
}
