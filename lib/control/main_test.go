package control_test

import (
	"os"
	"testing"

	"github.com/belfry-scheduler/belfry/tests/garbage"
)

func TestMain(m *testing.M) {
	garbage.Seldom()
	os.Exit(m.Run())
}
