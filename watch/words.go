package watch

import (
	"strconv"
	"strings"
	"time"

	"diagnose/matcher"
)

// printedForm is how vLLM prints a time.
const printedForm = "01-02 15:04:05"

func joinWords(list []string) string { return strings.Join(list, "; ") }

func deref(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// whyUnsent says why an incident is not notified, empty if it is.
func whyUnsent(in matcher.Incident, limit time.Duration) string {
	if in.Status != matcher.StatusHistoric {
		return ""
	}
	by := "its printed time"
	if in.Time.First != nil {
		by = "its time stamp"
	}
	return "older than historic (" + limit.String() + ") by " + by
}

// historic tells whether an incident is older than the limit. The log's own
// time has no year and no zone, so it is taken for the nearest one to now, in
// UTC or in the host's zone.
func historic(in matcher.Incident, now time.Time, limit time.Duration) bool {
	if in.Time.First != nil {
		if t, err := time.Parse(time.RFC3339, *in.Time.First); err == nil {
			return now.Sub(t) > limit
		}
	}
	if in.PrintedTime() == "" {
		return false
	}
	least := time.Duration(1<<63 - 1)
	for _, zone := range []*time.Location{time.UTC, now.Location()} {
		for year := now.Year() - 1; year <= now.Year()+1; year++ {
			t, err := time.ParseInLocation("2006-"+printedForm, strconv.Itoa(year)+"-"+in.PrintedTime(), zone)
			if err != nil {
				continue
			}
			if age := now.Sub(t); age.Abs() < least.Abs() {
				least = age
			}
		}
	}
	return least > limit
}
