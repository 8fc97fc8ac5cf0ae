// Package pebble keeps a store in a folder of one machine, in Pebble, a log-structured merge tree.
package pebble
