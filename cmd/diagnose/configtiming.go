package main

import (
	"fmt"
	"time"

	"diagnose/watch"
)

// checkTiming finds durations that contradict each other, and zeros: a zero is
// what a key that was left out has, so it would silently be the default.
func (c config) checkTiming(found *problems) {
	t := c.Timing
	for _, d := range []struct {
		name, def string
		is        time.Duration
	}{
		{"gather", watch.DefaultGather.String(), t.Gather},
		{"settle", watch.DefaultSettle.String(), t.Settle},
		{"close_after", watch.DefaultCloseAfter.String(), t.CloseAfter},
		{"historic", "1h", t.Historic},
		{"held_after", "168h", t.HeldAfter},
	} {
		if d.is < 0 {
			found.bad("timing."+d.name, "%s is negative", d.is)
		}
		notZero(found, "timing."+d.name, d.is == 0, d.def)
	}
	or := func(d, def time.Duration) time.Duration {
		if d == 0 {
			return def
		}
		return d
	}
	most := or(t.CloseAfter, watch.DefaultCloseAfter)
	for _, d := range []struct {
		name string
		is   time.Duration
	}{{"gather", or(t.Gather, watch.DefaultGather)}, {"settle", or(t.Settle, watch.DefaultSettle)}} {
		switch field := "timing." + d.name; {
		case most < 0 || d.is <= most:
		case found.given(field):
			found.bad(field, "%s is longer than close_after, %s: an incident would be closed before", d.is, most)
		default:
			found.bad("timing.close_after", "%s is shorter than %s, %s: an incident would be closed before", most, d.name, d.is)
		}
	}
	n := c.Notify
	notZero(found, "notify.spool.max_notices", n.Spool.MaxNotices == 0, "1000")
	notZero(found, "notify.spool.max_age", n.Spool.MaxAge == 0, "72h")
	for i, s := range n.Sinks {
		at := fmt.Sprintf("notify.sinks[%d]", i)
		notZero(found, at+".slack_webhook.roll_up", s.SlackWebhook != nil && s.SlackWebhook.RollUp == 0, "10m")
		notZero(found, at+".alertmanager.keep", s.Alertmanager != nil && s.Alertmanager.Keep == 0, "24h")
	}
}

// notZero refuses a zero that stands in the file.
func notZero(found *problems, field string, zero bool, def string) {
	if zero && found.given(field) {
		found.bad(field, "0 would mean the default, %s; give a value above 0, or leave it out", def)
	}
}
