//go:build emulators && deep

package e2e

func init() { width = 200 }
