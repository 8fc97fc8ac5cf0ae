package sqs

import (
	"errors"
	"net/url"
	"regexp"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/belfry-scheduler/belfry/lib/invalid"
	"github.com/belfry-scheduler/belfry/lib/queue"
)

// Address says which queues are meant.
type Address struct {
	Prefix   string // of their names: PREFIX-high, PREFIX-normal, PREFIX-low
	Region   string // "" for that of the AWS configuration
	Endpoint string // of an emulator; "" for that of AWS
}

// Of the 80 characters that SQS gives a name, "-normal" takes 7.
var prefixes = regexp.MustCompile(`^[A-Za-z0-9_-]{1,73}$`)

const wantURL = `sqs://PREFIX, with ?region=… and &endpoint=http://… where they are not the usual ones; PREFIX is up to 73 letters, digits, - and _`

// ParseURL reads an address such as sqs://belfry?region=eu-west-1&endpoint=http://127.0.0.1:9324.
func ParseURL(text string) (Address, error) {
	wrong := invalid.Field("queue", text, wantURL)
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "sqs" || u.Opaque != "" || u.User != nil || u.Path != "" && u.Path != "/" || u.Fragment != "" {
		return Address{}, wrong
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || !prefixes.MatchString(u.Host) {
		return Address{}, wrong
	}
	for name, values := range query {
		if name != "region" && name != "endpoint" || len(values) != 1 {
			return Address{}, wrong
		}
	}
	a := Address{Prefix: u.Host, Region: query.Get("region"), Endpoint: query.Get("endpoint")}
	if a.Endpoint != "" {
		e, err := url.Parse(a.Endpoint)
		if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" {
			return Address{}, invalid.Field("queue endpoint", a.Endpoint, "an address such as http://127.0.0.1:9324")
		}
	}
	return a, nil
}

// Config is what a Queue stands on. All but the region and the endpoint of the address is required.
type Config struct {
	Address
	AWS  aws.Config     // credentials, and perhaps the region
	Rand func() float64 // 0 to 1, for the pauses before another try; called concurrently
}

// Queue is a queue.Queue over SQS. It is safe for concurrent use.
type Queue struct {
	client *sqs.Client
	rand   func() float64
	where  string // the region and the endpoint, for people

	mu      sync.Mutex
	closed  bool
	changed chan struct{}                  // closed, and made anew, when there is something new for those who wait in Receive
	turn    int                            // position in queue.Turns
	lanes   [3]*lane                       // by rank of priority
	depths  map[queue.Priority]queue.Depth // as last counted, nil when that is long ago
	forget  *time.Timer                    // ends depths

	closing chan struct{}  // closed with the queue
	work    sync.WaitGroup // goroutines of this queue; joined under mu while the queue is open
}

var _ queue.Queue = (*Queue)(nil)

// New checks the configuration. It asks nobody; Check does.
func New(cfg Config) (*Queue, error) {
	if cfg.Rand == nil || cfg.AWS.Credentials == nil {
		return nil, errors.New("sqs: Rand and AWS.Credentials are required")
	}
	if !prefixes.MatchString(cfg.Prefix) {
		return nil, invalid.Field("queue prefix", cfg.Prefix, "1 to 73 letters, digits, - and _")
	}
	if cfg.Region == "" {
		cfg.Region = cfg.AWS.Region
	}
	if cfg.Region == "" {
		return nil, invalid.Missing("queue region", "the AWS region of the queues, as in sqs://"+cfg.Prefix+"?region=eu-west-1, or AWS_REGION")
	}
	q := &Queue{rand: cfg.Rand, where: cfg.Region, changed: make(chan struct{}), closing: make(chan struct{})}
	if cfg.Endpoint != "" {
		q.where += " at " + cfg.Endpoint
	}
	q.client = sqs.NewFromConfig(cfg.AWS, func(o *sqs.Options) {
		o.Region = cfg.Region
		if cfg.Endpoint != "" {
			o.BaseEndpoint = aws.String(cfg.Endpoint)
		}
		o.Retryer = aws.NopRetryer{} // tries are made in call, which bounds each of them
	})
	for rank, p := range queue.Priorities {
		l := &lane{q: q, priority: p, name: cfg.Prefix + "-" + string(p)}
		l.deletes.send, l.extends.send = forgiving(l.deleteNow), forgiving(l.extendNow)
		q.lanes[rank] = l
	}
	return q, nil
}

// spawn runs a goroutine of this queue, false where the queue is closed. The caller holds mu.
func (q *Queue) spawn(f func()) bool {
	if q.closed {
		return false
	}
	q.work.Go(f)
	return true
}

// open gives the closed queue's error.
func (q *Queue) open() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return queue.ErrClosed
	}
	return nil
}

// Close wakes all waiting receivers, ends the polls under way, carries out what was settled, and hands back what nobody took. It
// takes a few seconds at most where SQS does not answer. What SQS hands out to a poll as it ends comes back when its visibility does.
func (q *Queue) Close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	close(q.closing)
	q.announce()
	if q.forget != nil {
		q.forget.Stop()
	}
	for _, l := range q.lanes {
		if l.poll != nil {
			l.poll.cancel()
		}
		if l.rest != nil {
			l.rest.Stop()
		}
	}
	q.mu.Unlock()
	q.work.Wait()
	return nil
}
