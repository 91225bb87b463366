package notify

import (
	"slices"
	"strings"
	"time"

	"diagnose/matcher"
)

// Match selects incidents. An empty list matches everything; otherwise one of
// its patterns must match, and all lists together. In a pattern * stands for
// any text.
type Match struct {
	Family []string `yaml:"family"`
	Class  []string `yaml:"class"`
	Model  []string `yaml:"model"`
	Host   []string `yaml:"host"`
	Phase  []string `yaml:"phase"`
}

// Route says where the incidents that it matches go. The first route that
// matches decides; an incident without one goes to all sinks.
type Route struct {
	Match Match `yaml:"match"`
	// Sinks names them; empty means all, and the one name "none" means nowhere.
	Sinks []string `yaml:"sinks"`
	// Mentions are Slack ids, or here, channel, everyone.
	Mentions []string `yaml:"mentions"`
	// MinConfidence overrides the general one.
	MinConfidence string `yaml:"min_confidence"`
}

// noSinks is what a route writes to send something nowhere.
const noSinks = "none"

// Router decides where a notice goes. A nil Router sends everything but
// historic incidents to all sinks.
type Router struct {
	Routes []Route
	Mutes  []Mute
	// MinConfidence is high, medium, low or empty. Below it a notice says
	// "cause unknown" and shows what is established.
	MinConfidence string
}

// Decision is what a Router says about one notice.
type Decision struct {
	Sinks    []string
	Mentions []string
	// Withhold is the confidence that the incident does not reach.
	Withhold string
	// HoldUntil is the end of a mute window that holds. With Muted, for a window
	// that drops, and Historic there are no sinks.
	HoldUntil time.Time
	Muted     bool
	Historic  bool
}

// Decide routes n among the configured sinks. An incident found in old text is
// not notified, whatever the rules say.
func (r *Router) Decide(n Notice, sinks []string, now time.Time) Decision {
	if n.Event == EventTest {
		return Decision{Sinks: sinks}
	}
	if n.Incident.Status == matcher.StatusHistoric {
		return Decision{Historic: true}
	}
	if r == nil {
		return Decision{Sinks: sinks}
	}
	d := Decision{Sinks: sinks}
	least := r.MinConfidence
	for _, route := range r.Routes {
		if !route.Match.matches(n.Incident) {
			continue
		}
		if len(route.Sinks) > 0 {
			d.Sinks = slices.DeleteFunc(slices.Clone(sinks), func(s string) bool { return !slices.Contains(route.Sinks, s) })
		}
		d.Mentions = route.Mentions
		if route.MinConfidence != "" {
			least = route.MinConfidence
		}
		break
	}
	if confidenceRank(n.Incident.Verdict.Confidence) < confidenceRank(least) {
		d.Withhold = least
	}
	for _, m := range r.Mutes {
		if until, ok := m.active(now); ok && m.Match.matches(n.Incident) {
			if m.Then == MuteDrop {
				return Decision{Muted: true}
			}
			d.HoldUntil = maxTime(d.HoldUntil, until)
		}
	}
	return d
}

// Apply puts a decision into the notice.
func (d Decision) Apply(n Notice) Notice {
	n.Hints.Mentions = d.Mentions
	if d.Withhold != "" {
		n.Incident = Withhold(n.Incident, d.Withhold)
	}
	return n
}

// Withhold returns the incident as one of unknown cause that shows what is
// established and offers no advice: what a reader gets when the confidence
// stays below what was asked for.
func Withhold(i matcher.Incident, least string) matcher.Incident {
	was := i.Verdict
	i.Verdict = matcher.Verdict{
		Family: "unknown", Class: "unknown", Confidence: was.Confidence,
		Summary: "Cause unknown: the evidence points to " + classTitle(was.Class) + " with " + was.Confidence +
			" confidence, and " + least + " is asked for. What is established stands below.",
	}
	if was.Class == "unknown" || was.Class == "" {
		i.Verdict.Summary = was.Summary
	}
	i.Evidence = slices.DeleteFunc(slices.Clone(i.Evidence), func(e matcher.Evidence) bool { return e.Grade != matcher.Established })
	i.RuledOut, i.Contributing, i.Remedies, i.DoNot = nil, nil, nil, nil
	return i
}

func confidenceRank(c string) int {
	return slices.Index([]string{"low", "medium", "high"}, c)
}

func (m Match) matches(i matcher.Incident) bool {
	model := deref(i.Engine.Model)
	return anyGlob(m.Family, i.Verdict.Family) &&
		anyGlob(m.Class, i.Verdict.Class) &&
		(anyGlob(m.Model, model) || anyGlob(m.Model, modelName(i.Engine))) &&
		anyGlob(m.Host, place(i)) &&
		anyGlob(m.Phase, i.Phase)
}

func anyGlob(patterns []string, s string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return glob(p, s) })
}

// glob matches with * for any text, slashes included, without regard to case.
func glob(pattern, s string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	s = strings.ToLower(s)
	if len(parts) == 1 {
		return s == parts[0]
	}
	rest, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	for _, p := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, p)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
