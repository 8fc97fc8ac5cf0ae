package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"
)

// postgres is a PostgreSQL cluster of the harness. Its data outlives a start, so that later rounds find log segments to reuse, as a
// database that has run for an hour does; it runs only while it is measured.
type postgres struct {
	dir      string
	binaries string
	as       *syscall.Credential // whom it runs as: PostgreSQL refuses root
	running  *server
}

// postgresSettings are those that differ from Debian's. What is synced is as by default: every commit.
func postgresSettings(memory uint64) []string {
	quarter := min(memory/4, 8<<30) >> 20
	return []string{
		"fsync=on", "synchronous_commit=on", "full_page_writes=on", // the defaults, said aloud
		fmt.Sprintf("shared_buffers=%dMB", quarter),
		fmt.Sprintf("effective_cache_size=%dMB", 2*quarter),
		"max_wal_size=16GB", "min_wal_size=4GB", "checkpoint_timeout=30min", // no checkpoint while it is measured
		"wal_buffers=64MB", "wal_level=minimal", "max_wal_senders=0",
		"work_mem=64MB", "maintenance_work_mem=512MB", "random_page_cost=1.1", "jit=off", "max_connections=200",
	}
}

func newPostgres(ctx context.Context, dir string) (*postgres, error) {
	initdb, err := program("initdb", "/usr/lib/postgresql/*/bin")
	if err != nil {
		return nil, err
	}
	p := &postgres{dir: dir, binaries: filepath.Dir(initdb)}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		if p.as, err = owner("postgres"); err != nil {
			return nil, err
		}
		if err := os.Chown(dir, int(p.as.Uid), int(p.as.Gid)); err != nil {
			return nil, err
		}
	}
	initialise := p.command(ctx, "initdb", "--pgdata", p.data(), "--username", "postgres", "--auth", "trust", "--encoding", "UTF8", "--locale", "C.UTF-8")
	initialise.SysProcAttr.Setpgid = true
	initialise.Cancel = func() error { return syscall.Kill(-initialise.Process.Pid, syscall.SIGKILL) } // with the servers that it starts
	initialise.WaitDelay = patience
	if said, err := initialise.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, said)
	}
	return p, nil
}

func owner(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL refuses root: %w", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (p *postgres) data() string { return filepath.Join(p.dir, "data") }

func (p *postgres) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.binaries, name), args...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	return cmd
}

// start gives a pool of connections, over a socket, to the running cluster.
func (p *postgres) start(ctx context.Context, settings []string, connections int) (*pgxpool.Pool, error) {
	args := []string{"-D", p.data(), "-c", "listen_addresses=", "-c", "unix_socket_directories=" + p.dir}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	// Not under ctx: it is to end after its clients, in stop.
	cmd := p.command(context.WithoutCancel(ctx), "postgres", args...)
	// Fast: clients are sent away and a checkpoint is written. Immediate, if that takes too long.
	var err error
	if p.running, err = launch("PostgreSQL", filepath.Join(p.dir, "..", "postgres.log"), cmd, syscall.SIGINT, syscall.SIGQUIT); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig("postgres:///postgres?user=postgres&host=" + p.dir)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(connections)
	config.MinConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := p.running.ready(ctx, pool.Ping); err != nil {
		leave(pool)
		return nil, err
	}
	return pool, nil
}

func (p *postgres) stop() {
	if p.running != nil {
		p.running.stop()
		p.running = nil
	}
}

// version tells what is installed, as "PostgreSQL 15.18".
func (p *postgres) version(ctx context.Context) (string, error) {
	said, err := p.command(ctx, "postgres", "--version").Output()
	if err != nil {
		return "", err
	}
	words := strings.Fields(string(said)) // postgres (PostgreSQL) 15.18 (Debian …)
	if len(words) < 3 {
		return "", fmt.Errorf("postgres --version says %q", said)
	}
	return "PostgreSQL " + words[2], nil
}
