package notify

import (
	"testing"

	"diagnose/matcher"
)

func TestCondition(t *testing.T) {
	back := func(made, missing []string) *matcher.Followup {
		return &matcher.Followup{RestartedAt: ptr("14:10"), ChangesMade: made, ChangesMissing: missing}
	}
	one := []string{"--a 1"}
	held, withdrawn, both := back(one, nil), back(one, nil), back(one, nil)
	held.HeldSince, withdrawn.Withdrawn = ptr("14:10"), one
	ambiguous := back(one, one)
	ambiguous.StepTaken = ptr(4)
	both.HeldSince, both.Withdrawn = ptr("15:10"), one
	for _, c := range []struct {
		name, event string
		restarted   *matcher.Restarted
		followup    *matcher.Followup
		want        string
		over, again bool
	}{
		{"new", EventOpened, nil, nil, "open", false, false},
		{"closed by hand", EventClosed, nil, nil, "closed", true, false},
		{"back", EventFollowup, nil, back(nil, nil), "server is back", true, false},
		{"back with the change", EventClosed, nil, back(one, nil), "server is back with the change", true, false},
		{"back with a part of it", EventClosed, nil, back(one, one), "server is back, change not applied whole", true, true},
		{"back without the change", EventFollowup, nil, back(nil, one), "server is back, change not applied", true, true},
		{"back with a step that is a part of another", EventFollowup, nil, ambiguous, "server is back with the change", true, false},
		{"late news of the crash", EventUpdated, nil, back(one, nil), "server is back with the change", true, false},
		{"held", EventFollowup, nil, held, "recovered", true, false},
		{"failed again", EventFollowup, nil, withdrawn, "failed again, advice withdrawn", false, false},
		{"failed again and closed", EventClosed, nil, withdrawn, "failed again, advice withdrawn", false, false},
		{"held in the end", EventFollowup, nil, both, "recovered", true, false},
		{"post-mortem, restarted", EventOpened, &matcher.Restarted{ChangesMade: one}, nil, "restarted", false, false},
		{"post-mortem, not applied", EventOpened, &matcher.Restarted{ChangesMissing: one}, nil, "restarted, change not applied", false, false},
		{"test", EventTest, nil, nil, "open", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := sampleNotice(c.event)
			n.Incident.Restarted, n.Incident.Followup = c.restarted, c.followup
			if got := condition(n); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if over(n) != c.over || willRepeat(n) != c.again {
				t.Errorf("over %v, will repeat %v", over(n), willRepeat(n))
			}
		})
	}
}

// The list of incidents calls it historic, and so does the log.
func TestHistoricCondition(t *testing.T) {
	n := sampleNotice(EventOpened)
	n.Incident.Status = matcher.StatusHistoric
	if got := condition(n); got != "historic" {
		t.Error(got)
	}
	n.Event, n.Incident.Followup = EventFollowup, &matcher.Followup{RestartedAt: ptr("14:10")}
	if got := condition(n); got != "historic, server is back" {
		t.Error(got)
	}
}

// TestClosedIsNotDoubled: the end is told by the restart, where there is one.
func TestClosedIsNotDoubled(t *testing.T) {
	n := sampleNotice(EventClosed)
	if h := happenings(n); len(h) != 1 || h[0].text != "Closed." {
		t.Errorf("%+v", h)
	}
	n.Incident.Followup = &matcher.Followup{RestartedAt: ptr("14:10")}
	if h := happenings(n); len(h) != 1 || h[0].text != "Restarted (14:10)." || !h[0].recovery {
		t.Errorf("%+v", h)
	}
}
