// Package oom reads what allocators print when they run out of device memory,
// and does the arithmetic over the figures.
//
// The text goes in without log prefixes: what one exception said, on one line
// or on several. Out comes a Message: which family of texts it belongs to and
// every size that was printed. Message.Account derives the quantities that the
// text implies, with their precision, and Message.Where tells where the missing
// bytes are. Neither tells why they are missing; that needs the rest of the log.
//
// Fragments are read independently, so that a line that was cut anywhere, or
// wrapped at a terminal's width, still gives what is whole in it. A figure
// counts only with its unit and the words that say what it is: of "133.3" cut
// from "133.39 GiB memory in use" nothing is reported.
//
// What can be wrong: a text that quotes an allocator's message (a prompt echoed
// by a request log) reads like the message itself, so only text of exceptions
// should be given. Printed sizes are rounded, by up to 5 MiB for a GiB figure.
// Some families name no cause at all (Presumed), and some no figures (Masked).
//
// Sources: c10/cuda/CUDACachingAllocator.cpp and the files named beside the
// patterns; the figures of PyTorch 2.11.0 were held against the allocator's own
// counters on an H200.
package oom
