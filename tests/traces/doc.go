// Package traces follows runs from the request or tick that they began with to their targets, by what the collectors of traces get.
package traces
