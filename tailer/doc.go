// Package tailer turns log files, compressed files, pipes and journals into
// lines.
//
// A line is what stands between two "\n", with its bytes as written: a "\r",
// NUL bytes and invalid UTF-8 are kept. Offsets and line numbers count in the
// decompressed source. Line.Next is where a reader resumes, so a caller that
// keeps it reads every line once.
//
// # Reading in bulk
//
// Read is for what is already there: a post-mortem, or the part of a log that
// was written before the follower came. It reads to the end at hand. A piece
// behind the last "\n" is given only on request, because its rest may still be
// written. Source opens plain, gzip and zstd input alike; LastLineContaining
// finds a place in a plain file from its end, without reading what stands
// before; Group and Siblings order the generations that a rotation leaves.
//
// # Following
//
// A source is followed by generation: one life of one inode. A generation is
// read to its end before the next one begins.
//
// # What can be lost or wrong
//
//   - A line longer than the limit loses its middle. Line.Cut tells how much.
//   - A truncated compressed file ends with ErrTruncated: what was in its last
//     block cannot be read. A gzip file cut exactly between two of its members,
//     or a zstd file cut between two frames or less than four bytes into the
//     next, looks complete.
//   - Before ErrCorrupt, bytes may have been given that no checksum covers.
//   - Generations are told by their names. A stranger's file named like a
//     generation is taken for one.
//   - A rotation while several generations are being opened can show one of
//     them twice, or none of it.
//   - A line that a rotation cuts is joined and counts to the first file; so is
//     a last line that was never ended, unless what follows is a start.
//   - Of a file that was removed while nobody looked, at most Carry of the text
//     that was not committed is kept, in the checkpoint.
//   - Generations that came and went unseen are ordered by the dates in their
//     names, else by their times, and by their names where these are equal.
//   - nxadm/tail holds about three times a line that is written in one go: 306
//     MiB were measured for 100 MiB, and 9 MiB with OwnReader.
//   - A truncation in place loses what was written between the rotator's copy
//     and the cut. No reader can recover that.
package tailer
