package sqs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// line is one line for people, with its cause for programs.
type line struct {
	text  string
	cause error
}

func (e *line) Error() string { return e.text }
func (e *line) Unwrap() error { return e.cause }

// What SQS calls what an operator can mend.
var (
	missing  = map[string]bool{"AWS.SimpleQueueService.NonExistentQueue": true, "QueueDoesNotExist": true}
	denied   = map[string]bool{"AccessDenied": true, "AccessDeniedException": true}
	keyFault = map[string]bool{"KMS.AccessDeniedException": true, "KmsAccessDenied": true, "KMS.DisabledException": true, "KmsDisabled": true,
		"KMS.NotFoundException": true, "KmsNotFound": true, "KMS.InvalidStateException": true, "KmsInvalidState": true}
	unknownCaller = map[string]bool{"InvalidClientTokenId": true, "UnrecognizedClientException": true, "SignatureDoesNotMatch": true,
		"InvalidSignatureException": true, "ExpiredToken": true, "ExpiredTokenException": true, "MissingAuthenticationToken": true,
		"InvalidAccessKeyId": true, "InvalidSecurity": true, "IncompleteSignature": true}
)

// explain gives the line of an error of a request.
func (l *lane) explain(action string, err error) error {
	var told *line
	if errors.As(err, &told) || errors.Is(err, context.Canceled) {
		return err
	}
	return &line{text: "sqs: " + l.say(action, err), cause: err}
}

func (l *lane) say(action string, err error) string {
	var api smithy.APIError
	var lost *smithyhttp.RequestSendError
	var name *net.DNSError
	switch {
	case errors.As(err, &api):
		code := api.ErrorCode()
		code = code[strings.LastIndex(code, "#")+1:] // emulators give the whole name of the shape
		switch {
		case missing[code]:
			return fmt.Sprintf("there is no queue %s in %s: deploy the template there, make it by \"belfry queue create\", or correct the prefix or the region of the queue's address", l.name, l.q.where)
		case denied[code]:
			return fmt.Sprintf("no right to %s on %s in %s: allow sqs:%s on it to the role that this process has (aws sts get-caller-identity names it)", action, l.name, l.q.where, action)
		case keyFault[code]:
			return fmt.Sprintf("the key of %s cannot be used (%s): allow kms:GenerateDataKey and kms:Decrypt on it to the role that this process has, and see that it is enabled", l.name, code)
		case unknownCaller[code]:
			return fmt.Sprintf("AWS does not accept the credentials (%s): renew them, or choose others by AWS_PROFILE", code)
		}
		return fmt.Sprintf("%s on %s: %s: %s", action, l.name, code, api.ErrorMessage())
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Sprintf("there is no host %s: correct the region or the endpoint of the queue's address (%s)", name.Name, l.q.where)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("%s on %s: no answer in time from %s", action, l.name, l.q.where)
	case errors.As(err, &lost):
		return fmt.Sprintf("%s on %s: %s does not answer: see that it can be reached from here: %v", action, l.name, l.q.where, lost.Err)
	case strings.Contains(err.Error(), "get credentials"):
		return "there are no AWS credentials: give this process a role, or choose a profile by AWS_PROFILE"
	}
	return fmt.Sprintf("%s on %s: %v", action, l.name, err)
}
