package notify

import (
	"strings"

	"diagnose/matcher"
)

// happening is one thing that happened after an incident.
type happening struct {
	// key is stable over notices, so that each is told once.
	key      string
	text     string
	escalate bool
	recovery bool
}

// happenings reads off an incident what followed it, oldest first.
func happenings(n Notice) []happening {
	i := n.Incident
	var out []happening
	add := func(kind, text string, h happening) {
		h.key, h.text = digest(kind+"\x00"+text), text
		out = append(out, h)
	}
	if i.RecurrenceOf != nil {
		add("recurrence", "Recurrence of incident "+oneLine(*i.RecurrenceOf)+".", happening{})
	}
	if r := i.Restarted; r != nil && i.Followup == nil {
		add("restarted", restartText(position(n.Sources, r.At), r.ChangesMade, r.ChangesMissing), happening{})
	}
	if f := i.Followup; f != nil {
		if f.RestartedAt != nil || len(f.ChangesMade)+len(f.ChangesMissing) > 0 {
			add("restarted", restartText(oneLine(deref(f.RestartedAt)), f.ChangesMade, f.ChangesMissing), happening{recovery: f.RestartedAt != nil})
		}
		for _, w := range f.Withdrawn {
			add("withdrawn", "Advice withdrawn: "+oneLine(w)+".", happening{escalate: true})
		}
		if f.HeldSince != nil {
			add("held", "Recovered: it has held since "+oneLine(*f.HeldSince)+".", happening{recovery: true})
		}
	}
	if n.Event == EventClosed && !serverBack(i) {
		add("closed", "Closed.", happening{recovery: true})
	}
	return out
}

func restartText(when string, made, missing []string) string {
	text := "Restarted."
	if when != "" {
		text = "Restarted (" + when + ")."
	}
	switch {
	case len(made) == 0 && len(missing) == 0:
		return text
	case len(missing) == 0:
		return text + " Applied: " + listText(made) + "."
	case len(made) == 0:
		return text + " The advised change is not applied: " + listText(missing) + "."
	}
	return text + " Applied: " + listText(made) + ". Not applied: " + listText(missing) + "."
}

// listText joins at most five entries.
func listText(list []string) string {
	const most = 5
	shown := make([]string, 0, most)
	for _, s := range list[:min(len(list), most)] {
		shown = append(shown, cut(oneLine(s), 200))
	}
	if extra := len(list) - most; extra > 0 {
		shown = append(shown, plural(extra, "more", "more"))
	}
	return strings.Join(shown, ", ")
}

// condition is the present state in a word or two.
func condition(n Notice) string {
	if n.Incident.Status == matcher.StatusHistoric {
		if since := happened(n); since != "open" && since != "closed" {
			return "historic, " + since
		}
		return "historic"
	}
	return happened(n)
}

// happened is what became of an incident since it was opened.
func happened(n Notice) string {
	f := n.Incident.Followup
	switch {
	case f != nil && len(f.Withdrawn) > 0 && f.HeldSince == nil:
		return "failed again, advice withdrawn"
	case f != nil && f.HeldSince != nil:
		return "recovered"
	case willRepeat(n) && len(f.ChangesMade) > 0:
		return "server is back, change not applied whole"
	case willRepeat(n):
		return "server is back, change not applied"
	case serverBack(n.Incident) && len(f.ChangesMade) > 0:
		return "server is back with the change"
	case serverBack(n.Incident):
		return "server is back"
	case n.Event == EventClosed:
		return "closed"
	case n.Incident.Restarted != nil && len(n.Incident.Restarted.ChangesMissing) > 0 && n.Incident.Restarted.StepTaken == nil:
		return "restarted, change not applied"
	case n.Incident.Restarted != nil:
		return "restarted"
	}
	return "open"
}

// serverBack tells that the next start was seen to be ready. It is read off the
// incident and not off the event, so that late news of the old crash does not
// open the matter again.
func serverBack(i matcher.Incident) bool {
	return i.Followup != nil && i.Followup.RestartedAt != nil
}

// over tells whether a notice says that the incident needs nobody at once: the
// server serves again, or the matter is closed.
func over(n Notice) bool {
	f := n.Incident.Followup
	if f != nil && len(f.Withdrawn) > 0 && f.HeldSince == nil {
		return false
	}
	return n.Event == EventClosed || serverBack(n.Incident) || f != nil && f.HeldSince != nil
}

// willRepeat tells that the server is back without the advised change.
func willRepeat(n Notice) bool {
	f := n.Incident.Followup
	return serverBack(n.Incident) && len(f.ChangesMissing) > 0 && f.StepTaken == nil && f.HeldSince == nil
}

// assessment identifies what the diagnosis says, apart from counts, times and
// what followed: when it changes, the reader has to read again.
func assessment(i matcher.Incident) string {
	parts := []string{i.Verdict.Class, deref(i.Verdict.Mechanism), i.Verdict.Confidence, i.Verdict.Summary}
	for _, r := range i.Remedies {
		parts = append(parts, r.Title)
		parts = append(parts, changes(r)...)
	}
	for _, d := range i.DoNot {
		parts = append(parts, d.Change)
	}
	return digest(strings.Join(parts, "\x00"))
}
