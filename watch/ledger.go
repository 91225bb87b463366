package watch

import (
	"slices"
	"time"
)

// maxEntries bounds what is remembered of the incidents of one log. Older ones
// stay on disk.
const maxEntries = 256

// entry is what is remembered of an incident whose record is on disk.
type entry struct {
	ID, Path, Run, Root string
	Class, Mechanism    string
	// First is the incident that this one recurs, itself if it recurs none.
	First       string
	Occurrences int
	Port        string
	Printed     string
	Opened      time.Time
	Open        bool
	// Waiting tells that something of it is not published yet.
	Waiting     bool
	FollowedRun string
	AppliedAt   *time.Time
	// Done tells that the advice is known to have held, or was withdrawn.
	Done bool
}

// ledger remembers the incidents of one log, oldest first. It belongs to the
// stream of its path.
type ledger struct{ list []entry }

// put adds an incident or replaces what was known of it.
func (l *ledger) put(e entry) {
	if i := slices.IndexFunc(l.list, func(o entry) bool { return o.ID == e.ID }); i >= 0 {
		l.list[i] = e
		return
	}
	i, _ := slices.BinarySearchFunc(l.list, e, func(a, b entry) int {
		if a.Opened.After(b.Opened) {
			return 1
		}
		return -1
	})
	l.list = slices.Insert(l.list, i, e)
	if len(l.list) > maxEntries {
		l.list = slices.Delete(l.list, 0, len(l.list)-maxEntries)
	}
}

// latest gives the newest incident that fits, nil if none does.
func (l *ledger) latest(fits func(entry) bool) *entry {
	for _, e := range slices.Backward(l.list) {
		if fits(e) {
			return &e
		}
	}
	return nil
}

// waits tells whether anything of an earlier life is left to do.
func (l *ledger) waits() bool {
	return slices.ContainsFunc(l.list, func(e entry) bool { return e.Waiting || e.Open || e.AppliedAt != nil && !e.Done })
}
