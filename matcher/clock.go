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

// time says when the failure was, as far as the log tells. The wrapper's clock
// has year and zone; the log's own has neither.
func (r *run) time(o Options, root *candidate) Time {
	t := Time{Basis: "no time in the log"}
	first, last := r.printedSpan()
	wrapped := r.meta.Time
	if root != nil && root.f != nil && root.f.ev.Meta.Time != "" {
		wrapped = root.f.ev.Meta.Time
	} else if root != nil && root.line != nil && root.line.ev.Meta.Time != "" {
		wrapped = root.line.ev.Meta.Time
	}
	switch {
	case o.Year != 0 && o.Zone != "" && first != "":
		loc, err := time.LoadLocation(o.Zone)
		if err != nil {
			break // refused with the options
		}
		a, ok := stamp(first, o.Year, loc)
		b, ok2 := stamp(last, o.Year, loc)
		if ok && ok2 {
			t.First, t.Last = text(a.Format(time.RFC3339)), text(b.Format(time.RFC3339))
			t.Basis = "the log's MM-DD HH:MM:SS with the year and zone given"
		}
	case wrapped != "":
		t.First, t.Last = text(wrapped), text(max(wrapped, r.meta.Time))
		t.Basis = "the wrapper's clock"
		if first != "" {
			t.Basis += fmt.Sprintf("; the log itself prints %s to %s", first, last)
		}
	case first != "":
		t.Basis = fmt.Sprintf("MM-DD HH:MM:SS, no year or zone (%s to %s)", first, last)
	}
	return t
}

// printedSpan gives the earliest time of what failed and the newest of the run,
// as printed. Records come when they end, so neither is simply the first or
// last seen.
func (r *run) printedSpan() (first, last string) {
	first = r.firstPrinted()
	if first == "" {
		first = r.lastTime
	}
	return first, max(first, r.lastTime)
}

// firstPrinted gives the earliest time of what failed, "" where none is printed.
func (r *run) firstPrinted() (first string) {
	earlier := func(s string) {
		if s != "" && (first == "" || s < first) {
			first = s
		}
	}
	for _, f := range r.failures {
		earlier(f.ev.Time)
	}
	for _, l := range r.lines {
		earlier(l.ev.Time)
	}
	return first
}
