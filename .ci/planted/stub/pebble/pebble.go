// Package pebble stands for the driver.
package pebble
