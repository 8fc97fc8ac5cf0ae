package awstarget

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	sfntypes "github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// request is one attempt that is being made.
type request struct {
	*Caller
	to   target.AWS
	arn  target.ARN
	call target.Call
	who  aws.CredentialsProvider
}

func (r *request) send(ctx context.Context) (target.Result, error) {
	switch r.arn.Service {
	case target.ServiceLambda:
		return r.invoke(ctx)
	case target.ServiceSQS:
		return r.message(ctx)
	case target.ServiceSNS:
		return r.publish(ctx)
	case target.ServiceEvents:
		return r.event(ctx)
	default:
		return r.execution(ctx)
	}
}

// invoke calls a function. One that is waited for is told of the attempt by its client context, which Lambda hands to it beside the
// event; to one that is not, Lambda hands nothing but the event.
func (r *request) invoke(ctx context.Context) (target.Result, error) {
	in := &lambda.InvokeInput{FunctionName: aws.String(r.to.ARN)}
	var err error
	if r.to.Invoke == target.InvokeAsync {
		in.InvocationType = lambdatypes.InvocationTypeEvent
		in.Payload, err = r.call.Envelope()
	} else {
		in.InvocationType, in.LogType, in.Payload = lambdatypes.InvocationTypeRequestResponse, lambdatypes.LogTypeTail, r.call.PayloadOrEmpty()
		in.ClientContext, err = r.clientContext()
	}
	if err != nil {
		return target.Result{}, err
	}
	out, err := r.lambda.Invoke(ctx, in, func(o *lambda.Options) { o.Region, o.Credentials = r.arn.Region, r.who })
	if err != nil {
		return target.Result{}, err
	}
	if r.to.Invoke == target.InvokeAsync {
		return answer("status", strconv.Itoa(int(out.StatusCode)))
	}
	if log, err := base64.StdEncoding.DecodeString(aws.ToString(out.LogResult)); err == nil && len(log) > 0 && r.call.Log != nil {
		_, _ = r.call.Log.Write(log)
	}
	if how := aws.ToString(out.FunctionError); how != "" {
		return target.Result{}, target.Reported(target.KindFunction, functionError(how, out.Payload), false, 0)
	}
	return target.Result{Body: out.Payload, ContentType: "application/json"}, nil
}

func (r *request) clientContext() (*string, error) {
	custom := map[string]string{}
	for _, fact := range r.call.Facts() {
		custom[fact.Header] = fact.Value
	}
	text, err := json.Marshal(map[string]any{"custom": custom})
	if err != nil {
		return nil, err
	}
	return aws.String(base64.StdEncoding.EncodeToString(text)), nil
}

// functionError is what a function threw, as Lambda writes it down.
func functionError(how string, payload []byte) string {
	var thrown struct{ ErrorType, ErrorMessage string }
	switch err := json.Unmarshal(payload, &thrown); {
	case err != nil || thrown.ErrorType+thrown.ErrorMessage == "":
		return how + ": " + string(payload)
	case thrown.ErrorType == "":
		return thrown.ErrorMessage
	default:
		return thrown.ErrorType + ": " + thrown.ErrorMessage
	}
}

func (r *request) message(ctx context.Context) (target.Result, error) {
	attributes := map[string]sqstypes.MessageAttributeValue{}
	for _, fact := range r.call.Facts() {
		attributes[fact.Header] = sqstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(fact.Value)}
	}
	group, once := r.order()
	out, err := r.sqs.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(queueURL(r.arn)), MessageBody: aws.String(string(r.call.PayloadOrEmpty())), MessageAttributes: attributes,
		MessageGroupId: group, MessageDeduplicationId: once,
	}, func(o *sqs.Options) { o.Region, o.Credentials = r.arn.Region, r.who })
	if err != nil {
		return target.Result{}, err
	}
	return answer("message_id", aws.ToString(out.MessageId))
}

// queueURL is where a queue is. It goes to SQS in the body of the request, which itself goes to the region's address.
func queueURL(a target.ARN) string {
	domain := "amazonaws.com"
	if a.Partition == "aws-cn" {
		domain += ".cn"
	}
	return "https://sqs." + a.Region + "." + domain + "/" + a.Account + "/" + a.Resource
}

func (r *request) publish(ctx context.Context) (target.Result, error) {
	attributes := map[string]snstypes.MessageAttributeValue{}
	for _, fact := range r.call.Facts() {
		attributes[fact.Header] = snstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(fact.Value)}
	}
	group, once := r.order()
	out, err := r.sns.Publish(ctx, &sns.PublishInput{
		TopicArn: aws.String(r.to.ARN), Subject: r.subject(), Message: aws.String(string(r.call.PayloadOrEmpty())), MessageAttributes: attributes,
		MessageGroupId: group, MessageDeduplicationId: once,
	}, func(o *sns.Options) { o.Region, o.Credentials = r.arn.Region, r.who })
	if err != nil {
		return target.Result{}, err
	}
	return answer("message_id", aws.ToString(out.MessageId))
}

// subject is what e-mail that a topic's subscribers get is about: what a callback tells. Without one SNS writes its own.
func (r *request) subject() *string {
	e, ok := r.call.Ending()
	if !ok {
		return nil
	}
	const longest = 99 // "less than 100 characters"
	if over := len(e.Title()) - longest; over > 0 {
		const cut = "..."
		e.Run.Job = e.Run.Job[:len(e.Run.Job)-over-len(cut)] + cut
	}
	return aws.String(e.Title())
}

// order gives what keeps messages in order, and by what repeated ones are known.
func (r *request) order() (group, once *string) {
	if r.to.MessageGroup != "" {
		group = aws.String(r.to.MessageGroup)
	}
	if !r.arn.FIFO() {
		return group, nil
	}
	if group == nil {
		group = aws.String(r.call.Job)
	}
	const longest = 128
	id := r.call.Tenant + "/" + r.call.Run
	if len(id) > longest {
		id = hashOf(id)
	}
	return group, aws.String(id)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (r *request) event(ctx context.Context) (target.Result, error) {
	detail, err := r.call.Envelope()
	if err != nil {
		return target.Result{}, err
	}
	source, kind := r.to.Source, r.to.DetailType
	if source == "" {
		source = target.DefaultSource
	}
	if kind == "" {
		kind = r.call.Job
	}
	out, err := r.events.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{{
		EventBusName: aws.String(r.to.ARN), Source: &source, DetailType: &kind, Detail: aws.String(string(detail)),
	}}}, func(o *eventbridge.Options) { o.Region, o.Credentials = r.arn.Region, r.who })
	switch {
	case err != nil:
		return target.Result{}, err
	case len(out.Entries) != 1:
		return target.Result{}, fmt.Errorf("EventBridge answered for %d events, and was given one", len(out.Entries))
	}
	entry := out.Entries[0]
	if code := aws.ToString(entry.ErrorCode); code != "" {
		return target.Result{}, refusedEntry(code, aws.ToString(entry.ErrorMessage))
	}
	return answer("event_id", aws.ToString(entry.EventId))
}

// refusedEntry is what EventBridge says of an event in an answer that is a success by itself.
func refusedEntry(code, message string) error {
	text := strings.TrimSuffix(code+": "+message, ": ")
	switch {
	case strings.HasPrefix(code, "Internal"):
		return errors.New(text) // by itself, EventBridge asks to send it again
	case kindOf(code, 400) == later:
		return target.Reported(target.KindAWS, text, false, 0)
	default:
		return target.Reported(target.KindAWS, text, true, 0)
	}
}

// execution begins an execution under a name that all attempts of the run have. Where an earlier attempt began it and its answer was
// lost, the state machine says that there is one, and that is success: nothing is begun twice.
func (r *request) execution(ctx context.Context) (target.Result, error) {
	input, err := r.call.Envelope()
	if err != nil {
		return target.Result{}, err
	}
	name := executionName(r.call)
	out, err := r.states.StartExecution(ctx, &sfn.StartExecutionInput{
		StateMachineArn: aws.String(r.to.ARN), Name: &name, Input: aws.String(string(input)),
	}, func(o *sfn.Options) { o.Region, o.Credentials = r.arn.Region, r.who })
	var stands *sfntypes.ExecutionAlreadyExists
	if errors.As(err, &stands) {
		return answer("execution", name)
	}
	if err != nil {
		return target.Result{}, err
	}
	return answer("execution_arn", aws.ToString(out.ExecutionArn))
}

// executionName is the job's name, as far as it fits, for people, and a hash of what makes the run unique. Names may hold neither dots
// nor tildes where executions are logged.
func executionName(call target.Call) string {
	const longest, hash = 80, 32
	name := strings.ReplaceAll(call.Job, ".", "-")
	name = name[:min(len(name), longest-hash-1)]
	return name + "-" + hashOf(call.Tenant + "/" + call.Run)[:hash]
}

// answer is the result of a target that gives no more than a name of what it was given.
func answer(name, value string) (target.Result, error) {
	body, err := json.Marshal(map[string]string{name: value})
	return target.Result{Body: body, ContentType: "application/json"}, err
}
