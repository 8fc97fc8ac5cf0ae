package run

import "testing"

func TestTheCodeOfAStep(t *testing.T) {
	failed := func(text string) []Attempt {
		return []Attempt{{Outcome: OutcomeCrashed}, {Outcome: OutcomeFailed, Error: text}}
	}
	for name, row := range map[string]struct {
		r    Run
		want string
	}{
		"failed":            {Run{State: Failed, Attempts: failed("exit: exit code 3")}, "exit:3"},
		"spent":             {Run{State: Dead, Attempts: failed("http_status: answered 503 Service Unavailable")}, "http_status:503"},
		"unsure":            {Run{State: Unknown, Attempts: failed("timeout: the attempt ran into its timeout")}, "timeout"},
		"crashed":           {Run{State: Unknown, Attempts: []Attempt{{Outcome: OutcomeFailed, Error: "exit: exit code 3"}, {Outcome: OutcomeCrashed, Error: "its lease ran out"}}}, "crash"},
		"killed its worker": {Run{State: Dead, Attempts: []Attempt{{Outcome: OutcomeCrashed}}}, "crash"},
		"given up":          {Run{State: Dead}, "crash"},
		"asked":             {Run{State: Failed, Reason: "expression: steps.load.when: it gives 7"}, "expression"},
		"cancelled":         {Run{State: Cancelled, Attempts: failed("exit: exit code 3")}, "cancelled"},
		"goes on":           {Run{State: Retrying, Attempts: failed("exit: exit code 3")}, ""},
		"succeeded":         {Run{State: Succeeded, Attempts: failed("exit: exit code 3")}, ""},
	} {
		if got := row.r.Code(); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
}
