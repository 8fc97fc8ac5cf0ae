//go:build emulators && deep

package s3_test

import "testing"

func TestConformanceOnMiniStack(t *testing.T) { conform(t, "BELFRY_TEST_AWS") }
