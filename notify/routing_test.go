package notify

import (
	"slices"
	"testing"
	"time"

	"diagnose/matcher"
)

func TestRouting(t *testing.T) {
	r := &Router{
		MinConfidence: "medium",
		Routes: []Route{
			{Match: Match{Phase: []string{"startup"}}, Sinks: []string{"b"}},
			{Match: Match{Model: []string{"glm-*", "qwen/*"}, Host: []string{"node*"}}, Sinks: []string{"a"}, Mentions: []string{"here"}, MinConfidence: "high"},
			{Match: Match{Class: []string{"nccl"}}, Sinks: []string{"none"}},
		},
	}
	for _, c := range []struct {
		name     string
		change   func(*matcher.Incident)
		sinks    []string
		mentions []string
		withhold string
	}{
		{"by model and host", func(*matcher.Incident) {}, []string{"a"}, []string{"here"}, ""},
		{"first match", func(i *matcher.Incident) { i.Phase = "startup" }, []string{"b"}, nil, ""},
		{"no match", func(i *matcher.Incident) { i.Host = ptr("other") }, []string{"a", "b"}, nil, ""},
		{"whole repository", func(i *matcher.Incident) { i.Engine.Model = ptr("Qwen/Qwen3-235B") }, []string{"a"}, []string{"here"}, ""},
		{"nowhere", func(i *matcher.Incident) { i.Host, i.Verdict.Class = nil, "nccl" }, []string{}, nil, ""},
		{"route's confidence", func(i *matcher.Incident) { i.Verdict.Confidence = "medium" }, []string{"a"}, []string{"here"}, "high"},
		{"general confidence", func(i *matcher.Incident) { i.Host, i.Verdict.Confidence = nil, "low" }, []string{"a", "b"}, nil, "medium"},
		{"no model known", func(i *matcher.Incident) { i.Engine.Model = nil }, []string{"a", "b"}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := sampleNotice(EventOpened)
			c.change(&n.Incident)
			d := r.Decide(n, []string{"a", "b"}, sampleTime)
			if !slices.Equal(d.Sinks, c.sinks) || !slices.Equal(d.Mentions, c.mentions) || d.Withhold != c.withhold {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestHistoricGoesNowhere(t *testing.T) {
	n := sampleNotice(EventOpened)
	n.Incident.Status = matcher.StatusHistoric
	for _, r := range []*Router{nil, {}} {
		if d := r.Decide(n, []string{"a"}, sampleTime); len(d.Sinks) != 0 || !d.Historic {
			t.Errorf("%+v", d)
		}
	}
}

func TestWithhold(t *testing.T) {
	in := sample()
	in.Verdict.Confidence = "low"
	got := Withhold(in, "medium")
	if got.Verdict.Class != "unknown" || got.Verdict.Family != "unknown" || got.Verdict.Mechanism != nil || len(got.Remedies)+len(got.DoNot) != 0 {
		t.Errorf("%+v", got.Verdict)
	}
	if len(got.Evidence) != 2 || len(in.Evidence) != 3 || got.Root.Text != in.Root.Text {
		t.Error("what is established must stay, and the input too")
	}
	want := "Cause unknown: the evidence points to GPU OOM (workspace) with low confidence, and medium is asked for. What is established stands below."
	if got.Verdict.Summary != want {
		t.Errorf("got %q", got.Verdict.Summary)
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, s string
		want       bool
	}{
		{"a", "A", true},
		{"a", "ab", false},
		{"a*", "ab", true},
		{"*b", "ab", true},
		{"*", "", true},
		{"", "", true},
		{"qwen/*", "Qwen/Qwen3", true},
		{"*235*", "qwen3-235b-fp8", true},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "acb", false},
		{"ab*ba", "aba", false},
		{"a**b", "ab", true},
	} {
		if got := glob(c.pattern, c.s); got != c.want {
			t.Errorf("glob(%q, %q): want %v", c.pattern, c.s, c.want)
		}
	}
}

func TestMute(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	night := Mute{From: "22:00", To: "06:00", Zone: "Europe/Berlin"}
	weekend := Mute{Days: []string{"sat", "Sun"}, From: "00:00", To: "00:00"}
	for _, c := range []struct {
		name  string
		m     Mute
		now   string
		until string // empty: not active
	}{
		{"before midnight", night, "2026-11-30T22:30:00+01:00", "2026-12-01T06:00:00+01:00"},
		{"after midnight", night, "2026-12-01T05:59:59+01:00", "2026-12-01T06:00:00+01:00"},
		{"morning", night, "2026-12-01T06:00:00+01:00", ""},
		{"zone counts", night, "2026-11-30T21:30:00Z", "2026-12-01T06:00:00+01:00"},
		{"summer time begins", night, "2026-03-29T01:00:00+01:00", "2026-03-29T06:00:00+02:00"},
		{"saturday", weekend, "2026-11-28T12:00:00Z", "2026-11-29T00:00:00Z"},
		{"monday", weekend, "2026-11-30T00:00:00Z", ""},
		{"once", Mute{Since: at("2026-11-30T10:00:00Z"), Until: at("2026-11-30T12:00:00Z")}, "2026-11-30T11:00:00Z", "2026-11-30T12:00:00Z"},
		{"once, over", Mute{Since: at("2026-11-30T10:00:00Z"), Until: at("2026-11-30T12:00:00Z")}, "2026-11-30T12:00:00Z", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			until, ok := c.m.active(at(c.now))
			if ok != (c.until != "") || ok && !until.Equal(at(c.until)) {
				t.Errorf("want %q, got %v %v", c.until, until, ok)
			}
		})
	}
}
