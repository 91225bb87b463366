package matcher

import (
	"fmt"
	"time"
)

// stamp reads "MM-DD HH:MM:SS" in a year; ok is false for anything else.
func stamp(s string, year int, zone *time.Location) (time.Time, bool) {
	t, err := time.ParseInLocation("2006-01-02 15:04:05", fmt.Sprintf("%04d-%s", year, s), zone)
	return t, err == nil
}

// secondsBetween gives b - a of two printed times; a turn of the year between
// them is counted.
func secondsBetween(a, b string) (int, bool) {
	// A leap year accepts every date.
	x, ok := stamp(a, 2024, time.UTC)
	y, ok2 := stamp(b, 2024, time.UTC)
	if !ok || !ok2 {
		return 0, false
	}
	if d := y.Sub(x); d < -180*24*time.Hour {
		y = y.AddDate(1, 0, 0)
	}
	return int(y.Sub(x).Seconds()), true
}

// time says when the failure was, as far as the log tells.
func (r *run) time(o Options) Time {
	t := Time{Basis: "no time in the log"}
	// Records come when they end, so neither is simply the first or last seen.
	first, last := "", r.lastTime
	for _, f := range r.failures {
		if f.ev.Time != "" && (first == "" || f.ev.Time < first) {
			first = f.ev.Time
		}
	}
	for _, l := range r.lines {
		if l.ev.Time != "" && (first == "" || l.ev.Time < first) {
			first = l.ev.Time
		}
	}
	if first == "" {
		first = last
	}
	last = max(first, last)
	if first == "" {
		if r.meta.Time != "" {
			t.First, t.Last, t.Basis = text(r.meta.Time), text(r.meta.Time), "the wrapper's clock"
		}
		return t
	}
	t.Basis = fmt.Sprintf("MM-DD HH:MM:SS, no year or zone (%s to %s)", first, last)
	if o.Year != 0 && o.Zone != "" {
		loc, err := time.LoadLocation(o.Zone)
		if err != nil {
			return t
		}
		a, ok := stamp(first, o.Year, loc)
		b, ok2 := stamp(last, o.Year, loc)
		if ok && ok2 {
			t.First, t.Last = text(a.Format(time.RFC3339)), text(b.Format(time.RFC3339))
			t.Basis = "the log's MM-DD HH:MM:SS with the year and zone given"
		}
		return t
	}
	if r.meta.Time != "" {
		t.Last, t.Basis = text(r.meta.Time), "the wrapper's clock; the log itself prints "+first+" to "+last
	}
	return t
}
