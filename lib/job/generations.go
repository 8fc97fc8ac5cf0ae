package job

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/belfry-scheduler/belfry/lib/record"
	"github.com/belfry-scheduler/belfry/lib/store"
)

// Kept is one generation of a job, as it stands or as it is kept after it was replaced.
type Kept struct {
	Generation int64
	Def        Definition // none where Deleted
	Until      int64      // Unix ms: when it was replaced; 0 for the newest one
	Deleted    bool       // the job was deleted by then, and this is the time without it
	Broken     error      // set where its record cannot be read
	Size       int        // bytes of its record
}

// Since is when the generation was made. Generations are numbered by the ms in which they are made, and by the next number where that is taken.
func (k Kept) Since() time.Time {
	since := k.Generation
	if k.Until > 0 {
		since = min(since, k.Until)
	}
	return time.UnixMilli(since).UTC()
}

// ETag is what the job's was at that generation.
func (k Kept) ETag() string { return Job{Generation: k.Generation}.ETag() }

// Replaced gives up to limit generations of a job that were replaced, the newest first, of those below a generation, and whether there may be
// more.
func (b *Book) Replaced(ctx context.Context, j Job, below int64, limit int) (kept []Kept, more bool, err error) {
	wanted := store.Range{Partition: PastKey(j.Tenant, j.Name, 0).Partition, To: PastKey(j.Tenant, j.Name, below).Sort, Backward: true, Limit: limit}
	for {
		page, err := b.store.Query(ctx, wanted)
		if err != nil {
			return nil, false, fmt.Errorf("read what was replaced of job %s: %w", j.Name, err)
		}
		for _, item := range page.Items {
			if len(kept) == limit {
				return kept, true, nil
			}
			generation, err := strconv.ParseInt(item.Sort, 10, 64)
			if err != nil {
				return nil, false, fmt.Errorf("sort key %q of a replaced definition of %s: %w", item.Sort, j.Name, record.ErrBroken)
			}
			kept = append(kept, replaced(j, generation, item))
		}
		if page.Cursor == "" || len(kept) == limit {
			return kept, page.Cursor != "", nil
		}
		wanted.Cursor = page.Cursor
	}
}

// KeptFromItem reads a definition that was replaced, and whose it is, from where it is kept. An error is that of its key; Broken says what is wrong with its record.
func KeptFromItem(item store.Item) (tenant, name string, k Kept, err error) {
	parts := strings.Split(item.Partition, "#")
	generation, err := strconv.ParseInt(item.Sort, 10, 64)
	if err != nil || len(parts) != 3 {
		return "", "", Kept{}, fmt.Errorf("%s is no key of a replaced definition: %w", item.Key, record.ErrBroken)
	}
	return parts[1], parts[2], replaced(Job{Name: parts[2]}, generation, item), nil
}

func replaced(j Job, generation int64, item store.Item) Kept {
	p, err := pastFromItem(j.Name, generation, item)
	if err != nil {
		return Kept{Generation: generation, Broken: err, Size: item.Size()}
	}
	if until, ok := j.Until(generation); ok {
		p.Until = until // an edit may have brought it forward
	}
	return Kept{Generation: generation, Def: p.Def, Until: p.Until, Deleted: p.Def.Queue == "", Size: item.Size()}
}
