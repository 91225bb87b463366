// Package watch turns followed logs into incidents that are told once.
//
// It stands between the tailer, which delivers lines, and notify, which
// delivers notices. Each followed path has a stream: a parser, a tracker and
// the incidents that are still open. An incident is opened when its root has
// been seen and the other ranks have had time to write (Gather), updated when
// a later line makes the assessment better, closed when nothing related has
// come for a while, and followed up each time the server starts again.
//
// # What survives a kill at any point
//
// The follower reads again from the position that the stream last committed,
// which never passes the start of an open record, of a crash that is not
// closed, or of an incident that is not on disk. The start-up lines of the run
// (banner, arguments, memory figures) may lie gigabytes before that; they are
// saved with the checkpoint and replayed first, so that the same crash gets the
// same diagnosis, the same id and the same run. The two are saved in two steps:
// what belongs to the checkpoint before is kept until the new one is safe.
//
// An incident is on disk before it is published, with the list of what is still
// to be published, so that a sink that fails, or a kill between the two, delays
// a notice and loses none.
//
// # What can be lost or wrong
//
//   - Lines that the rotator itself destroyed.
//   - A notice is made twice when the daemon is killed between handing it on
//     and noting that; the same id and time show it.
//   - Lines of a run that were read more than LookBack before a restart of the
//     daemon, and that no incident came of then, do not count for one after it:
//     warnings, and HTTP errors before the crash. Start-up lines and the latest
//     statistics are kept.
//   - A record that has not grown for LookBack of silence is read as it stands.
//   - When the state directory cannot be written, incidents are told even so;
//     a restart meanwhile tells those again under the same ids.
package watch
