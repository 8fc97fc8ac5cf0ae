package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/belfry-scheduler/belfry/lib/store"
)

// Config is for Open.
type Config struct {
	AWS      aws.Config    // region and credentials; both required
	Table    string        // required
	Endpoint string        // of something other than the region's DynamoDB, as "http://127.0.0.1:8000"; "" for that
	Random   func() uint64 // spreads tries after a refusal; required
	Now      func() time.Time

	// Timeout is how long one request may take, its answer included; 5 s by default. A transaction of 4 MB takes a second on a
	// slow line; a lease must be long enough for several of them.
	Timeout time.Duration

	// Observe is told what each request has consumed, concurrently, and must not block. Default: nobody asks.
	Observe func(Use)
}

const (
	defaultTimeout = 5 * time.Second
	dialTimeout    = 2 * time.Second
)

// Parallel is how many requests one WriteEach has under way. At 5 ms each, a thousand ops take 160 ms.
const Parallel = 32

// Store is a store.Store in a DynamoDB table.
type Store struct {
	db      *dynamodb.Client
	table   *string
	place   string // for people: which table where
	random  func() uint64
	timeout time.Duration
	clock   *clock
	refresh func() // asks the store for the time; ends when the store closes
	stop    context.CancelFunc

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // calls under way; grows under mu, while not closed
}

var _ store.Store = (*Store)(nil)

// Open finds the table and learns its clock, by one read at the price of half a unit. The table must be there: CreateTable
// makes one.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if err := s.probe(ctx); err != nil {
		s.stop()
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return s, nil
}

// New checks the configuration and asks nobody: the first call tells whether the table is there, and of the store's clock. It saves
// a process that lives for one request half of its requests.
func New(cfg Config) (*Store, error) {
	switch {
	case cfg.Table == "":
		return nil, errors.New("dynamodb: no table was named")
	case cfg.AWS.Region == "":
		return nil, errors.New("dynamodb: no region, want one such as eu-central-1: name it with the table, or set AWS_REGION")
	case cfg.AWS.Credentials == nil:
		return nil, errors.New("dynamodb: no AWS credentials were given")
	case cfg.Random == nil:
		return nil, errors.New("dynamodb: Config.Random is required")
	}
	if at, err := url.Parse(cfg.Endpoint); cfg.Endpoint != "" && (err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https") {
		return nil, fmt.Errorf("dynamodb: the endpoint %q is no address, want one such as http://127.0.0.1:8000", cfg.Endpoint)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	s := &Store{
		table: &cfg.Table, random: cfg.Random, timeout: cfg.Timeout, clock: &clock{now: cfg.Now},
		place: fmt.Sprintf("table %q in %s", cfg.Table, cfg.AWS.Region),
	}
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	// An error of it is an error of the next call, too, which somebody will see.
	s.refresh = func() { _ = s.probe(background) }
	client := cfg.AWS.HTTPClient
	if client == nil {
		client = awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = 2 * Parallel
			t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
			t.TLSHandshakeTimeout = dialTimeout
		})
	}
	s.db = dynamodb.NewFromConfig(cfg.AWS, func(o *dynamodb.Options) {
		o.HTTPClient = timed{client, s.clock}
		o.Credentials = credentials{cfg.AWS.Credentials}
		o.Retryer = aws.NopRetryer{}
		if cfg.Endpoint != "" {
			o.BaseEndpoint = &cfg.Endpoint
			// DynamoDB Local sends wrong checksums with its errors.
			o.DisableValidateResponseChecksum = true
			s.place += " at " + cfg.Endpoint
		}
		if cfg.Observe != nil {
			o.APIOptions = append(o.APIOptions, metered(cfg.Observe))
		}
	})
	return s, nil
}

// Check asks whether the table is there and may be read, at the price of half a unit.
func (s *Store) Check(ctx context.Context) error { return s.probe(ctx) }

// begin counts a call in; whoever got nil calls s.calls.Done.
func (s *Store) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.calls.Add(1)
	return nil
}

// Close waits for calls under way.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.calls.Wait()
	return nil
}

// Skew tells how far the store's clock is ahead, at the least (see clock). What is old or vague is asked anew, aside: whoever
// stopped working because of this answer might otherwise never send what could correct it.
func (s *Store) Skew() time.Duration {
	skew, vague := s.clock.skew()
	if vague && s.begin(context.Background()) == nil {
		go func() {
			defer s.calls.Done()
			defer s.clock.asked()
			s.refresh()
		}()
	}
	return skew
}
