package cloud

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/belfry-scheduler/belfry/lib/blob"
	"github.com/belfry-scheduler/belfry/lib/blob/s3"
	"github.com/belfry-scheduler/belfry/lib/metrics"
	"github.com/belfry-scheduler/belfry/lib/node"
	"github.com/belfry-scheduler/belfry/lib/queue"
	"github.com/belfry-scheduler/belfry/lib/queue/sqs"
	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/dynamo"
)

// Config says which engines, and what a process brings. Fields without a default are required.
type Config struct {
	Store  string // dynamodb://TABLE[?region=…&endpoint=…]
	Queue  string // sqs://PREFIX[?region=…&endpoint=…]
	Blob   string // s3://BUCKET[?region=…&endpoint=…], or what OpenBlob opens
	Queues []Pool // the pools. Default: "default" alone. ParsePools reads them

	// OpenBlob opens what is not s3://, for a process that links more than S3. Default: nothing else can be opened.
	OpenBlob func(ctx context.Context, where string) (*blob.Bucket, error)

	Account Account // whose engines they are
	Now     func() time.Time
	NewID   func() uint64     // random, never 0
	Metrics *metrics.Registry // default: new
	Log     *slog.Logger      // default: discards
}

// Data is what a scheduler keeps, open. AWS is the configuration that it was opened with.
type Data struct {
	Store  store.Store
	Queues map[string]queue.Queue
	Blobs  *blob.Bucket
	AWS    aws.Config

	cfg     Config
	checked []func(ctx context.Context) error
}

// Open checks the addresses and makes no request.
func Open(ctx context.Context, cfg Config) (*Data, error) {
	if cfg.Account == nil || cfg.Now == nil || cfg.NewID == nil {
		return nil, errors.New("cloud: Account, Now and NewID are required")
	}
	if len(cfg.Queues) == 0 {
		cfg.Queues = []Pool{defaultPool}
	}
	if cfg.Metrics == nil {
		cfg.Metrics = metrics.New()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	d := &Data{cfg: cfg, Queues: map[string]queue.Queue{}}
	var err error
	if d.AWS, err = cfg.Account(ctx); err != nil {
		return nil, err
	}
	if err := d.openStore(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(d.openQueues(ctx), d.openBlobs(ctx)); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// endpoint is where a service is, as the environment or the SDK's files have it: the engines must know, since emulators differ from
// AWS in more than their address. "" for AWS itself.
func endpoint(ctx context.Context, from aws.Config, given, service string) (string, error) {
	if given != "" {
		return given, nil
	}
	for _, source := range from.ConfigSources {
		if s, ok := source.(interface {
			GetServiceBaseEndpoint(ctx context.Context, sdkID string) (string, bool, error)
		}); ok {
			if at, found, err := s.GetServiceBaseEndpoint(ctx, service); err != nil || found {
				return at, err
			}
		}
	}
	return aws.ToString(from.BaseEndpoint), nil
}

// Table is the configuration of the table that a URL names, for who makes it or looks at it.
func Table(ctx context.Context, where string, newID func() uint64, now func() time.Time) (dynamo.Config, error) {
	from, err := Host(ctx)
	if err != nil {
		return dynamo.Config{}, err
	}
	return table(ctx, from, where, newID, now)
}

func table(ctx context.Context, from aws.Config, where string, newID func() uint64, now func() time.Time) (dynamo.Config, error) {
	at, err := dynamo.ParseURL(where)
	if err != nil {
		return dynamo.Config{}, err
	}
	cfg := dynamo.Config{AWS: from.Copy(), Table: at.Table, Random: newID, Now: now}
	if at.Region != "" {
		cfg.AWS.Region = at.Region
	}
	cfg.Endpoint, err = endpoint(ctx, from, at.Endpoint, "DynamoDB")
	return cfg, err
}

// Queues is the configuration of the pool's queues below the prefix that a URL names, for who makes them or looks at them.
func (p Pool) Queues(ctx context.Context, where string, newID func() uint64) (sqs.Config, error) {
	from, err := Host(ctx)
	if err != nil {
		return sqs.Config{}, err
	}
	return p.queues(ctx, from, where, newID)
}

func (p Pool) queues(ctx context.Context, from aws.Config, where string, newID func() uint64) (sqs.Config, error) {
	at, err := sqs.ParseURL(where)
	if err != nil {
		return sqs.Config{}, err
	}
	if at, err = p.address(at); err != nil {
		return sqs.Config{}, err
	}
	if at.Endpoint, err = endpoint(ctx, from, at.Endpoint, "SQS"); err != nil {
		return sqs.Config{}, err
	}
	fraction := func() float64 { return float64(newID()>>11) / (1 << 53) }
	return sqs.Config{Address: at, AWS: from, Rand: fraction}, nil
}

func (d *Data) openStore(ctx context.Context) error {
	cfg, err := table(ctx, d.AWS, d.cfg.Store, d.cfg.NewID, d.cfg.Now)
	if err != nil {
		return err
	}
	cfg.Observe = func(u dynamo.Use) { d.cfg.Metrics.Consumed(u.Operation, u.Read, u.Write) }
	opened, err := dynamo.New(cfg)
	if err != nil {
		return err
	}
	d.Store = opened
	d.checked = append(d.checked, opened.Check)
	return nil
}

func (d *Data) openQueues(ctx context.Context) error {
	for _, pool := range d.cfg.Queues {
		cfg, err := pool.queues(ctx, d.AWS, d.cfg.Queue, d.cfg.NewID)
		if err != nil {
			return err
		}
		opened, err := sqs.New(cfg)
		if err != nil {
			return err
		}
		d.Queues[pool.Name] = opened
		d.checked = append(d.checked, opened.Check)
	}
	return nil
}

func (d *Data) openBlobs(ctx context.Context) error {
	if d.cfg.OpenBlob != nil && !strings.HasPrefix(d.cfg.Blob, "s3:") {
		var err error
		if d.Blobs, err = d.cfg.OpenBlob(ctx, d.cfg.Blob); err == nil {
			d.checked = append(d.checked, d.Blobs.Check)
		}
		return err
	}
	at, err := s3.ParseURL(d.cfg.Blob)
	if err != nil {
		return err
	}
	if at.Endpoint, err = endpoint(ctx, d.AWS, at.Endpoint, "S3"); err != nil {
		return err
	}
	if d.Blobs, err = s3.Open(ctx, d.AWS, at); err != nil {
		return err
	}
	d.checked = append(d.checked, func(ctx context.Context) error { return s3.Explain(at, d.AWS.Region, d.Blobs.Check(ctx)) })
	return nil
}

// checkTime bounds a Check. Each engine tries a request again that was not answered in time.
const checkTime = 30 * time.Second

// Check asks the table, each queue and the bucket whether they can be used, all at once, and gives a line for each that cannot.
func (d *Data) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if _, err := d.AWS.Credentials.Retrieve(ctx); err != nil { // each engine would say it in its own words
		return fmt.Errorf("no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role (%w)", err)
	}
	errs := make([]error, len(d.checked))
	var checks sync.WaitGroup
	for i, check := range d.checked {
		checks.Go(func() { errs[i] = check(ctx) })
	}
	checks.Wait()
	return errors.Join(errs...)
}

// Node wires a node over the data that shares it with others. It fills in the engines, the pools with what they can run, Metrics,
// Log, Now and NewID, and where it is left out a Name for this start.
func (d *Data) Node(ctx context.Context, cfg node.Config) (*node.Node, error) {
	cfg.Shared = true
	cfg.Store, cfg.Queues, cfg.Blobs = d.Store, maps.Clone(d.Queues), d.Blobs
	cfg.Metrics, cfg.Log, cfg.Now, cfg.NewID = d.cfg.Metrics, d.cfg.Log, d.cfg.Now, d.cfg.NewID
	cfg.Longest = map[string]time.Duration{}
	for _, pool := range d.cfg.Queues {
		cfg.Longest[pool.Name] = pool.Longest
	}
	if cfg.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "host"
		}
		cfg.Name = fmt.Sprintf("%.60s-%d-%x", host, os.Getpid(), uint32(cfg.NewID()))
	}
	return node.New(ctx, cfg)
}

// PoolNames are the pools, in the order in which they were given.
func (d *Data) PoolNames() []string {
	names := make([]string, len(d.cfg.Queues))
	for i, pool := range d.cfg.Queues {
		names[i] = pool.Name
	}
	return slices.Clip(names)
}

// Close ends queues, bucket and store, when nothing uses them any more.
func (d *Data) Close() error {
	var errs []error
	for _, q := range d.Queues {
		errs = append(errs, q.Close())
	}
	if d.Blobs != nil {
		errs = append(errs, d.Blobs.Close())
	}
	return errors.Join(append(errs, d.Store.Close())...)
}
