// Package parser says what a line of a vLLM log says.
//
// Physical lines go in, in the order in which they were read; typed events come
// out. A line is first freed from what wrappers put around it (package
// framing), then its process prefix and log head are read, and lines of one
// process are put together into records: a log call, a traceback, a message of
// several lines. Records are assembled per process, never by adjacency,
// because several processes write into one pipe and their tracebacks mix line
// by line.
//
// The same bytes give the same events in any chunking: a record ends where its
// text says so, where another one of its process begins, when a server starts,
// after many lines without one of its own, or at Flush. So the event of a
// record can come after those of lines that began later; its position tells
// where it belongs. The package does no I/O and reads no clock.
//
// Most lines of a log say nothing to a diagnosis. A gate tells them by a few
// bytes, and nothing else looks at them; they open, continue and end no record.
//
// What can be lost or wrong:
//   - a record longer than MaxRecordLines or 1 MiB keeps its head and its tail,
//     where the exception stands, and of a line over 16 KiB both ends; of very
//     many records open at a time the quietest end early;
//   - where a collector stripped the "\r" that shows a record's end, two records
//     of one place within a second are told apart by their words only;
//   - raw lines without a prefix (vLLM 0.31 and later, C++ output) belong to
//     nobody; two such tracebacks that mix line by line are read as one;
//   - lines broken by a terminal are put together in frames and source lines;
//     a text keeps them as they are, for white space in it means nothing;
//   - the first two lines behind the free text of VLLM_LOGGING_PREFIX are read
//     as raw ones.
//
// Everything that a log quotes, a prompt in the request log above all, stays
// inside its record and is never taken for a line of its own; in the text of
// an exception a traceback counts only where it is joined by Python's own words,
// repeats one of the record, or is carried from another process. A client whose
// words are printed raw, with line feeds and below no head, can write whatever
// a server can.
package parser
