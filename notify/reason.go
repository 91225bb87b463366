package notify

import (
	"strings"
	"time"
)

// Reason classifies a failed delivery. It is a metric label: the set is closed.
type Reason string

// The reasons.
const (
	RateLimited    Reason = "rate_limited"
	Auth           Reason = "auth"            // token or signature refused, or not allowed there
	NotFound       Reason = "not_found"       // no such channel, hook or path
	InvalidPayload Reason = "invalid_payload" // this message is refused, others may not be
	Network        Reason = "network"         // no answer
	Timeout        Reason = "timeout"         // no answer in time: it may have been accepted
	Server         Reason = "server"          // an answer of 5xx, or one that makes no sense
	Misconfigured  Reason = "misconfigured"   // unreadable secret, refused host
	Storage        Reason = "storage"         // a local file cannot be written
)

// Retry tells whether waiting can help.
func (r Reason) Retry() bool {
	switch r {
	case RateLimited, Network, Timeout, Server, Storage:
		return true
	}
	return false
}

// Error is a failed delivery. Its text holds neither a token nor a URL, and it
// wraps nothing, because what it was made from may.
type Error struct {
	Sink   string
	Reason Reason
	// Code is the sink's own word: an HTTP status or Slack's error.
	Code string
	// Detail is for a person; may be empty.
	Detail string
	// RetryAfter is what the sink asked for; zero when it did not.
	RetryAfter time.Duration
	// MaybeDelivered is set when the sink may have accepted the message.
	MaybeDelivered bool
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Sink != "" {
		b.WriteString(e.Sink + ": ")
	}
	b.WriteString(string(e.Reason))
	if e.Code != "" && e.Code != string(e.Reason) {
		b.WriteString(" (" + e.Code + ")")
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	return b.String()
}

// failed returns e in the form that Send returns it.
func failed(s State, e *Error) (State, bool, error) {
	return s, e.Reason.Retry(), e
}
