// Package sim runs Belfry's own code for simulated hours in seconds, under every fault, from one seed that replays exactly.
package sim
