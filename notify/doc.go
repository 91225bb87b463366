// Package notify delivers a diagnosis: to Slack, to a webhook, to Alertmanager,
// to a local file and to the log.
//
// # Model
//
// A [Notice] is the newest state of one incident and the reason for telling it
// now. A [Notifier] brings one sink to that state in steps. Each step makes at
// most one request and returns the sink's memory of the incident (for Slack:
// channel and ts of its message), so that whoever drives it can put that memory
// on disk between two requests. [Deliver] drives one sink once, for a
// post-mortem sent by hand. [Outbox] drives all of them for the daemon: what it
// accepted is on disk before it returns, and is sent by one goroutine a sink.
//
// # What is promised
//
//   - One incident is one Slack message, updated, with its history as replies.
//   - Delivery is at least once. An incident told twice carries the same id.
//   - Of several notices of one incident that wait for a sink only the newest is
//     sent. A notice that waited says so.
//   - A sink that fails delays no other, and no failure to notify is notified.
//   - No secret leaves: every string is redacted before it is stored or sent,
//     and errors carry neither tokens nor webhook URLs.
//   - Log text pages nobody: it is escaped for each sink. Mentions come from
//     the configuration only.
//
// # What can be lost or wrong, and when
//
//   - A notice that waited longer than Options.MaxAge for a sink that still
//     fails, or beyond Options.MaxNotices for one sink, is dropped and counted.
//     So is one that the sink refuses five times, also as plain text.
//   - A request that timed out may have been accepted; it is sent again, and
//     the reader sees the id twice. Slack has no idempotency key.
//   - A process killed between an answer and the write of the new memory sends
//     that one step again.
//   - Redaction knows the shapes of common keys and the names of common
//     settings. A secret without either, in the middle of a sentence, is not
//     recognised.
//   - When somebody deletes an incident's Slack message, the next reply stands
//     alone in the channel before the incident is posted afresh.
//   - An incoming Slack webhook returns no ts: its message cannot be updated, so
//     later news is a new, short message.
package notify
