package parser

import (
	"testing"

	"pgregory.net/rapid"
)

// What a fork reads changes nothing of the parser it came from.
func TestForkChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ls := linesOf(genLog(t)...)
		want := showAll(run(ls))
		var got []Event
		p := New(func(e Event) { got = append(got, e) })
		at := rapid.IntRange(0, len(ls)).Draw(t, "at")
		feed(p, ls[:at])
		q := p.Fork(func(Event) {})
		feed(q, ls[at:])
		q.Flush()
		feed(p, ls[at:])
		p.Flush()
		if d := diff(want, showAll(got)); d != "" {
			t.Fatalf("%s", d)
		}
	})
}

// A fork goes on as its parser would.
func TestForkGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ls := linesOf(genLog(t)...)
		at := rapid.IntRange(0, len(ls)).Draw(t, "at")
		var got []Event
		p := New(func(e Event) { got = append(got, e) })
		feed(p, ls[:at])
		q := p.Fork(func(e Event) { got = append(got, e) })
		feed(q, ls[at:])
		q.Flush()
		if d := diff(showAll(run(ls)), showAll(got)); d != "" {
			t.Fatalf("%s", d)
		}
	})
}

func TestDropBefore(t *testing.T) {
	ls := linesOf(
		"(Worker pid=1) WARNING 11-30 02:00:00 [a.py:1] old",
		"(Worker pid=2) WARNING 11-30 02:00:00 [a.py:1] new",
	)
	var got []Event
	p := New(func(e Event) { got = append(got, e) })
	feed(p, ls)
	p.DropBefore(ls[1].At)
	p.Flush()
	if d := diff([]string{"Worker/2: notice WARNING new"}, shorts(got)); d != "" {
		t.Error(d)
	}
}

func TestCloseBefore(t *testing.T) {
	ls := linesOf(
		"(Worker pid=1) WARNING 11-30 02:00:00 [a.py:1] quiet",
		"(Worker pid=2) ERROR 11-30 02:00:00 [a.py:1] Traceback (most recent call last):",
		"(Worker pid=2) ERROR 11-30 02:00:00 [a.py:1]   File \"a.py\", line 1, in f",
	)
	var got []Event
	p := New(func(e Event) { got = append(got, e) })
	feed(p, ls)
	p.CloseBefore(ls[2].At)
	if d := diff([]string{"Worker/1: notice WARNING quiet"}, shorts(got)); d != "" {
		t.Error(d)
	}
	if from, ok := p.OpenFrom(); !ok || from != ls[1].At {
		t.Errorf("open from %v, %t", from, ok)
	}
}
