// Command diagnose tells why a vLLM server died. One file a command; the wiring
// of tailer, parser, matcher, report, notify and watch, and no knowledge of its
// own.
//
// In go the arguments, the logs and the daemon's configuration; the answer goes
// to standard output, everything about the program to standard error, and the
// exit status says which kind of answer it is (ui.go).
package main
