package awstarget

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// kind is what an answer of AWS means for the next attempt.
type kind int

const (
	unknown kind = iota // it may have been carried out
	later               // it was not carried out, and may be another time
	forGood             // it was not carried out, and never will
)

// laterCodes speak of the moment, or of the worker and its credentials, and not of the job: load, a resource that is being changed,
// a key that has just ended.
var laterCodes = []string{
	"ResourceConflictException", "ResourceNotReadyException", "ExecutionLimitExceeded", "ConcurrentModificationException", "OverLimit",
	"ExpiredToken", "ExpiredTokenException", "RequestExpired", "InvalidClientTokenId", "UnrecognizedClientException",
	"InvalidSignatureException", "SignatureDoesNotMatch", "IncompleteSignature", "MissingAuthenticationToken", "RequestTimeout",
	"RequestTimeoutException", "RequestThrottled", "KmsThrottled", "KMSThrottlingException", "KMS.ThrottlingException", "Throttled",
	"ThrottledException", "EC2ThrottledException",
}

func kindOf(code string, status int) kind {
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	switch {
	case strings.Contains(code, "AccessDenied"): // of KMS, too, for which Lambda answers 502
		return forGood
	case throttled || slices.Contains(laterCodes, code) || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout:
		return later
	case status >= 400 && status < 500:
		return forGood
	default:
		return unknown
	}
}

// told gives what AWS answered: its code and status, "" and 0 where it did not answer, and both in words.
func told(err error) (code string, status int, text string) {
	var answered *smithyhttp.ResponseError
	if errors.As(err, &answered) {
		status = answered.HTTPStatusCode()
	}
	var of smithy.APIError
	if !errors.As(err, &of) {
		return "", status, err.Error()
	}
	code = of.ErrorCode()
	if _, name, ok := strings.Cut(code, "#"); ok {
		code = name // some services put their own name before it
	}
	text = code
	if of.ErrorMessage() != "" {
		text += ": " + strings.TrimSuffix(of.ErrorMessage(), ".")
	}
	return code, status, text
}

// actions are what a role must be allowed on a target.
var actions = map[string]string{
	target.ServiceLambda: "lambda:InvokeFunction", target.ServiceSQS: "sqs:SendMessage", target.ServiceSNS: "sns:Publish",
	target.ServiceEvents: "events:PutEvents", target.ServiceStates: "states:StartExecution",
}

// verdict makes of an error what a caller can decide on. connected tells whether a request can have left this host.
func (r *request) verdict(ctx context.Context, err error, connected bool) error {
	var failure *target.Failure
	if errors.As(err, &failure) {
		return failure
	}
	code, status, text := told(err)
	switch {
	case code == "" && ctx.Err() != nil && !connected:
		return unsent(ctx)
	case code == "" && ctx.Err() != nil:
		return ctx.Err()
	case code == "" && !connected && target.Short(err) != nil:
		return target.Short(err)
	case code == "" && !connected:
		return target.Reported(target.KindConnect, text, false, 0)
	}
	switch kindOf(code, status) {
	case later:
		return target.Reported(target.KindAWS, text, false, wait(err))
	case forGood:
		return target.Reported(target.KindAWS, text+r.help(code, status), true, 0)
	default:
		return fmt.Errorf("whether it was done is not known: %s", text)
	}
}

// help says what to do where the answer alone does not.
func (r *request) help(code string, status int) string {
	switch {
	case strings.HasPrefix(code, "KMS"):
		return ""
	case strings.Contains(code, "AccessDenied") || code == "AuthorizationError" || status == http.StatusForbidden:
		whose := "this worker's role"
		if r.to.RoleARN != "" {
			whose = r.to.RoleARN
		}
		return "; " + whose + " must be allowed " + actions[r.arn.Service] + " on " + r.to.ARN
	case code == "ResourceNotFoundException" || code == "NotFound" || code == "QueueDoesNotExist" || code == "AWS.SimpleQueueService.NonExistentQueue" || code == "StateMachineDoesNotExist" || status == http.StatusNotFound:
		return "; there is no " + r.to.ARN
	case code == "RequestTooLargeException" || status == http.StatusRequestEntityTooLarge:
		return "; send less with the run, or where to find it"
	}
	return ""
}

// wait is how long Lambda asks to be left alone.
func wait(err error) time.Duration {
	var busy *lambdatypes.TooManyRequestsException
	if !errors.As(err, &busy) {
		return 0
	}
	seconds, err := strconv.Atoi(aws.ToString(busy.RetryAfterSeconds))
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
