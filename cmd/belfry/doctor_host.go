package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// hostFindings looks at this host.
func (c *cli) hostFindings() []finding {
	found := []finding{zonesFinding(thisBuild().TZData, hostTZData("/usr/share/zoneinfo"), c.now())}
	if zone, err := hostZone(os.Getenv("TZ"), "/etc/timezone", "/etc/localtime"); err != nil {
		found = append(found, finding{Check: "host's zone", Status: findAttention, Found: err.Error(),
			Why: "belfry import crontab reads times in the host's zone.", Help: "Name it with --timezone, or set TZ."})
	} else {
		found = append(found, fine("host's zone", "%s, for import crontab", zone))
	}
	if c.config.file.holdsSecret() {
		found = append(found, privateFinding("config.toml", c.config.file.path))
	}
	for _, name := range []string{"token_file", "api_key_file"} {
		if path := c.config.settings[name].text; path != "" {
			found = append(found, privateFinding(strings.ReplaceAll(strings.ReplaceAll(name, "_", " "), "api", "API"), path))
		}
	}
	return found
}

// keyFindings looks at the files with keys and secrets that a server or a worker here would be started with.
func (c *cli) keyFindings(root *cobra.Command, data string) (found []finding) {
	seen := map[string]bool{}
	for _, name := range []string{"serve", "dev", "worker"} {
		role := roleNamed(root, name)
		if role == nil || c.configureCommand(role) != nil {
			continue
		}
		for _, flag := range []string{"tls-key", "secrets-key-file", "smtp-url-file", "secrets-dir"} {
			path := c.config.role[flag].text
			if _, has := c.config.role[flag]; !has || path == "" || seen[path] {
				continue
			}
			seen[path] = true
			if flag == "secrets-dir" {
				found = append(found, secretsFinding(path))
			} else {
				found = append(found, privateFinding(flag, path))
			}
		}
	}
	if path := filepath.Join(data, "secrets.key"); data != "" {
		if _, err := os.Stat(path); err == nil {
			found = append(found, privateFinding("secrets.key", path))
		}
	}
	return found
}

// secretsFinding looks at a folder with a file for each secret. Docker and Kubernetes let everybody in a container read these, and there
// may be nobody else in it.
func secretsFinding(dir string) finding {
	if _, err := os.ReadDir(dir); err != nil {
		return finding{Check: "secrets-dir", Status: findProblem, Found: err.Error(), Help: "Name another, or make it readable for this user."}
	}
	e := exposedIn(dir)
	if e == nil {
		return fine("secrets-dir", "%s and what is in it is its owner's alone", dir)
	}
	return finding{Check: "secrets-dir", Status: findAttention, Found: fmt.Sprintf("%s has the mode %s: others than its owner get at it", e.path, e.octal()),
		Why:  "Whoever reads it can act with the secret.",
		Help: e.chmod() + ", and so on for the others in " + dir + "; of a Kubernetes secret, defaultMode: 0400."}
}

// tzdataAge is how long after the end of its year a release may still be the newest one.
const tzdataAge = 18 * 30 * 24 * time.Hour

// zonesFinding judges the time zones by which schedules are computed: those built in, whatever the host has.
func zonesFinding(builtIn, host string, now time.Time) finding {
	f := fine("time zones", "tzdata %s, built in", builtIn)
	if host != "" {
		f.Found += "; the host has " + host
	}
	why := "Belfry goes by the zones that are built in, so that all hosts agree. Countries change their rules a few times a year."
	year, err := strconv.Atoi(builtIn[:min(4, len(builtIn))])
	switch {
	case host > builtIn:
		f.Status, f.Why = findAttention, why
		f.Help = "The host knows newer rules. Where a zone of your schedules changed since, update Belfry."
	case err == nil && now.Sub(time.Date(year+1, 1, 1, 0, 0, 0, 0, time.UTC)) > tzdataAge:
		f.Status, f.Why = findAttention, why
		f.Help = "They are old. Update Belfry."
	}
	return f
}

// hostTZData is the release of the host's zones, "" where it is not told.
func hostTZData(folder string) string {
	if text, err := os.ReadFile(filepath.Join(folder, "+VERSION")); err == nil {
		return strings.TrimSpace(string(text))
	}
	file, err := os.Open(filepath.Join(folder, "tzdata.zi"))
	if err != nil {
		return ""
	}
	defer file.Close()
	first := bufio.NewScanner(file)
	first.Scan()
	release, _ := strings.CutPrefix(first.Text(), "# version ")
	if len(release) > 10 || release == first.Text() {
		return ""
	}
	return release
}

// privateFinding looks whether others than its owner get at a file or folder.
func privateFinding(what, path string) finding {
	info, err := os.Stat(path)
	if err != nil {
		return finding{Check: what, Status: findProblem, Found: err.Error(), Help: "Name another, or make it readable for this user."}
	}
	if e := exposed(path); e != nil {
		return finding{Check: what, Status: findProblem, Found: fmt.Sprintf("%s has the mode %s (%s): others than its owner get at it", path, e.octal(), info.Mode().Perm()),
			Why: "What is in it lets its reader act as you, or see payloads and results.", Help: e.chmod()}
	}
	return fine(what, "%s is its owner's alone", path)
}

// How a disk's syncs are measured and judged. Each answer of Belfry waits for one.
const (
	syncTries   = 50
	syncBudget  = 5 * time.Second
	slowTypical = 10 * time.Millisecond
	slowWorst   = 100 * time.Millisecond
)

// syncFinding measures how long a small write takes until it is on the disk.
func syncFinding(folder string) finding {
	file, err := os.CreateTemp(folder, ".doctor-")
	if err != nil {
		return finding{Check: "disk", Status: findProblem, Found: "the data folder cannot be written: " + err.Error(),
			Why: "A server cannot keep what it is told.", Help: "Run the doctor as the server's user; give that user the folder with chown."}
	}
	defer os.Remove(file.Name())
	defer file.Close()
	var took []time.Duration
	for began := time.Now(); len(took) < syncTries && time.Since(began) < syncBudget; {
		start := time.Now()
		if _, err = file.Write(make([]byte, probeSize)); err == nil {
			err = file.Sync()
		}
		if err != nil {
			return finding{Check: "disk", Status: findProblem, Found: "a write was not synced: " + err.Error(),
				Why: "Nothing can be acknowledged on this disk.", Help: "Look at the kernel's log for errors of the disk."}
		}
		took = append(took, time.Since(start))
	}
	return judgeSyncs(took)
}

func judgeSyncs(took []time.Duration) finding {
	slices.Sort(took)
	typical, worst := took[len(took)/2], took[len(took)*99/100]
	f := fine("disk", "a sync takes %s, at the worst %s (%d of 4 KB; p50, p99)", roundly(typical), roundly(worst), len(took))
	if typical > slowTypical || worst > slowWorst {
		f.Status = findAttention
		f.Why = fmt.Sprintf("Every answer waits for a sync, so this is how long each takes. Over %s, or now and then over %s, fires are late.", slowTypical, slowWorst)
		f.Help = "Put the data folder on a local SSD. Network file systems and disks shared with busy neighbours are slow to sync."
	}
	return f
}

func roundly(d time.Duration) time.Duration {
	if d > 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// roomFinding tells how full the disk is.
func (c *cli) roomFinding(folder string) finding {
	free, size, err := c.diskRoom(folder)
	if err != nil {
		return finding{Check: "room", Status: findAttention, Found: "how much is left is not known: " + err.Error()}
	}
	return judgeRoom(free, size)
}

func judgeRoom(free, size uint64) finding {
	f := fine("room", "%s free, %d%%", sizeText(int64(free)), 100*free/max(1, size))
	switch {
	case free < lowSpace/10 || free < size/100:
		f.Status = findProblem
	case free < lowSpace || free < size/20:
		f.Status = findAttention
	default:
		return f
	}
	f.Why, f.Help = "A full disk stops the server: it acknowledges nothing that is not on the disk.", "Make room, or shorten the retention of busy jobs (docs/limits.md says what a run costs)."
	return f
}
