package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Patience bounds the waits for a server to start and to end, on a busy machine.
const patience = 30 * time.Second

// server is a process that the harness starts, measures against and ends.
type server struct {
	name   string
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
	quit   []syscall.Signal // that end it, in growing force
}

// launch starts a server in a process group of its own, so that Ctrl-C reaches it only after its clients have left.
func launch(name, log string, cmd *exec.Cmd, quit ...syscall.Signal) (*server, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close() // the process has its own
	cmd.Stdout, cmd.Stderr = out, out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s := &server{name, cmd, log, make(chan struct{}), append(quit, syscall.SIGKILL)}
	go func() {
		_ = cmd.Wait()
		close(s.exited)
	}()
	return s, nil
}

// ready waits until ask succeeds.
func (s *server) ready(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var refused error
	for {
		if refused = ask(ctx); refused == nil {
			return nil
		}
		again := time.NewTimer(20 * time.Millisecond)
		select {
		case <-again.C:
		case <-s.exited:
			again.Stop()
			return fmt.Errorf("%s ended at once: %s", s.name, s.said())
		case <-ctx.Done():
			again.Stop()
			return errors.Join(fmt.Errorf("%s is not ready: %w: %s", s.name, ctx.Err(), s.said()), refused)
		}
	}
}

// said gives the end of its log.
func (s *server) said() string {
	text, _ := os.ReadFile(s.log)
	return tail(string(text))
}

func tail(text string) string { return text[max(0, len(text)-2000):] }

// stop ends the server and whatever it has started, by force if it does not listen.
func (s *server) stop() {
	for _, signal := range s.quit {
		select {
		case <-s.exited:
			return
		default:
		}
		target := s.cmd.Process.Pid
		if signal == syscall.SIGKILL {
			target = -target // the whole group
		}
		_ = syscall.Kill(target, signal)
		over := time.NewTimer(patience)
		select {
		case <-s.exited:
			over.Stop()
			return
		case <-over.C:
		}
	}
}

// program finds a server's binary, where Debian keeps those that are not on everybody's path too.
func program(name string, elsewhere ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, pattern := range elsewhere {
		if found, _ := filepath.Glob(filepath.Join(pattern, name)); len(found) > 0 {
			return found[len(found)-1], nil // the newest
		}
	}
	return "", fmt.Errorf("%s is not installed; make bench-peers installs it", name)
}
