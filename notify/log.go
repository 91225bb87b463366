package notify

import (
	"context"
	"log/slog"
	"strings"

	"diagnose/matcher"
)

// Log writes one log record per notice: the last resort that needs no network
// and no disk of its own. The handler decides on text or JSON and escapes.
type Log struct {
	name string
	log  *slog.Logger
}

// NewLog returns a sink that writes to log.
func NewLog(name string, log *slog.Logger) *Log { return &Log{name: name, log: log} }

// Name implements Notifier.
func (l *Log) Name() string { return l.name }

// Send implements Notifier.
func (l *Log) Send(ctx context.Context, n Notice, s State) (State, bool, error) {
	n = prepare(n)
	i := n.Incident
	level := slog.LevelError
	switch {
	case over(n) || n.Event == EventTest:
		level = slog.LevelInfo
	case n.Event == EventUpdated: // the alarm was given
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("incident", i.ID),
		slog.String("event", n.Event),
		slog.String("class", i.Verdict.Class),
	}
	text := func(key, value string, limit int) {
		if value = cut(oneLine(value), limit); value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	text("mechanism", deref(i.Verdict.Mechanism), 100)
	attrs = append(
		attrs,
		slog.String("confidence", i.Verdict.Confidence),
		slog.String("model", modelName(i.Engine)),
		slog.String("host", place(i)),
		slog.Int("occurrences", max(i.Occurrences, 1)),
	)
	text("recurrence_of", deref(i.RecurrenceOf), 100)
	attrs = append(attrs, slog.String("status", condition(n)), slog.String("at", wholePosition(n.Sources, i.Root.At)))
	text("log", n.Followed, 1000)
	if n.Event != EventClosed { // it only ends what was told in full
		attrs = append(attrs, slog.String("summary", cut(oneLine(i.Verdict.Summary), 1000)))
		made, missing := afterwards(i)
		text("made", listText(made), 1000)
		text("missing", listText(missing), 1000)
		text("remedy", firstRemedy(i.Remedies), 600)
	}
	if n.Unsent != "" {
		attrs = append(attrs, slog.String("note", "not notified: "+n.Unsent))
	}
	l.log.LogAttrs(ctx, level, "incident "+eventWord(n.Event), attrs...)
	return encodeState(eventState{Opened: true}), false, nil
}

// eventWord keeps the message one of a few fixed ones.
func eventWord(event string) string {
	switch event {
	case EventOpened, EventUpdated, EventFollowup, EventClosed, EventTest:
		return event
	}
	return "notice"
}

// afterwards gives the advised changes that the next start had made, and those
// that it had not.
func afterwards(i matcher.Incident) (made, missing []string) {
	switch {
	case i.Followup != nil:
		return i.Followup.ChangesMade, i.Followup.ChangesMissing
	case i.Restarted != nil:
		return i.Restarted.ChangesMade, i.Restarted.ChangesMissing
	}
	return nil, nil
}

// firstRemedy is the first step with its values.
func firstRemedy(all []matcher.Remedy) string {
	if len(all) == 0 {
		return ""
	}
	title := cut(oneLine(all[0].Title), 300)
	if values := strings.Join(changes(all[0]), "; "); values != "" {
		return title + ": " + values
	}
	return title
}
