package notify

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What a mute window does with a notice.
const (
	MuteHold = "hold" // it is sent when the window ends
	MuteDrop = "drop"
)

// Mute is a time in which notices are held or dropped: either once, from Since
// to Until, or every week, on Days from From to To.
type Mute struct {
	Match Match `yaml:"match"`
	// Since and Until are RFC 3339.
	Since time.Time `yaml:"since"`
	Until time.Time `yaml:"until"`
	// Days are mon to sun; empty means each. From and To are HH:MM; a window
	// whose To is not after its From ends on the next day.
	Days []string `yaml:"days"`
	From string   `yaml:"from"`
	To   string   `yaml:"to"`
	// Zone is an IANA name; UTC when empty.
	Zone string `yaml:"zone"`
	// Then is hold, when empty, or drop.
	Then string `yaml:"then"`
}

// active tells whether now lies in the window, and when it ends.
func (m Mute) active(now time.Time) (until time.Time, ok bool) {
	if !m.Until.IsZero() {
		return m.Until, !now.Before(m.Since) && now.Before(m.Until)
	}
	zone, err := time.LoadLocation(m.Zone)
	from, err1 := clockTime(m.From)
	to, err2 := clockTime(m.To)
	if err != nil || err1 != nil || err2 != nil {
		return time.Time{}, false // Validate has reported it
	}
	local := now.In(zone)
	// The window that holds now began today or, over midnight, yesterday.
	for _, back := range []int{0, -1} {
		day := local.AddDate(0, 0, back)
		start := from.on(day)
		end := to.on(day)
		if !end.After(start) {
			end = to.on(day.AddDate(0, 0, 1))
		}
		if m.onDay(day.Weekday()) && !now.Before(start) && now.Before(end) {
			return end, true
		}
	}
	return time.Time{}, false
}

func (m Mute) onDay(d time.Weekday) bool {
	return len(m.Days) == 0 || slices.ContainsFunc(m.Days, func(s string) bool { return dayName(d) == strings.ToLower(s) })
}

func dayName(d time.Weekday) string { return strings.ToLower(d.String()[:3]) }

// clock is a time of day.
type clock struct{ hour, minute int }

func clockTime(s string) (clock, error) {
	t, err := time.Parse("15:04", s)
	if err != nil {
		return clock{}, fmt.Errorf("%q is not a time of day as in 22:30", s)
	}
	return clock{t.Hour(), t.Minute()}, nil
}

func (c clock) on(day time.Time) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), c.hour, c.minute, 0, 0, day.Location())
}
