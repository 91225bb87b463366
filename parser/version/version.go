package version

import (
	"strings"

	pep440 "github.com/aquasecurity/go-pep440-version"
)

// maxText bounds what is looked at: no real version is longer, and the text
// comes from a log.
const maxText = 128

// Version is one printed version. The zero value is an unknown one.
type Version struct {
	text string
	ver  pep440.Version
	base string
	// read is false where the text names no version ("dev").
	read bool
	// build marks a pre-release or development build.
	build bool
}

// Parse reads a version as it was printed, with or without a leading "v". It
// returns false for text that is no version. A build that does not know its
// version ("dev") parses, but is not Known.
func Parse(s string) (Version, bool) {
	text := strings.TrimSpace(s)
	if text == "" || len(text) > maxText {
		return Version{}, false
	}
	if text == "dev" { // vllm/__init__.py, when _version.py cannot be imported
		return Version{text: text}, true
	}
	v, err := pep440.Parse(text)
	if err != nil {
		return Version{}, false
	}
	return Version{
		text: text, ver: v, base: v.BaseVersion(), read: true, build: v.IsPreRelease(),
	}, true
}

// String is the version as it was printed.
func (v Version) String() string { return v.text }

// Known tells whether the text places the build among the releases. It is
// false for "dev" and for "0.1.dev5+g…", which setuptools_scm writes when the
// checkout has no tags.
func (v Version) Known() bool {
	if !v.read {
		return false
	}
	base := v.base
	for strings.HasSuffix(base, ".0") {
		base = strings.TrimSuffix(base, ".0")
	}
	return base != "0" && (base != "0.1" || !v.build)
}

// Exact tells whether the build is a release or a post release. What is known
// of a release holds for other builds of its base only with reserve.
func (v Version) Exact() bool { return v.Known() && !v.build }

// Base is the release that the build is, or leads to: "0.22.1" for
// "0.22.1rc1.dev69+gf69ede495". It is empty where the text names no version.
func (v Version) Base() string { return v.base }

// Compare orders two versions as PEP 440 does: dev, rc, final, post; a local
// build ("+g…") after the plain one. What names no version comes first.
func Compare(a, b Version) int {
	switch {
	case a.read && b.read:
		return a.ver.Compare(b.ver)
	case a.read:
		return 1
	case b.read:
		return -1
	}
	return 0
}
