// Package pyrepr reads the Python reprs that vLLM prints: its arguments, its
// configuration, and the dumps it makes of a failing step.
//
// The text is not always Python. Dumps have unquoted dictionary keys and JSON's
// true, false and null; objects print as "<object at 0x7f…>", as
// "Tensor(shape=…, device=cuda:0)" or as anything at all; logs cut lines. So
// the reader is tolerant: what is no literal becomes Raw text up to the next
// comma or bracket of its level, and on trouble the caller gets what was read
// and the rest.
//
// What can be wrong: a Raw text that holds an unmatched bracket or a comma is
// cut at the wrong place, and vLLM's dumps print some strings without escaping
// the quotes in them, so a request id chosen by a client can end its own quotes.
// Field prefers the outermost occurrence of a name for that reason. Depth,
// number of values and length are bounded; what lies beyond counts as trouble.
package pyrepr
