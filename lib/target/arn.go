package target

import (
	"regexp"
	"slices"
	"strings"

	"github.com/belfry-scheduler/belfry/lib/invalid"
)

// ARN names a resource of AWS: arn:PARTITION:SERVICE:REGION:ACCOUNT:RESOURCE.
type ARN struct {
	Partition string // aws, aws-cn or aws-us-gov
	Service   string // one of the Service constants
	Region    string
	Account   string // 12 digits
	Resource  string // as the service has it, with what stands before the name
}

// The services whose resources a job may call, as ARNs spell them.
const (
	ServiceLambda = "lambda"
	ServiceSQS    = "sqs"
	ServiceSNS    = "sns"
	ServiceEvents = "events"
	ServiceStates = "states"
)

// resources are the forms that the resources of each service have, each with an example.
var resources = map[string]struct {
	form *regexp.Regexp
	want string
}{
	ServiceLambda: {regexp.MustCompile(`^function:[A-Za-z0-9_-]{1,64}(:(\$LATEST|[A-Za-z0-9_-]{1,128}))?$`),
		`a Lambda function, function:NAME, with :VERSION or :ALIAS behind it where it is not the newest`},
	ServiceSQS: {regexp.MustCompile(`^([A-Za-z0-9_-]{1,80}|[A-Za-z0-9_-]{1,75}\.fifo)$`), `the name of an SQS queue`},
	ServiceSNS: {regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}(\.fifo)?$`), `the name of an SNS topic, without a subscription`},
	ServiceEvents: {regexp.MustCompile(`^event-bus/[A-Za-z0-9._/-]{1,256}$`),
		`an EventBridge bus, event-bus/NAME`},
	ServiceStates: {regexp.MustCompile(`^stateMachine:[A-Za-z0-9._+=@-]{1,80}(:[A-Za-z0-9._+=@-]{1,80})?$`),
		`a Step Functions state machine, stateMachine:NAME, with :VERSION or :ALIAS behind it where one is meant`},
}

var (
	regionForm  = regexp.MustCompile(`^[a-z]{2}(-[a-z]+){1,3}-[0-9]{1,2}$`)
	accountForm = regexp.MustCompile(`^[0-9]{12}$`)
	roleForm    = regexp.MustCompile(`^role/([!-~]{1,511}/)?[A-Za-z0-9_+=,.@-]{1,64}$`)
)

const (
	wantARN  = `an ARN such as "arn:aws:lambda:eu-west-1:123456789012:function:report"`
	wantRole = `the ARN of a role such as "arn:aws:iam::123456789012:role/reports"`
	maxARN   = 1024
)

// ParseARN reads the ARN of what a run may call. Its errors are *invalid.Error of the field "arn".
func ParseARN(text string) (ARN, error) {
	a, err := splitARN("arn", text, wantARN)
	if err != nil {
		return ARN{}, err
	}
	known, ok := resources[a.Service]
	switch {
	case !ok:
		return ARN{}, invalid.Field("arn", text, "an ARN of one of the services "+strings.Join(services(), ", "))
	case !regionForm.MatchString(a.Region):
		return ARN{}, invalid.Field("arn", text, "a region after the service, such as eu-west-1")
	case partitionOf(a.Region) != a.Partition:
		return ARN{}, invalid.Field("arn", text, "the partition of its region, which is "+partitionOf(a.Region))
	case !accountForm.MatchString(a.Account):
		return ARN{}, invalid.Field("arn", text, "an account of 12 digits after the region")
	case !known.form.MatchString(a.Resource):
		return ARN{}, invalid.Field("arn", text, "after the account "+known.want)
	}
	return a, nil
}

// splitARN takes the parts of an ARN apart that all have.
func splitARN(field, text, want string) (ARN, error) {
	parts := strings.SplitN(text, ":", 6)
	switch {
	case text == "":
		return ARN{}, invalid.Missing(field, want)
	case len(parts) != 6 || parts[0] != "arn" || len(text) > maxARN:
		return ARN{}, invalid.Field(field, text, want)
	case !slices.Contains([]string{"aws", "aws-cn", "aws-us-gov"}, parts[1]):
		return ARN{}, invalid.Field(field, text, "the partition aws, aws-cn or aws-us-gov after arn:")
	}
	return ARN{parts[1], parts[2], parts[3], parts[4], parts[5]}, nil
}

func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

func services() []string {
	return []string{ServiceEvents, ServiceLambda, ServiceSNS, ServiceSQS, ServiceStates}
}

// validRole refuses what names no role, or one of another partition than the target: no role reaches from one into another.
func validRole(text string, to ARN) error {
	a, err := splitARN("role_arn", text, wantRole)
	switch {
	case err != nil:
		return err
	case a.Service != "iam" || a.Region != "" || !accountForm.MatchString(a.Account) || !roleForm.MatchString(a.Resource):
		return invalid.Field("role_arn", text, wantRole)
	case to.Partition != "" && a.Partition != to.Partition:
		return invalid.Field("role_arn", text, "a role of the target's partition, "+to.Partition)
	}
	return nil
}

// Name is what people call the resource: without what its service puts before it, and without version or alias.
func (a ARN) Name() string {
	name := a.Resource
	for _, before := range []string{"function:", "event-bus/", "stateMachine:"} {
		name = strings.TrimPrefix(name, before)
	}
	name, _, _ = strings.Cut(name, ":")
	return name
}

// FIFO tells of a queue or a topic that it keeps the order of messages and drops repeated ones.
func (a ARN) FIFO() bool {
	return (a.Service == ServiceSQS || a.Service == ServiceSNS) && strings.HasSuffix(a.Resource, ".fifo")
}

// ARNPattern is which ARNs an operator lets jobs name. Of its six parts each is matched by itself, so that no wildcard reaches over
// a colon into the next part; only the last, the resource, may hold colons.
type ARNPattern struct{ parts [6]string }

const (
	wantPattern = `a pattern such as "arn:aws:lambda:*:123456789012:function:report-*"; * stands for any text, ? for any letter, {tenant} for the job's tenant`
	tenantMark  = "{tenant}"
)

// ParseARNPattern reads one pattern.
func ParseARNPattern(text string) (ARNPattern, error) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || parts[5] == "" || len(text) > maxARN || strings.ContainsAny(text, " \t\n,\"") {
		return ARNPattern{}, invalid.Field("pattern", text, wantPattern)
	}
	callable := append(services(), "iam")
	if !slices.ContainsFunc(callable, func(service string) bool { return glob(parts[2], service) }) {
		return ARNPattern{}, invalid.Field("pattern", text, "one of the services "+strings.Join(callable, ", ")+", which is for roles, or a * for all")
	}
	return ARNPattern{[6]string(parts)}, nil
}

// ParseARNPatterns reads patterns with commas between them. "" is none.
func ParseARNPatterns(text string) ([]ARNPattern, error) {
	var all []ARNPattern
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		p, err := ParseARNPattern(one)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func (p ARNPattern) String() string { return strings.Join(p.parts[:], ":") }

// Allows tells whether a job of the tenant may name the ARN.
func (p ARNPattern) Allows(arn, tenant string) bool {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 {
		return false
	}
	for i, pattern := range p.parts {
		if !glob(strings.ReplaceAll(pattern, tenantMark, tenant), parts[i]) {
			return false
		}
	}
	return true
}

// glob matches a whole text: * is any number of letters, ? is one. It goes back only to the last *, so it takes at most the
// product of both lengths.
func glob(pattern, text string) bool {
	star, resume := -1, 0
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			resume++
			p, t = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
