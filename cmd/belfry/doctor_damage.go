package main

import (
	"context"
	"fmt"
	"path"

	"github.com/belfry-scheduler/belfry/lib/embed"
	"github.com/belfry-scheduler/belfry/lib/store/pebble"
)

// mostDamage is how many damaged files are named.
const mostDamage = 50

const helpDamage = `Look at the kernel's log for the disk first. Then stop the server, keep a copy of the data folder, and bring back the newest backup with "belfry restore" (docs/backup.md).`

// damageFindings reads all tables of a data folder's store, and its logs where no server holds them.
func (c *cli) damageFindings(ctx context.Context, data string) (found []finding, held bool) {
	var told *progress
	end := func() {
		if told != nil {
			told.end()
		}
	}
	defer end()
	var before int64
	e, err := pebble.Examine(ctx, embed.StoreFolder(data), nil, func(read, of int64) {
		if told == nil {
			told = c.progress("reading tables, in KB", of>>10)
		}
		told.add(read>>10 - before>>10)
		before = read
	})
	if err != nil {
		return []finding{{Check: "damage", Status: findProblem, Found: "the store's files were not all read: " + err.Error(),
			Why: "What is damaged is not known.", Help: "Run the doctor as the server's user, and let it read to the end."}}, e.Held
	}
	for _, d := range e.Damaged[:min(len(e.Damaged), mostDamage)] {
		said := d.What
		if d.File != "" {
			said = path.Join("store", d.File) + ": " + d.What
		}
		found = append(found, finding{Check: "damage", Status: findProblem, Found: said, Why: "It costs: " + d.Cost + ".", Help: helpDamage})
	}
	if more := len(e.Damaged) - mostDamage; more > 0 {
		found = append(found, finding{Check: "damage", Status: findProblem, Found: fmt.Sprintf("and %d files of the store more", more), Help: helpDamage})
	}
	if len(found) > 0 {
		return found, e.Held
	}
	f := fine("damage", "none in %s of the store, %s", countOf(e.Tables, "table"), sizeText(e.Bytes))
	switch {
	case e.Held && e.Young > 0:
		f.Found += fmt.Sprintf("; its logs and %s belong to the server that runs", countOf(e.Young, "unfinished table"))
	case e.Held:
		f.Found += "; its logs belong to the server that runs"
	}
	return []finding{f}, e.Held
}

// blobFindings tells of payloads, results and logs that are not what was put.
func (s *scan) blobFindings() []finding {
	if s.harmed == 0 {
		return []finding{fine("blobs", "%s of runs, all as they were written", countOf(s.files, "file"))}
	}
	var found []finding
	for _, said := range s.harmings {
		found = append(found, finding{Check: "blobs", Status: findProblem, Found: said,
			Why:  "A run whose payload is lost fails for good when it starts; a result or log that is lost cannot be shown.",
			Help: helpDamage})
	}
	if more := s.harmed - len(s.harmings); more > 0 {
		found = append(found, finding{Check: "blobs", Status: findProblem, Found: fmt.Sprintf("and %d files more", more), Help: helpDamage})
	}
	return found
}
