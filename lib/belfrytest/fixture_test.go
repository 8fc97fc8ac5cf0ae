package belfrytest_test

import (
	"context"
	"fmt"
	"io"
	"testing"
)

// example stands for the *testing.T that an Example has not.
type example struct{ testing.TB }

func ofTest() testing.TB { return example{} }

func (example) Context() context.Context          { return context.Background() }
func (example) Output() io.Writer                 { return io.Discard }
func (example) Helper()                           {}
func (example) Cleanup(func())                    {} // the process ends with the tests
func (example) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
