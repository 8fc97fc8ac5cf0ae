package awstarget

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// Caller calls resources of AWS. It is safe for concurrent use; its Call is a target.CallAWS.
type Caller struct {
	own   aws.CredentialsProvider // of the worker
	roles *roles

	patience time.Duration // with requests that wait for nothing

	lambda *lambda.Client
	sqs    *sqs.Client
	sns    *sns.Client
	events *eventbridge.Client
	states *sfn.Client
}

// New takes credentials, endpoints and certificates from cfg, as the AWS SDK's config.LoadDefaultConfig gives them; regions come from
// the targets. It asks nobody.
func New(cfg aws.Config) *Caller {
	cfg = cfg.Copy()
	cfg.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	cfg.APIOptions = append(slices.Clip(cfg.APIOptions), traced)
	buildable, ok := cfg.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		buildable = awshttp.NewBuildableClient()
	}
	// One that was handed in knows the authorities of AWS_CA_BUNDLE. It leaves the time of an answer to the context: a function may
	// take a quarter of an hour.
	cfg.HTTPClient = buildable.WithTransportOptions(func(t *http.Transport) {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true) // HTTP/2 sends what the server refused once more by itself
		t.ForceAttemptHTTP2 = false
		t.MaxIdleConnsPerHost = 64
	})
	return &Caller{
		own: cfg.Credentials, roles: newRoles(sts.NewFromConfig(cfg)), patience: handingOver,
		lambda: lambda.NewFromConfig(cfg), sqs: sqs.NewFromConfig(cfg), sns: sns.NewFromConfig(cfg),
		events: eventbridge.NewFromConfig(cfg), states: sfn.NewFromConfig(cfg),
	}
}

// handingOver bounds every request but one that waits for a function: services take what they are handed within tens of
// milliseconds, and the attempt's own timeout may be hours.
const handingOver = 30 * time.Second

// Call makes the one request of an attempt.
func (c *Caller) Call(ctx context.Context, to target.AWS, call target.Call) (target.Result, error) {
	arn, err := target.ParseARN(to.ARN)
	if err != nil {
		return target.Result{}, target.Reported(target.KindAWS, err.Error(), true, 0)
	}
	who, err := c.credentials(ctx, to, arn, call)
	if err != nil {
		return target.Result{}, err
	}
	asking := ctx
	if arn.Service != target.ServiceLambda || to.Invoke == target.InvokeAsync {
		bounded, cancel := context.WithTimeout(ctx, c.patience)
		defer cancel()
		asking = bounded
	}
	r := request{Caller: c, to: to, arn: arn, call: call, who: who}
	var connected atomic.Bool
	watched := httptrace.WithClientTrace(asking, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	result, err := r.send(watched)
	if err != nil {
		return target.Result{}, r.verdict(ctx, err, connected.Load())
	}
	return result, nil
}

// unsent is the error where ctx is over and nothing of the target has been asked for.
func unsent(ctx context.Context) error { return fmt.Errorf("%w: %w", target.ErrUnsent, ctx.Err()) }

const noCredentials = "this worker has no AWS credentials, as by a role of its host, AWS_PROFILE or AWS_ACCESS_KEY_ID"

// credentials are those of the role that the job names, else the worker's own. Nothing of the target has been asked for yet.
func (c *Caller) credentials(ctx context.Context, to target.AWS, arn target.ARN, call target.Call) (aws.CredentialsProvider, error) {
	if c.own == nil {
		return nil, target.Reported(target.KindConnect, noCredentials, false, 0)
	}
	if _, err := c.own.Retrieve(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, unsent(ctx)
		}
		if short := target.Short(err); short != nil {
			return nil, short
		}
		return nil, target.Reported(target.KindConnect, noCredentials+": "+err.Error(), false, 0)
	}
	if to.RoleARN == "" {
		return c.own, nil
	}
	return c.roles.credentials(ctx, to.RoleARN, arn.Region, call.Tenant)
}
