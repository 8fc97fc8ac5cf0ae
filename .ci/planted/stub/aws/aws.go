// Package aws stands for the SDK.
package aws
