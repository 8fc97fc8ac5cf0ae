package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// failure is what an error of the SDK says about the request.
type failure int

const (
	unknown   failure = iota // no answer, or one that does not tell: a write may have happened
	throttled                // refused for load or for another's transaction: nothing was written, try again
	refused                  // nothing was written, and trying again would not help
)

// unsigned says that a request could not be signed, and so was never sent.
type unsigned struct{ cause error }

func (u *unsigned) Unwrap() error { return u.cause }
func (u *unsigned) Error() string {
	return fmt.Sprintf("no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role (%v)", u.cause)
}

// credentials name the error of those that they are made of.
type credentials struct{ aws.CredentialsProvider }

func (c credentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	given, err := c.CredentialsProvider.Retrieve(ctx)
	if err != nil && ctx.Err() == nil {
		return given, &unsigned{err}
	}
	return given, err
}

// busy are the codes of errors, and of reasons of a cancelled transaction, that mean "not now".
var busy = map[string]bool{
	"ProvisionedThroughputExceededException": true,
	"ProvisionedThroughputExceeded":          true,
	"ThrottlingException":                    true,
	"ThrottlingError":                        true,
	"Throttling":                             true,
	"RequestLimitExceeded":                   true,
	"RequestThrottled":                       true,
	"RequestThrottledException":              true,
	"TransactionConflict":                    true,
	"TransactionConflictException":           true,
	"TransactionInProgressException":         true,
	"ReplicatedWriteConflictException":       true,
}

// judge tells what happened. Only a 4xx with a code that can be read is a refusal; whatever else comes back from the network
// proves nothing.
func judge(err error) failure {
	var never *unsigned
	if errors.As(err, &never) {
		return refused
	}
	if reasons, ok := cancelled(err); ok {
		for _, r := range reasons {
			if busy[codeOf(r)] {
				return throttled
			}
		}
		return refused
	}
	var said smithy.APIError
	if !errors.As(err, &said) || said.ErrorCode() == "" {
		return unknown
	}
	if busy[said.ErrorCode()] {
		return throttled
	}
	var answer *awshttp.ResponseError
	if errors.As(err, &answer) && answer.HTTPStatusCode() >= 400 && answer.HTTPStatusCode() < 500 {
		if answer.HTTPStatusCode() == http.StatusTooManyRequests {
			return throttled
		}
		if answer.HTTPStatusCode() != http.StatusRequestTimeout {
			return refused
		}
	}
	return unknown
}

// limits are what DynamoDB may be short of, by how its reasons end: TableWriteKeyRangeThroughputExceeded.
var limits = []struct{ ends, means string }{
	{"KeyRangeThroughputExceeded", "too much for one partition, which takes 1,000 writes or 3,000 reads a second"},
	{"AccountLimitExceeded", "too much for the account's quota of a table"},
	{"MaxOnDemandThroughputExceeded", "more than the table's own maximum"},
	{"ProvisionedThroughputExceeded", "more than the table has provisioned"},
}

// refusedForLoad tells a throttle, and what was short where DynamoDB says so. What to do about it is in docs/store.md.
func (s *Store) refusedForLoad(err error) error {
	var reasons []types.ThrottlingReason
	var provisioned *types.ProvisionedThroughputExceededException
	var account *types.RequestLimitExceeded
	var other *types.ThrottlingException
	switch {
	case errors.As(err, &provisioned):
		reasons = provisioned.ThrottlingReasons
	case errors.As(err, &account):
		reasons = account.ThrottlingReasons
	case errors.As(err, &other):
		reasons = other.ThrottlingReasons
	}
	for _, r := range reasons {
		for _, l := range limits {
			if strings.HasSuffix(aws.ToString(r.Reason), l.ends) {
				return fmt.Errorf("%w: %s: %s: %w", store.ErrThrottled, s.place, l.means, plain(err))
			}
		}
	}
	return fmt.Errorf("%w: %s: %w", store.ErrThrottled, s.place, plain(err))
}

// explain says a refusal in words that tell what to do about it.
func (s *Store) explain(err error) error {
	var said smithy.APIError
	var missing *types.ResourceNotFoundException
	var never *unsigned
	switch {
	case errors.As(err, &never):
		return never
	case errors.As(err, &missing):
		return fmt.Errorf("there is no %s: deploy the template there, make it by \"belfry table create\", or name another table or region", s.place)
	case !errors.As(err, &said):
		return s.silent(err)
	}
	switch said.ErrorCode() {
	case "AccessDeniedException":
		return fmt.Errorf("%s: the credentials lack a right: %s", s.place, said.ErrorMessage())
	case "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException", "MissingAuthenticationTokenException",
		"MissingAuthenticationToken", "IncompleteSignatureException", "InvalidClientTokenId":
		return fmt.Errorf("%s: AWS refuses the credentials, or this host's clock is wrong: %s", s.place, said.ErrorMessage())
	case "ValidationException":
		return fmt.Errorf("%s: %s (Belfry's tables have the keys %s and %s, both binary)", s.place, said.ErrorMessage(), attrPartition, attrSort)
	default:
		return fmt.Errorf("%s: %w", s.place, plain(err))
	}
}

// silent says that nobody answers.
func (s *Store) silent(err error) error {
	var name *net.DNSError
	if errors.As(err, &name) && name.IsNotFound {
		return fmt.Errorf("%s: there is no host %s: is the region right?", s.place, name.Name)
	}
	return fmt.Errorf("%s does not answer: see that it can be reached from here: %w", s.place, plain(err))
}

// plain is an error without what the SDK says around it. What AWS said keeps the request's ID, by which AWS's support finds it.
func plain(err error) error {
	var send *smithyhttp.RequestSendError
	if errors.As(err, &send) {
		return send.Err
	}
	var operation *smithy.OperationError
	if errors.As(err, &operation) {
		return operation.Err
	}
	return err
}

const (
	tries     = 6
	firstWait = 25 * time.Millisecond
)

// pause waits before a further try: up to 25 ms, doubling, with full jitter, so that those who were refused together do not
// come back together.
func (s *Store) pause(ctx context.Context, try int) error {
	wait := time.NewTimer(time.Duration(s.random() % uint64(firstWait<<min(try, 6))))
	defer wait.Stop()
	select {
	case <-wait.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reading does a request that changes nothing, again where that may help.
func (s *Store) reading(ctx context.Context, request func(context.Context) error) error {
	for try := 0; ; try++ {
		err := s.limited(ctx, request)
		if err == nil || ctx.Err() != nil {
			return err
		}
		why := judge(err)
		switch {
		case why == refused:
			return s.explain(err)
		case try+1 == tries && why == throttled:
			return s.refusedForLoad(err)
		case try+1 == tries:
			return s.silent(err)
		}
		if err := s.pause(ctx, try); err != nil {
			return err
		}
	}
}

// writing does a request that changes something: once, but for refusals, after which nothing was written. What it does not
// settle itself, a failed condition, is left to the caller in the SDK's form.
func (s *Store) writing(ctx context.Context, request func(context.Context) error) error {
	for try := 0; ; try++ {
		err := s.limited(ctx, request)
		if err == nil {
			return nil
		}
		// Even where the context ended meanwhile: a definite answer is more than "it may have happened".
		why := judge(err)
		switch {
		case isConditionFailed(err):
			return err
		case why == refused:
			return s.explain(err)
		case why == unknown && ctx.Err() != nil:
			return ctx.Err()
		case why == unknown:
			return fmt.Errorf("%w: %s: %w", store.ErrUnknown, s.place, plain(err))
		case try+1 == tries:
			return s.refusedForLoad(err)
		}
		if err := s.pause(ctx, try); err != nil {
			return fmt.Errorf("%w, and then: %w", store.ErrThrottled, err)
		}
	}
}

// limited gives a request its time. The limit's own error does not pass for the caller's.
func (s *Store) limited(ctx context.Context, request func(context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	err := request(within)
	switch {
	case err != nil && ctx.Err() != nil && judge(err) == unknown:
		return ctx.Err()
	case err != nil && within.Err() != nil && judge(err) == unknown:
		return fmt.Errorf("no answer within %s", s.timeout)
	default:
		return err
	}
}

// isConditionFailed tells whether a condition of the write did not hold, and nothing else was the matter. A transaction that
// also met another one, or was throttled in part, says less than the whole: it may name another's item and not the own one
// that would prove that it was done already. So it is tried again until it names all.
func isConditionFailed(err error) bool {
	var single *types.ConditionalCheckFailedException
	if errors.As(err, &single) {
		return true
	}
	reasons, ok := cancelled(err)
	failed := false
	for _, r := range reasons {
		switch code := codeOf(r); {
		case code == conditionFailed:
			failed = true
		case code != "" && code != "None":
			return false
		}
	}
	return ok && failed
}

const conditionFailed = "ConditionalCheckFailed"

func cancelled(err error) ([]types.CancellationReason, bool) {
	var transaction *types.TransactionCanceledException
	if !errors.As(err, &transaction) {
		return nil, false
	}
	return transaction.CancellationReasons, true
}

func codeOf(r types.CancellationReason) string {
	if r.Code == nil {
		return ""
	}
	return *r.Code
}
