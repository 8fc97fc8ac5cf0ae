//go:build !linux

package target

import "os"

// family is the processes that come of one attempt: here the leader's process group, where the system has such.
type family struct{ leader *os.Process }

func newFamily(leader *os.Process, _ string) *family { return &family{leader} }

func (f *family) terminate()  { terminateGroup(f.leader) }
func (f *family) lives() bool { return groupLives(f.leader) }

func kill(families ...*family) {
	for _, f := range families {
		killGroup(f.leader)
	}
}
