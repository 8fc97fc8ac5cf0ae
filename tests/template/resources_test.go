package template

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// names are the properties that name something in an account, where two stacks would meet.
var names = map[string]string{
	"AWS::ApiGateway::ApiKey": "Name", "AWS::ApiGateway::RestApi": "Name", "AWS::ApiGateway::UsagePlan": "UsagePlanName",
	"AWS::CloudWatch::Alarm": "AlarmName", "AWS::CloudWatch::Dashboard": "DashboardName", "AWS::DynamoDB::Table": "TableName",
	"AWS::IAM::ManagedPolicy": "ManagedPolicyName", "AWS::IAM::Role": "RoleName", "AWS::Logs::LogGroup": "LogGroupName",
	"AWS::S3::Bucket": "BucketName", "AWS::SQS::Queue": "QueueName", "AWS::Scheduler::Schedule": "Name",
	"AWS::Serverless::Function": "FunctionName",
}

// unnamed may go without: CloudFormation names them after the stack. All others would get a name that one cannot find, or, as a
// schedule, one that two stacks share.
var unnamed = []string{"AWS::IAM::ManagedPolicy", "AWS::IAM::Role", "AWS::S3::Bucket"}

// nameless have no name in the account.
var nameless = []string{
	"AWS::ApiGateway::Deployment", "AWS::ApiGateway::Stage", "AWS::ApiGateway::UsagePlanKey", "AWS::CloudFormation::Stack",
	"AWS::Lambda::Permission", "AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy",
}

func TestTwoStacksDoNotMeet(t *testing.T) {
	each(t, "", func(where string, p part, _ string, r *resource) {
		property, known := names[r.Type]
		if !known {
			if !slices.Contains(nameless, r.Type) {
				t.Errorf("%s: say in this test how a %s is named", where, r.Type)
			}
			return
		}
		name := r.Properties[property]
		stack := "${Stack}"
		if filepath.Base(p.file) == "template.yaml" {
			stack = "${AWS::StackName}"
		}
		given := strings.Join(texts(name), "")
		switch {
		case name == nil && !slices.Contains(unnamed, r.Type):
			t.Errorf("%s: wants a %s with the stack's name in it", where, property)
		case name != nil && !strings.Contains(given, stack) && given != strings.Trim(stack, "${}"):
			t.Errorf("%s: the %s %q does not hold the stack's name", where, property, given)
		}
	})
}

func TestEverythingIsEncrypted(t *testing.T) {
	want := func(where string, r *resource, path ...string) {
		if r.property(path...) == nil {
			t.Errorf("%s: says nothing of %s", where, strings.Join(path, "."))
		}
	}
	each(t, "AWS::SQS::Queue", func(where string, _ part, _ string, r *resource) {
		want(where, r, "SqsManagedSseEnabled")
		want(where, r, "KmsMasterKeyId")
	})
	each(t, "AWS::DynamoDB::Table", func(where string, _ part, _ string, r *resource) {
		want(where, r, "SSESpecification")
		want(where, r, "PointInTimeRecoverySpecification")
	})
	each(t, "AWS::S3::Bucket", func(where string, _ part, _ string, r *resource) {
		want(where, r, "BucketEncryption")
		want(where, r, "LifecycleConfiguration")
		block, _ := r.property("PublicAccessBlockConfiguration").(map[string]any)
		for _, what := range []string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"} {
			if block[what] != "true" {
				t.Errorf("%s: %s is not true", where, what)
			}
		}
	})
	each(t, "AWS::Logs::LogGroup", func(where string, _ part, _ string, r *resource) {
		want(where, r, "KmsKeyId")
		want(where, r, "RetentionInDays")
	})
}

// What must not be lost stays when the stack is deleted, unless somebody says otherwise; and stays in any case when an update would
// replace it. The emulators keep nothing of a nested template, so this is looked at here.
func TestDataStaysWhenTheStackGoes(t *testing.T) {
	p := named(t, "data.yaml")
	if transform := child(p.node, "Transform"); transform == nil || transform.Value != "AWS::LanguageExtensions" {
		t.Error("data.yaml: without AWS::LanguageExtensions a DeletionPolicy cannot be a parameter")
	}
	for _, name := range []string{"Table", "Bucket"} {
		whole := child(child(p.node, "Resources"), name)
		if onDelete, onReplace := child(whole, "DeletionPolicy"), child(whole, "UpdateReplacePolicy"); onDelete == nil || onDelete.Tag != "!Ref" ||
			onDelete.Value != "OnDelete" || onReplace == nil || onReplace.Value != "Retain" {
			t.Errorf("data.yaml: %s: want DeletionPolicy: !Ref OnDelete and UpdateReplacePolicy: Retain", name)
		}
	}
	stack := named(t, "template.yaml")
	if stack.Parameters["OnDelete"].Default != "Retain" || stack.Parameters["DeletionProtection"].Default != "true" {
		t.Error("by default data goes with the stack")
	}
}

// Queues and buckets refuse whoever does not come over TLS. Their policies must name each of them.
func TestNothingIsReachedWithoutTLS(t *testing.T) {
	for _, p := range parts(t) {
		covered := map[string]bool{}
		for _, r := range p.Resources {
			if r.Type != "AWS::SQS::QueuePolicy" && r.Type != "AWS::S3::BucketPolicy" {
				continue
			}
			document := texts(r.property("PolicyDocument"))
			if !slices.Contains(document, "Deny") || !slices.Contains(document, "false") || !slices.Contains(document, "*") {
				continue
			}
			for _, text := range append(document, texts(r.property("Queues"))...) {
				name := strings.TrimSuffix(text, ".Arn")
				if _, bucket, written := strings.Cut(text, ":s3:::${"); written {
					name = strings.TrimSuffix(bucket, "}")
				}
				covered[name] = true
			}
		}
		for name, r := range p.Resources {
			if (r.Type == "AWS::SQS::Queue" || r.Type == "AWS::S3::Bucket") && !covered[name] {
				t.Errorf("%s: %s: no policy denies what does not come over TLS", p.file, name)
			}
		}
	}
}

func TestEveryFunctionHasALogThatEnds(t *testing.T) {
	each(t, "AWS::Serverless::Function", func(where string, p part, _ string, r *resource) {
		group, _ := r.property("LoggingConfig", "LogGroup").(map[string]any)
		name, _ := group["Ref"].(string)
		log := p.Resources[name]
		if log == nil || log.Type != "AWS::Logs::LogGroup" {
			t.Fatalf("%s: has no log group", where)
		}
		function, into := strings.Join(texts(r.Properties["FunctionName"]), ""), strings.Join(texts(log.Properties["LogGroupName"]), "")
		if into != "/aws/lambda/"+function {
			t.Errorf("%s: logs to %s, want /aws/lambda/%s, where people look", where, into, function)
		}
		if format, level := r.property("LoggingConfig", "LogFormat"), r.property("LoggingConfig", "ApplicationLogLevel"); format != "JSON" || level != "DEBUG" {
			t.Errorf("%s: logs %v from level %v on; where Lambda filters JSON, LogLevel=debug shows nothing but with DEBUG here", where, format, level)
		}
	})
}

// What is passed to a nested template is what it takes.
func TestNestedTemplatesGetWhatTheyTake(t *testing.T) {
	nested := map[string]bool{}
	each(t, "AWS::CloudFormation::Stack", func(where string, _ part, _ string, r *resource) {
		file := filepath.Base(fmt.Sprint(r.Properties["TemplateURL"]))
		nested[file] = true
		given, _ := r.Properties["Parameters"].(map[string]any)
		has, takes := slices.Sorted(maps.Keys(given)), slices.Sorted(maps.Keys(named(t, file).Parameters))
		if !slices.Equal(has, takes) {
			t.Errorf("%s: passes %v to %s, which takes %v", where, has, file, takes)
		}
	})
	for _, p := range parts(t)[1:] {
		if !nested[filepath.Base(p.file)] {
			t.Errorf("%s is nested nowhere", p.file)
		}
	}
}

// number is that of a property, through a mapping of numbers or the default of a parameter.
func number(t *testing.T, p part, value any) int {
	t.Helper()
	if m, ok := value.(map[string]any); ok {
		if in, ok := m["Fn::FindInMap"].([]any); ok {
			value = in[1]
			m, _ = value.(map[string]any)
		}
		if name, ok := m["Ref"].(string); ok {
			value = p.Parameters[name].Default
		}
	}
	n, err := strconv.Atoi(fmt.Sprint(value))
	if err != nil {
		t.Fatalf("%s: %v is no number", p.file, value)
	}
	return n
}

// A message must stay hidden until the function has surely ended, or it is worked on twice; and the queue must try more often than
// a function fails by chance.
func TestQueuesWaitForFunctions(t *testing.T) {
	stack := named(t, "template.yaml")
	timeout := func(function string) int { return number(t, stack, stack.Resources[function].Properties["Timeout"]) }
	visible := map[string]int{
		"WorkerFunction":     number(t, stack, stack.Resources["Default"].property("Parameters", "Visibility")),
		"TickFunction":       number(t, stack, stack.Resources["Ticks"].Properties["VisibilityTimeout"]),
		"DeadLetterFunction": number(t, stack, stack.Resources["DeadLetters"].Properties["VisibilityTimeout"]),
	}
	for function, visibility := range visible {
		if visibility < 6*timeout(function) {
			t.Errorf("%s: its messages are hidden for %d s, want six times its timeout of %d s", function, visibility, timeout(function))
		}
	}
	receives := fmt.Sprint(stack.Resources["Default"].property("Parameters", "MaxReceives"))
	if n, err := strconv.Atoi(receives); err != nil || n < 5 {
		t.Errorf("MaxReceives is %s, want 5 or more", receives)
	}
	text, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `BELFRY_MAX_RECEIVES: "`+receives+`"`) {
		t.Errorf("the functions are not told that the queues deliver %s times", receives)
	}
	if strings.Contains(string(text), "ReservedConcurrentExecutions") {
		t.Error("reserved concurrency fails in an account whose quota is 10: 10 must stay unreserved")
	}
}

// In a new account ten functions run at once. Workers must leave room for the API and the tick, and low its own.
func TestWorkersLeaveRoomInASmallAccount(t *testing.T) {
	stack := named(t, "template.yaml")
	events, _ := stack.Resources["WorkerFunction"].Properties["Events"].(map[string]any)
	sum := 0
	for _, priority := range []string{"High", "Normal", "Low"} {
		event, _ := events[priority].(map[string]any)
		r := resource{Properties: event}
		n := number(t, stack, r.property("Properties", "ScalingConfig", "MaximumConcurrency"))
		if n < 2 {
			t.Errorf("%s: at most %d functions; Lambda wants 2 or more", priority, n)
		}
		sum += n
	}
	if sum > 8 {
		t.Errorf("%d workers at once leave too little of a quota of 10", sum)
	}
	each(t, "AWS::Serverless::Function", func(where string, _ part, _ string, r *resource) {
		events, _ := r.Properties["Events"].(map[string]any)
		for name, event := range events {
			e := resource{Properties: event.(map[string]any)}
			if e.property("Properties", "ScalingConfig") == nil {
				t.Errorf("%s: %s may take the whole account", where, name)
			}
			if !slices.Equal(texts(e.property("Properties", "FunctionResponseTypes")), []string{"ReportBatchItemFailures"}) {
				t.Errorf("%s: %s: one bad message would bring back the whole batch", where, name)
			}
		}
	})
}

// A variable that no function reads, or that is misspelt, changes nothing, and nobody sees it.
func TestFunctionsReadWhatTheTemplateSays(t *testing.T) {
	var code strings.Builder
	for _, folder := range []string{"lib/lambda", "lib/lambda/gateway", "lib/trace/otlp", "lib/cloud"} {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && !strings.HasSuffix(file, "_test.go") {
				code.Write(text)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	set := regexp.MustCompile(`(?m)(?:^ +|\{)((?:BELFRY|OTEL)_[A-Z_]+):`).FindAllStringSubmatch(string(text), -1)
	if len(set) < 10 {
		t.Fatalf("%d variables were found", len(set))
	}
	var given []string
	for _, m := range set {
		given = append(given, m[1])
		if !strings.Contains(code.String(), m[1]) {
			t.Errorf("template.yaml sets %s, which no function reads", m[1])
		}
	}
	settings, err := os.ReadFile(filepath.Join(root, "lib", "lambda", "settings.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"(BELFRY_[A-Z_]+)"`).FindAllStringSubmatch(string(settings), -1) {
		if !slices.Contains(given, m[1]) {
			t.Errorf("lib/lambda reads %s, which template.yaml does not set", m[1])
		}
	}
}

// Whoever deploys is asked for each parameter, and must find it on the page.
func TestParametersAreExplained(t *testing.T) {
	stack := named(t, "template.yaml")
	page, err := os.ReadFile(filepath.Join(root, "docs", "aws.md"))
	if err != nil {
		t.Fatal(err)
	}
	grouped := texts(plain(child(child(stack.node, "Metadata"), "AWS::CloudFormation::Interface")))
	for _, name := range slices.Sorted(maps.Keys(stack.Parameters)) {
		if !strings.HasSuffix(stack.Parameters[name].Description, ".") {
			t.Errorf("%s: wants a description of whole sentences", name)
		}
		if !slices.Contains(grouped, name) {
			t.Errorf("%s: is in no group of the template's interface", name)
		}
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/aws.md does not have the parameter %s", name)
		}
	}
}

func TestTheAPIIsNeverOpen(t *testing.T) {
	auth := named(t, "template.yaml").Parameters["Auth"]
	if auth.Default != "iam" || !slices.Equal(auth.AllowedValues, []any{"iam", "api-key", "jwt"}) {
		t.Errorf("Auth is %q of %v by default", auth.Default, auth.AllowedValues)
	}
	api := named(t, "api.yaml").Resources["API"]
	paths, _ := api.property("Body", "paths").(map[string]any)
	for path, verbs := range paths {
		for verb, operation := range verbs.(map[string]any) {
			security, _ := operation.(map[string]any)["security"].(map[string]any)
			if got := texts(security["Fn::If"]); !slices.Equal(got, []string{"IAM", "JWT"}) {
				t.Errorf("%s %s: security hangs on %v", verb, path, got)
			}
			for _, one := range []string{"iam", "jwt", "key"} {
				found := false
				walk(security, func(v any) {
					m, _ := v.(map[string]any)
					_, ok := m[one]
					found = found || ok
				})
				if !found {
					t.Errorf("%s %s: asks for nothing where Auth is %s", verb, path, one)
				}
			}
		}
	}
}
