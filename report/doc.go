// Package report turns a matcher.Document into something to read: text for a
// terminal, GitHub markdown, one self-contained HTML page, or the JSON of the
// contract.
//
// The reader is on call, at night, at 80 columns. So the order never changes:
// what died, the line that says so, why, what to do first, what not to do; all
// else (the other steps, the evidence, the numbers, how to verify) follows
// below the first screen. Nothing is concluded here: a report shows what the
// document says, with its grade and its lines, and leaves out what the
// document does not know.
//
// # Hostile text
//
// Much of a document is quoted from a log, and prompts reach logs. Every string
// goes through SafeText before it is laid out: control bytes, bidirectional
// overrides, invisible characters and invalid UTF-8 are shown, never sent.
// Markdown, HTML and shell quoting are added on top by the form that needs
// them. JSON carries the strings as they are (encoding/json writes U+FFFD for
// invalid UTF-8).
//
// # What can be lost
//
// Quotes and statements longer than a few thousand columns lose their middle,
// marked by "…"; no number is cut, and no number is parted from its unit. Long
// lists are capped unless Options.Verbose is set, and say how many more there
// are. JSON is never shortened. A quoted line shows its first sentences only
// where the rest is in the table of numbers.
package report
