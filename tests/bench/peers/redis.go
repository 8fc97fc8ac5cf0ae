package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// redisServer is a Redis of one run, its folder new.
type redisServer struct {
	*server
	socket string
}

// redisSettings are those of one way to keep data: always, everysec or none. Rewriting the log would only take time from a short run.
func redisSettings(fsync string) []string {
	settings := []string{"--save", ""}
	if fsync == "none" {
		return append(settings, "--appendonly", "no")
	}
	return append(settings, "--appendonly", "yes", "--appendfsync", fsync, "--auto-aof-rewrite-percentage", "0")
}

func startRedis(ctx context.Context, dir, fsync string) (*redisServer, error) {
	binary, err := program("redis-server")
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	r := &redisServer{socket: filepath.Join(dir, "s")}
	args := append([]string{"--port", "0", "--unixsocket", r.socket, "--dir", dir, "--daemonize", "no"}, redisSettings(fsync)...)
	// Not under ctx: it is to end after its clients, in stop.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), binary, args...)
	// Its data is thrown away, so that there is nothing to wait for.
	if r.server, err = launch("Redis", dir+".log", cmd, syscall.SIGTERM); err != nil {
		return nil, err
	}
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: r.socket, MaxRetries: -1})
	defer client.Close()
	if err := r.ready(ctx, func(ctx context.Context) error { return client.Ping(ctx).Err() }); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// redisVersion tells what is installed, as "Redis 7.0.15".
func redisVersion(ctx context.Context) (string, error) {
	binary, err := program("redis-server")
	if err != nil {
		return "", err
	}
	said, err := exec.CommandContext(ctx, binary, "--version").Output()
	if err != nil {
		return "", err
	}
	for word := range strings.FieldsSeq(string(said)) { // Redis server v=7.0.15 …
		if version, ok := strings.CutPrefix(word, "v="); ok {
			return "Redis " + version, nil
		}
	}
	return "", fmt.Errorf("redis-server --version says %q", said)
}
