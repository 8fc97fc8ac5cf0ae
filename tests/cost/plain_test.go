//go:build !emulators

package cost

const emulated = false
