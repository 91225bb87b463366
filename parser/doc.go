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
// text says so, or at Flush. The package does no I/O and reads no clock.
//
// What can be lost or wrong: a record longer than MaxRecordLines keeps its head
// and its tail, where the exception stands. Raw lines of processes without a
// prefix (vLLM 0.31 and later, C++ output) cannot be attributed; two such
// tracebacks that mix line by line are read as one. Everything that a log
// quotes, a prompt in the request log above all, stays inside its record and
// is never taken for a line of its own.
package parser
