//go:build emulators && deep

package e2e

func init() {
	width = 200
	uses["a browser uses the stack by belfry console"] = aBrowserUsesTheStack
}
