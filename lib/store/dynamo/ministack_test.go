//go:build emulators && deep

package dynamo_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/belfry-scheduler/belfry/lib/store"
	"github.com/belfry-scheduler/belfry/lib/store/storetest"
)

// differences are the parts of the suite that MiniStack's own DynamoDB does not pass, each shown below. DynamoDB Local is the judge.
const differences = "^TestStoreOnMiniStack$/^sizes_at_and_over_each_limit$"

// TestStoreOnMiniStack is the same suite on another's idea of DynamoDB. It runs in a process of its own, which leaves the differences
// out: the suite knows no engine.
func TestStoreOnMiniStack(t *testing.T) {
	const inner = "BELFRY_TEST_WITHOUT_DIFFERENCES"
	if os.Getenv(inner) != "" {
		storetest.Run(t, func(t *testing.T) store.Store { return open(t, emulatedBy(t, "BELFRY_TEST_AWS", nil)) })
		return
	}
	suite := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestStoreOnMiniStack$", "-test.skip", differences, "-test.parallel", "4")
	suite.Env = append(os.Environ(), inner+"=1")
	if out, err := suite.CombinedOutput(); err != nil {
		t.Errorf("the suite: %v\n%s", err, out)
	}
}

// TestDifferencesOfMiniStack fails when one of them has gone: take it out above then, and from docs/store.md.
func TestDifferencesOfMiniStack(t *testing.T) {
	// It counts a transaction's JSON, in which bytes are a third longer, where DynamoDB counts the items.
	var ops []store.Op
	for _, sort := range strings.Split("abcdefghij", "") {
		ops = append(ops, store.Op{Kind: store.Put, Key: store.Key{Partition: "large", Sort: sort}, Value: make([]byte, 340<<10)})
	}
	for _, c := range []struct {
		variable string
		refused  bool
	}{{"BELFRY_TEST_DYNAMODB", false}, {"BELFRY_TEST_AWS", true}} {
		_, err := open(t, emulatedBy(t, c.variable, nil)).Write(t.Context(), ops...)
		if refused := err != nil && strings.Contains(err.Error(), "4MB transaction size limit"); refused != c.refused || err != nil && !refused {
			t.Errorf("a transaction of 3.4 MB at %s: %v, refused %v", c.variable, err, c.refused)
		}
	}
}
