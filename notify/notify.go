package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"diagnose/matcher"
)

// The reasons for a notice.
const (
	// EventOpened is the first notice of an incident.
	EventOpened = "opened"
	// EventUpdated tells a better assessment or another occurrence.
	EventUpdated = "updated"
	// EventFollowup tells what happened afterwards: a restart, a change applied
	// or not, a held or withdrawn advice.
	EventFollowup = "followup"
	// EventClosed says that the matter is over and nothing more will be told.
	// It resolves an alert: send it for a recovery or a final word, not when
	// the record of the crash is merely complete.
	EventClosed = "closed"
	// EventTest is a harmless message that proves a sink.
	EventTest = "test"
)

// Notice is the newest state of an incident and why it is told.
type Notice struct {
	// Event is one of the Event constants.
	Event    string           `json:"event"`
	Incident matcher.Incident `json:"incident"`
	// Time is when the notice was made.
	Time time.Time `json:"time"`
	// Sources names the inputs that the incident's positions index.
	Sources []string `json:"sources,omitempty"`
	// Followed is the path of the log as this host follows it; it stays here.
	Followed string `json:"-"`
	// Printed is the failure's time as the log prints it, which may lack year and
	// zone; taken from the incident, whose JSON does not carry it.
	Printed string `json:"printed,omitempty"`
	// Observation marks something wrong that has not failed.
	Observation bool `json:"observation,omitempty"`
	// Unsent says why the notice goes to no sink but this host's log and file.
	Unsent string `json:"-"`
	// Delayed is how long the notice waited for its sink; set by the outbox,
	// zero for one sent at once.
	Delayed time.Duration `json:"-"`
	Hints   Hints         `json:"hints"`
}

// Hints is what the routing decided for a notice.
type Hints struct {
	// Mentions are Slack ids (U..., W..., S...) or here, channel, everyone. They
	// are used on the first notice of an incident and on escalation only.
	Mentions []string `json:"mentions,omitempty"`
}

// State is a sink's memory of one incident: opaque JSON, nil for an incident
// that the sink has not seen.
type State = json.RawMessage

// Notifier brings one sink to the state of a notice.
type Notifier interface {
	// Name is the sink's name in the configuration.
	Name() string
	// Send does the next step, with at most one request, and returns the new
	// memory of the incident, which is valid whatever err is. err is
	//
	//   - nil when the sink has everything;
	//   - ErrMore when the step was accepted and Send has to be called again;
	//   - a *Later when nothing may be sent before a time;
	//   - an *Error otherwise, and retry says whether waiting can help.
	Send(ctx context.Context, n Notice, s State) (next State, retry bool, err error)
}

// Previewer is a sink that can show what it would send.
type Previewer interface {
	// Preview returns the payload of the first message for n, as it would be
	// sent, without sending it.
	Preview(n Notice) ([]byte, error)
}

// ErrMore says that a step was accepted and that there are more.
var ErrMore = errors.New("more to send")

// Later says that a sink holds a notice back on purpose, to bound its rate.
type Later struct {
	Until time.Time
}

func (l *Later) Error() string {
	return fmt.Sprintf("held back until %s", l.Until.UTC().Format(time.RFC3339))
}

// decodeState reads a sink's memory. A memory that cannot be read counts as
// none: the incident is then told afresh, which is better than not at all.
func decodeState[T any](s State) T {
	var v T
	if len(s) > 0 && json.Unmarshal(s, &v) != nil {
		var none T
		return none
	}
	return v
}

func encodeState(v any) State {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}
