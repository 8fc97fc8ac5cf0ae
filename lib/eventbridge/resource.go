package eventbridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/belfry-scheduler/belfry/lib/target"
)

// resource gives the aws target that does what EventBridge does with the schedule's. EventBridge calls Lambda functions without
// waiting for their end, and so does this.
func (s *scheduled) resource() error {
	arn, err := target.ParseARN(s.arn)
	if err != nil {
		return fmt.Errorf("it calls %s, which is no target of Belfry's (docs/targets.md lists those of AWS); --target-url calls an address instead", s.arn)
	}
	to := &target.AWS{ARN: s.arn}
	told := "" // where the input gets a member that tells of the run
	switch arn.Service {
	case target.ServiceLambda:
		to.Invoke, told = target.InvokeAsync, "the function's event"
	case target.ServiceSQS:
		to.MessageGroup = s.target.Object("SqsParameters").Text("MessageGroupId")
	case target.ServiceEvents:
		about := s.target.Object("EventBridgeParameters")
		to.Source, to.DetailType, told = about.Text("Source"), about.Text("DetailType"), "the event's detail"
	case target.ServiceStates:
		told = "the execution's input"
	}
	if told != "" {
		if err := s.envelope(told); err != nil {
			return err
		}
	}
	s.def.Target.AWS = to
	return nil
}

// envelope says what becomes of an input that is told of the run.
func (s *scheduled) envelope(what string) error {
	if !bytes.HasPrefix(bytes.TrimSpace(s.def.Payload), []byte("{")) {
		s.say(`Input is no JSON object: %s is {"belfry": …, "payload": Input}`, what)
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(s.def.Payload, &members); err != nil {
		return fmt.Errorf("Target.Input: %w", err)
	}
	if members["belfry"] != nil {
		return errors.New(`its Input has a member "belfry", in which Belfry tells of the run; --target-url calls an address instead`)
	}
	s.say(`%s has a member "belfry" beside those of Input, which tells of the run`, what)
	return nil
}
