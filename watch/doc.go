// Package watch turns followed logs into incidents that are told once.
//
// It stands between the tailer, which delivers lines, and notify, which
// delivers notices. Each followed path has a stream: a parser, a tracker and
// the incidents that are still open. An incident is opened when its root has
// been seen and the other ranks have had time to write (Gather), updated when
// a later line makes the assessment better, closed when nothing related has
// come for a while, and followed up when the server starts again.
//
// What survives a kill at any point: the follower re-reads from the position
// that the stream last committed, which never passes the start of a record or
// of a crash that is still open. The start-up lines of the run (banner,
// arguments, memory figures) may lie gigabytes before that; they are kept in a
// snapshot and replayed first, so that the same crash gets the same diagnosis
// and the same id. An incident is written to disk before it is published, and
// marked as published after; on the next start what was not marked is
// published again, and the sinks recognise the id.
//
// What can be lost: lines that the rotator itself destroyed. What can happen
// twice: a notice whose sink may have accepted it before its answer was lost;
// the same id shows it.
package watch
