package watch

import (
	"slices"
	"time"

	"diagnose/matcher"
)

// anothers tells whether the incident on disk that has the id of in is one of
// another server. An id is made of a few lines, which replicas that start and
// fail in the same seconds can print alike; one log under two names is the same
// text throughout.
func (s *stream) anothers(in matcher.Incident) bool {
	record, err := s.d.opt.Store.Get(in.ID)
	if err != nil || record.Path == s.path {
		return false // told with the adoption
	}
	old := record.Incident
	for _, place := range [][2]*string{{old.Host, in.Host}, {old.Pod, in.Pod}, {old.Container, in.Container}, {old.Unit, in.Unit}} {
		if place[0] != nil && place[1] != nil && *place[0] != *place[1] {
			return true
		}
	}
	if apart(record.Failed, in.FailedTime()) {
		return true
	}
	// One of the two may have been read farther.
	return !within(old.Ranks, in.Ranks) && !within(in.Ranks, old.Ranks)
}

// apart tells whether two printed times of a failure are of different failures.
// The one that was told at once may have seen a later record first.
func apart(a, b string) bool {
	x, errX := time.Parse(printedForm, a)
	y, errY := time.Parse(printedForm, b)
	return errX == nil && errY == nil && x.Sub(y).Abs() > 3*time.Second
}

func within(few, many []matcher.Rank) bool {
	return !slices.ContainsFunc(few, func(r matcher.Rank) bool {
		return !slices.ContainsFunc(many, func(o matcher.Rank) bool { return samePID(r.PID, o.PID) })
	})
}

func samePID(a, b *int) bool {
	return a == nil || b == nil || *a == *b
}

// idIn is the id of an incident whose own is taken by another server's.
func idIn(id, path string) string { return digest(id + "\x00" + path)[:len(id)] }
