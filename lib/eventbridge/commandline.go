package eventbridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// commandTimeout is for a command that hands over a message; the command line itself waits for up to a minute.
const commandTimeout = 2 * time.Minute

// commandLine gives the command that does what EventBridge does with the target. The commands:
// https://docs.aws.amazon.com/cli/latest/reference/. Values that it would read from files:
// https://docs.aws.amazon.com/cli/latest/userguide/cli-usage-parameters-file.html. EventBridge calls Lambda functions without waiting for their end, and so
// does this.
func (s *scheduled) commandLine() ([]string, error) {
	parts := strings.SplitN(s.arn, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" {
		return nil, fmt.Errorf("Target.Arn: got %q, want an ARN", s.arn)
	}
	for _, begins := range []string{"file://", "fileb://", "-"} {
		if strings.HasPrefix(s.input, begins) {
			return nil, fmt.Errorf("its Input begins with %s, which the AWS command line takes for a file or a flag; --target-url calls an address instead", begins)
		}
	}
	partition, service, region, account, resource := parts[1], parts[2], parts[3], parts[4], parts[5]
	var command []string
	switch kind, _, _ := strings.Cut(resource, ":"); {
	case service == "lambda" && kind == "function":
		command = []string{"lambda", "invoke", "--function-name", s.arn, "--invocation-type", "Event",
			"--cli-binary-format", "raw-in-base64-out", "--payload", s.input, "/dev/stdout"}
	case service == "sqs":
		domain := "amazonaws.com"
		if partition == "aws-cn" {
			domain = "amazonaws.com.cn"
		}
		command = []string{"sqs", "send-message", "--queue-url", "https://sqs." + region + "." + domain + "/" + account + "/" + resource,
			"--message-body", s.input}
		if group := s.target.Object("SqsParameters").Text("MessageGroupId"); group != "" {
			command = append(command, "--message-group-id", group)
		}
	case service == "sns":
		command = []string{"sns", "publish", "--topic-arn", s.arn, "--message", s.input}
	case service == "states" && kind == "stateMachine":
		command = []string{"stepfunctions", "start-execution", "--state-machine-arn", s.arn, "--input", s.input}
	case service == "kinesis":
		command = []string{"kinesis", "put-record", "--stream-arn", s.arn, "--partition-key", s.target.Object("KinesisParameters").Text("PartitionKey"),
			"--cli-binary-format", "raw-in-base64-out", "--data", s.input}
	case service == "events":
		about := s.target.Object("EventBridgeParameters")
		entries, err := json.Marshal([]map[string]string{{"EventBusName": s.arn, "Source": about.Text("Source"),
			"DetailType": about.Text("DetailType"), "Detail": s.input}})
		if err != nil {
			return nil, fmt.Errorf("Target.Input: %w", err)
		}
		command = []string{"events", "put-events", "--entries", string(entries)}
		s.say("an event that the bus refuses makes no run fail: the answer in the run's log counts them in FailedEntryCount")
	default:
		return nil, fmt.Errorf("no command of the AWS command line is known that does the same as the target %s; --target-url calls an address instead", s.arn)
	}
	return append([]string{"aws", "--region", region}, command...), nil
}
