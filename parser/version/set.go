package version

import (
	"errors"
	"fmt"
	"strings"

	pep440 "github.com/aquasecurity/go-pep440-version"
)

// ErrSet is wrapped by every error of ParseSet.
var ErrSet = errors.New("not a set of versions")

// Set is a PEP 440 specifier set: every clause must hold. The zero value
// contains nothing.
type Set struct {
	text    string
	clauses []pep440.Specifiers
}

// ParseSet reads a specifier set such as ">=0.30,<=0.33.0" or "==0.29.*". Each
// clause needs an operator. The "===" of PEP 440, which compares text, is
// refused, and so is an empty set: either is a mistake where a set says which
// releases are affected.
func ParseSet(s string) (Set, error) {
	set := Set{text: strings.TrimSpace(s)}
	for clause := range strings.SplitSeq(s, ",") {
		clause = strings.TrimSpace(clause)
		release, ok := cutOperator(clause)
		if !ok {
			return Set{}, fmt.Errorf("%w: %q: clause %q needs one of ~= == != <= >= < >", ErrSet, s, clause)
		}
		// The library also takes "||" and clauses without a comma between
		// them, which PEP 440 does not.
		if len(clause) > maxText || strings.ContainsAny(release, "<>=~|") {
			return Set{}, fmt.Errorf("%w: %q: clause %q cannot be read", ErrSet, s, clause)
		}
		spec, err := pep440.NewSpecifiers(clause, pep440.WithPreRelease(true))
		if err != nil {
			return Set{}, fmt.Errorf("%w: %q: clause %q cannot be read", ErrSet, s, clause)
		}
		set.clauses = append(set.clauses, spec)
	}
	return set, nil
}

// cutOperator gives what follows the operator of a clause.
func cutOperator(clause string) (release string, ok bool) {
	if strings.HasPrefix(clause, "===") {
		return "", false
	}
	for _, op := range [...]string{"~=", "==", "!=", "<=", ">=", "<", ">"} {
		if release, ok = strings.CutPrefix(clause, op); ok {
			return release, true
		}
	}
	return "", false
}

// String is the set as it was written.
func (s Set) String() string { return s.text }

// Contains tells whether the set holds the release that v is or leads to. It
// is false for every version that is not Known.
func (s Set) Contains(v Version) bool {
	if !v.Known() || len(s.clauses) == 0 {
		return false
	}
	held := v.ver
	if v.build {
		base, err := pep440.Parse(v.base)
		if err != nil {
			return false
		}
		held = base
	}
	for _, c := range s.clauses {
		if !c.Check(held) {
			return false
		}
	}
	return true
}
