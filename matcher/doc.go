// Package matcher tells what happened and what to do about it. In go the records
// of package parser; out comes a Document: incidents, each with its verdict, the
// lines it rests on, the arithmetic, what it was not, and the steps.
//
// A Tracker puts records into runs (one life of a server) and failures into
// incidents: the earliest cause, and what only follows from it. The catalogue's
// entries name the mechanism; their formulas give the values.
//
// What can be wrong: a cause that no entry knows is "unknown"; a fact that the
// log lacks makes a formula unknown and its step is left out; what is estimated
// is graded inferred. Nothing here reads a clock, and files only through the
// fs.FS that LoadCatalog is given.
package matcher
