package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/belfry-scheduler/belfry/lib/wire"
)

// ready tells all that was checked: what the scheduler needs, and the disk under it.
func (p *process) ready(ctx context.Context) []wire.Check {
	var shown []wire.Check
	for _, c := range p.node.Checks(ctx) {
		switch {
		case c.Err != nil:
			shown = append(shown, wire.Check{Name: c.Name, State: wire.CheckFailing, Detail: c.Err.Error()})
		case c.Attention:
			shown = append(shown, wire.Check{Name: c.Name, State: wire.CheckAttention, Detail: c.Detail})
		default:
			shown = append(shown, wire.Check{Name: c.Name, State: wire.CheckOK, Detail: c.Detail})
		}
	}
	if p.disk != nil {
		shown = append(shown, p.disk.check())
	}
	if p.certificate != nil {
		shown = append(shown, p.certificate.check())
	}
	return shown
}

// checkStates are the states of a check by the numbers that metrics have for them.
var checkStates = []string{wire.CheckOK, wire.CheckAttention, wire.CheckFailing}

// disk is where the data lies.
type disk struct {
	folder string

	mu    sync.Mutex
	found wire.Check
	at    time.Time
}

const (
	diskEvery = 5 * time.Second // anybody may ask whether a server is ready, and each look writes
	probeSize = 4 << 10
	lowSpace  = 1 << 30
)

// check writes a little, to see whether that is possible, and looks at how much room is left.
func (d *disk) check() wire.Check {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.at.IsZero() || time.Since(d.at) >= diskEvery {
		d.found, d.at = d.look(), time.Now()
	}
	return d.found
}

func (d *disk) look() wire.Check {
	if err := d.probe(); err != nil {
		// Without the path: who asks need not know where the data lies.
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return wire.Check{Name: "disk", State: wire.CheckFailing, Detail: "the data folder cannot be written: " + err.Error()}
	}
	free, size, err := diskRoom(d.folder)
	if err != nil {
		return wire.Check{Name: "disk", State: wire.CheckAttention, Detail: "can be written; how much room is left is not known: " + err.Error()}
	}
	c := wire.Check{Name: "disk", State: wire.CheckOK, Detail: fmt.Sprintf("can be written, %d%% free", 100*free/max(1, size))}
	if free < lowSpace || free < size/20 {
		c.State = wire.CheckAttention
		c.Detail = fmt.Sprintf("can be written, and only %d MB are free", free>>20)
	}
	return c
}

// diskRoom is how many bytes are free on the disk of a folder, and how many it has in all.
func diskRoom(folder string) (free, size uint64, err error) {
	var about syscall.Statfs_t
	if err := syscall.Statfs(folder, &about); err != nil {
		return 0, 0, err
	}
	return about.Bavail * uint64(about.Bsize), about.Blocks * uint64(about.Bsize), nil
}

func (d *disk) probe() error {
	file, err := os.CreateTemp(d.folder, ".ready-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(make([]byte, probeSize))
	return errors.Join(err, file.Close())
}
