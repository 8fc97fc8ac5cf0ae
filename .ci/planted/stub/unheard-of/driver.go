// Package driver stands for one that no list names.
package driver
