package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	folder   = "tests/mutants"
	pageFile = "docs/mutants.md"
)

// run plants the mutants and tells what became of them. It is started in the module's root.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	seeds := flags.Int("seeds", 12, "histories of the simulation for each mutant")
	lanes := flags.Int("lanes", 2, "mutants at once")
	only := flags.String("only", "", "tests or simulation: leave the other out, and keep what is known of it")
	bound := flags.Duration("bound", 2*time.Minute, "how long the tests of a package may take, and a seed of the simulation")
	update := flags.Bool("update", false, "keep what was found in "+recordFile+" and in "+pageFile)
	table := flags.Bool("table", false, "only write the table of "+pageFile+" from "+recordFile)
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := load(os.DirFS(folder))
	if err != nil {
		return err
	}
	kept, err := readRecord(filepath.Join(folder, recordFile))
	if err != nil {
		return err
	}
	if *table {
		return writePage(kept, all)
	}
	chosen, err := choose(all, flags.Args())
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r := &round{garden: garden{root, dir, *bound}, seeds: *seeds, only: *only, update: *update, out: out, known: kept, all: len(chosen), found: record{Fates: map[string]fate{}}}
	err = r.plantAll(ctx, chosen, *lanes)
	_, _ = fmt.Fprintf(out, "\n%s\nin %s\n", r.found.score(chosen), time.Since(r.began).Round(time.Second))
	if *update && err == nil {
		for name := range kept.Fates {
			if !slices.ContainsFunc(all, func(m mutant) bool { return m.Name == name }) {
				delete(kept.Fates, name)
			}
		}
		if err := kept.write(filepath.Join(folder, recordFile)); err != nil {
			return err
		}
		return errors.Join(writePage(kept, all), r.verdict(chosen))
	}
	return errors.Join(err, r.verdict(chosen))
}

func writePage(r record, all []mutant) error {
	text, err := os.ReadFile(pageFile)
	if err != nil {
		return err
	}
	page, err := r.page(string(text), all)
	if err != nil {
		return err
	}
	return os.WriteFile(pageFile, []byte(page), 0o600)
}

// choose gives the mutants whose names contain one of some words; all where there is none.
func choose(all []mutant, words []string) ([]mutant, error) {
	if len(words) == 0 {
		return all, nil
	}
	var chosen []mutant
	for _, word := range words {
		for _, m := range all {
			if (strings.Contains(m.Name, word) || m.Area == word || m.Rule == word) && !slices.ContainsFunc(chosen, func(c mutant) bool { return c.Name == m.Name }) {
				chosen = append(chosen, m)
			}
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no mutant has a name with, or the area or rule, %q", words)
	}
	return chosen, nil
}

// round is one run over some mutants.
type round struct {
	garden
	seeds  int
	only   string
	update bool
	all    int
	began  time.Time
	out    io.Writer
	known  record // what runs before have found

	mu    sync.Mutex
	done  int
	found record
	wrong []string // of the harness: the canary passed, or the sound one did not
}

// plantAll sees to all mutants, several at once.
func (r *round) plantAll(ctx context.Context, chosen []mutant, lanes int) error {
	r.began = time.Now()
	next := make(chan mutant)
	var under sync.WaitGroup
	var errs []error
	for range lanes {
		under.Go(func() {
			for m := range next {
				if err := r.one(ctx, m); err != nil {
					r.mu.Lock()
					errs = append(errs, err)
					r.mu.Unlock()
				}
			}
		})
	}
	for _, m := range chosen {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	under.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// one tries the simulation and the ordinary tests, each by itself, on one mutant.
func (r *round) one(ctx context.Context, m mutant) (err error) {
	p, err := r.plant(m)
	if err != nil {
		return err
	}
	defer p.uproot()
	if m.Name == canary || m.Name == sound {
		return r.hold(ctx, p)
	}
	r.mu.Lock()
	f := r.known.Fates[m.Name]
	r.mu.Unlock()
	if m.NoSim == "" && r.only != "tests" {
		if f.Simulation, err = p.simulate(ctx, m.From, r.seeds); err != nil {
			return err
		}
		f.Seeds, f.LateSeeds = r.seeds, p.lateSeeds
	}
	if r.only != "simulation" {
		if f.Tests, err = p.ordinary(ctx); err != nil {
			return err
		}
		f.LateTests = p.lateTests
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found.Fates[m.Name], r.known.Fates[m.Name] = f, f
	if r.update { // a run that is ended keeps what it has come to
		if err := r.known.write(filepath.Join(folder, recordFile)); err != nil {
			return err
		}
	}
	r.tell(m.Name, "the simulation: "+f.Simulation.text(m.NoSim)+f.lateSeeds(), "the tests: "+f.Tests.text("")+f.lateTests())
	return nil
}

// hold tries every killer on a mutant that holds the harness.
func (r *round) hold(ctx context.Context, p *planted) error {
	for _, s := range append([]suite{simulation}, p.Tests...) {
		if s == simulation && r.only == "tests" || s != simulation && r.only == "simulation" {
			continue
		}
		d, err := p.killer(ctx, s, r.seeds)
		if err != nil {
			return err
		}
		r.mu.Lock()
		if p.Name == canary && d == nil {
			r.wrong = append(r.wrong, fmt.Sprintf("the canary passes %s: the harness, or these tests, look at nothing", s))
		}
		if p.Name == sound && d != nil {
			r.wrong = append(r.wrong, fmt.Sprintf("%s fails without any mutant, so it shows nothing: %s", s, d.text("")))
		}
		late := fate{LateSeeds: p.lateSeeds, LateTests: p.lateTests}
		if p.Name == sound && d == nil && len(p.lateSeeds)+len(p.lateTests) > 0 {
			r.wrong = append(r.wrong, fmt.Sprintf("%s runs out of time without any mutant, so nothing can be held against it%s%s", s, late.lateSeeds(), late.lateTests()))
		}
		r.tell(p.Name, s.String()+": "+d.text("")+late.lateSeeds()+late.lateTests())
		p.lateSeeds, p.lateTests = nil, nil
		r.mu.Unlock()
		p.uproot()
	}
	return nil
}

// tell prints progress; its caller holds mu.
func (r *round) tell(name string, lines ...string) {
	if name != canary && name != sound {
		r.done++
	}
	_, _ = fmt.Fprintf(r.out, "%s %s (%d of %d)\n\t%s\n", time.Since(r.began).Round(time.Second), name, r.done, r.all, strings.Join(lines, "\n\t"))
}

func (d *death) text(reason string) string {
	switch {
	case d == nil && reason != "":
		return "out of its reach: " + reason
	case d == nil:
		return "nothing found"
	case d.Package == simulation.Package:
		return fmt.Sprintf("seed %d, %s, in %.1f s: %s", d.Seed, d.when(), d.Seconds, d.Said)
	}
	return fmt.Sprintf("%s %s, in %.1f s: %s", d.Package, d.Test, d.Seconds, d.Said)
}

// enough is which part of the mutants must be found.
const enough = 0.95

// verdict is what is wrong with the whole: too few were found, one that survived has no word of why, or the harness is broken.
func (r *round) verdict(chosen []mutant) error {
	var errs []error
	for _, wrong := range r.wrong {
		errs = append(errs, errors.New(wrong))
	}
	s := r.found.score(chosen)
	for _, name := range s.alive {
		errs = append(errs, fmt.Errorf("%s survives: add the missing check to tests/oracle or to a test, or, where it changes nothing that anybody could see, say so in its header as Equivalent", name))
	}
	if float64(s.killed) < enough*float64(s.all) {
		errs = append(errs, fmt.Errorf("%d of %d were found, want %.0f%%", s.killed, s.all, 100*enough))
	}
	for _, m := range chosen {
		if f := r.found.Fates[m.Name]; m.Equal != "" && (f.Simulation != nil || f.Tests != nil) {
			errs = append(errs, fmt.Errorf("%s is called equivalent, and was found all the same", m.Name))
		}
	}
	return errors.Join(errs...)
}
