package api

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/belfry-scheduler/belfry/lib/access"
	"github.com/belfry-scheduler/belfry/lib/control"
	"github.com/belfry-scheduler/belfry/lib/schedule"
)

// backupType is the media type of backups, whose form package backup describes.
const backupType = "application/octet-stream"

// backupPatience is how long a piece of a backup may wait for its reader.
const backupPatience = time.Minute

func (a *api) backups() {
	op := operation{id: "backup", method: http.MethodGet, path: "/v1/backup", tag: "system", scope: access.Admin, host: true, media: backupType,
		summary: "Take a backup of everything, while the server runs; belfry restore reads it, and belfry backup checks it on the way",
		codes:   []control.Code{control.CodeBusy}}
	var one sync.Mutex
	register(a, op, func(ctx context.Context, _ *struct{}, _ input[noBody]) (*answer[streamed], error) {
		if !one.TryLock() {
			busy := newProblem(control.CodeBusy, "Another backup is being taken. Try again when it is done.")
			busy.RetryAfter = schedule.Duration(10 * time.Second)
			return nil, busy
		}
		// It takes as long as it takes: what bounds it is that its reader goes on reading.
		lasting := context.WithoutCancel(ctx)
		return &answer[streamed]{func(w http.ResponseWriter) {
			defer one.Unlock()
			w.Header().Set("Content-Type", backupType)
			w.Header().Set("Content-Disposition", `attachment; filename="belfry.backup"`)
			if err := a.Backup(lasting, &patient{w: w, control: http.NewResponseController(w), now: a.Now}); err != nil {
				// The stream has no end, so whoever has read it knows that it is none.
				a.Log.ErrorContext(lasting, "a backup broke off", "error", err)
			}
		}}, nil
	})
}

// patient gives each piece its own time to be read in, instead of one for the whole answer.
type patient struct {
	w       io.Writer
	control *http.ResponseController
	now     func() time.Time
}

func (p *patient) Write(b []byte) (int, error) {
	if err := p.control.SetWriteDeadline(p.now().Add(backupPatience)); err != nil {
		return 0, err
	}
	return p.w.Write(b)
}
