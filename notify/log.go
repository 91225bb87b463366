package notify

import (
	"context"
	"log/slog"
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
	if over(n) || n.Event == EventTest {
		level = slog.LevelInfo
	}
	attrs := []slog.Attr{
		slog.String("incident", i.ID),
		slog.String("event", n.Event),
		slog.String("class", i.Verdict.Class),
		slog.String("confidence", i.Verdict.Confidence),
		slog.String("model", modelName(i.Engine)),
		slog.String("host", place(i)),
		slog.Int("occurrences", max(i.Occurrences, 1)),
		slog.String("status", condition(n)),
		slog.String("at", position(n.Sources, i.Root.At)),
		slog.String("summary", cut(oneLine(i.Verdict.Summary), 1000)),
	}
	if len(i.Remedies) > 0 {
		attrs = append(attrs, slog.String("remedy", cut(oneLine(i.Remedies[0].Title), 300)))
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
