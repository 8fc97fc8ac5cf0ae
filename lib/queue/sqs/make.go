package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// What queues are made with.
const (
	// KeepMessages is how long a queue holds a message. None starts a run after 12 hours, and a lost one is sent again.
	KeepMessages = 24 * time.Hour
	keepDead     = 14 * 24 * time.Hour // the longest that SQS can
	// hidden is for how long a delivered message is out of sight where a receiver says nothing else. Workers always do.
	hidden = 30 * time.Second
)

// Created tells what became of a queue.
type Created struct {
	Name string
	New  bool // else it stood there already, and was left as it is
}

// Create makes the queues of a pool, and before them the one for messages that were handed out more often than maxReceives, which
// pools may share. What stands already is left as it is.
func Create(ctx context.Context, cfg Config, dead string, maxReceives int) ([]Created, error) {
	q, err := New(cfg)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	bin := &lane{q: q, name: dead}
	made, err := bin.create(ctx, map[string]string{
		string(types.QueueAttributeNameMessageRetentionPeriod): fmt.Sprint(seconds(keepDead)),
		string(types.QueueAttributeNameSqsManagedSseEnabled):   "true",
	})
	if err != nil {
		return nil, err
	}
	all := []Created{made}
	about, err := bin.attributes(ctx)
	if err != nil {
		return all, err
	}
	redrive, err := json.Marshal(redrive{Target: about[string(types.QueueAttributeNameQueueArn)], Receives: json.Number(strconv.Itoa(maxReceives))})
	if err != nil {
		return all, err
	}
	for _, l := range q.lanes {
		made, err := l.create(ctx, map[string]string{
			string(types.QueueAttributeNameMessageRetentionPeriod): fmt.Sprint(seconds(KeepMessages)),
			string(types.QueueAttributeNameMaximumMessageSize):     "1048576", // as much as SQS takes
			string(types.QueueAttributeNameVisibilityTimeout):      fmt.Sprint(seconds(hidden)),
			string(types.QueueAttributeNameSqsManagedSseEnabled):   "true",
			string(types.QueueAttributeNameRedrivePolicy):          string(redrive),
		})
		if err != nil {
			return all, err
		}
		all = append(all, made)
	}
	return all, nil
}

// redrive is SQS's form of what becomes of a message that is handed out too often.
type redrive struct {
	Target string `json:"deadLetterTargetArn"`
	// A number, or a text of one: SQS takes both, and templates whose parameters are texts write the latter.
	Receives json.Number `json:"maxReceiveCount"`
}

func (l *lane) create(ctx context.Context, attributes map[string]string) (Created, error) {
	if _, err := l.lookUp(ctx); err == nil {
		return Created{Name: l.name}, nil
	} else if !isMissing(err) {
		return Created{}, err
	}
	out, err := call(ctx, l.q, answering, func(ctx context.Context) (*sqs.CreateQueueOutput, error) {
		return l.q.client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(l.name), Attributes: attributes})
	})
	if err != nil {
		return Created{}, l.explain("CreateQueue", err)
	}
	l.url.Store(out.QueueUrl)
	return Created{Name: l.name, New: true}, nil
}

func (l *lane) attributes(ctx context.Context) (map[string]string, error) {
	url, err := l.lookUp(ctx)
	if err != nil {
		return nil, err
	}
	out, err := call(ctx, l.q, answering, func(ctx context.Context) (*sqs.GetQueueAttributesOutput, error) {
		return l.q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	})
	if err != nil {
		return nil, l.explain("GetQueueAttributes", err)
	}
	return out.Attributes, nil
}

// Setup is how a queue is set up.
type Setup struct {
	Name      string
	Err       error         // why nothing more is known, nil otherwise. ErrMissing where it is not there
	Keeps     time.Duration // a message, for so long
	Delays    time.Duration // a message that says nothing of a delay
	Encrypted bool
	Dead      string // ARN of the queue for messages that are handed out too often; "" for none
	Receives  int    // how often that is
	Waiting   int64  // messages that are ready
}

// ErrMissing says that there is no queue of that name.
var ErrMissing = errors.New("there is no such queue")

func isMissing(err error) bool {
	var absent *types.QueueDoesNotExist
	return errors.As(err, &absent)
}

// Describe tells how the queues of a pool are set up, highest priority first.
func Describe(ctx context.Context, cfg Config) ([]Setup, error) {
	q, err := New(cfg)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	var all []Setup
	for _, l := range q.lanes {
		s := Setup{Name: l.name}
		about, err := l.attributes(ctx)
		switch {
		case isMissing(err):
			s.Err = fmt.Errorf("%w (%w)", err, ErrMissing)
		case err != nil:
			s.Err = err
		default:
			s.read(about)
		}
		all = append(all, s)
	}
	return all, nil
}

func (s *Setup) read(about map[string]string) {
	number := func(name types.QueueAttributeName) int64 {
		n, _ := strconv.ParseInt(about[string(name)], 10, 64) // left out by an emulator: 0
		return n
	}
	s.Keeps = time.Duration(number(types.QueueAttributeNameMessageRetentionPeriod)) * time.Second
	s.Delays = time.Duration(number(types.QueueAttributeNameDelaySeconds)) * time.Second
	s.Waiting = number(types.QueueAttributeNameApproximateNumberOfMessages)
	s.Encrypted = about[string(types.QueueAttributeNameSqsManagedSseEnabled)] == "true" || about[string(types.QueueAttributeNameKmsMasterKeyId)] != ""
	var r redrive
	if json.Unmarshal([]byte(about[string(types.QueueAttributeNameRedrivePolicy)]), &r) == nil {
		receives, _ := r.Receives.Int64() // of something else SQS would have made no policy
		s.Dead, s.Receives = r.Target, int(receives)
	}
}
