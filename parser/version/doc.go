// Package version orders the versions that vLLM and PyTorch print, and tells
// which set of releases one belongs to.
//
// Versions are those of PEP 440: "0.24.0", "v0.6.6.post1",
// "0.22.1rc1.dev69+gf69ede495". A known cause holds for a set of releases
// ("<0.29", "==0.29.*"), because a fix can be lost again.
//
// A release candidate or a development build is judged by the release that it
// leads to: 0.29.0rc1 is held by ">=0.29" and not by "<0.29". PEP 440 itself
// would say the opposite, which is right for installing and wrong for asking
// whether a build contains a change. It is still only a guess: the build may be
// older than the change, so Exact tells such builds apart. A post release is a
// release of its own.
//
// Some builds do not know their version and say "dev" or "0.1.dev1+g…". They
// parse, Known is false, and no set contains them: unknown is not old.
package version
