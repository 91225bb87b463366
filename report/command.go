package report

import (
	"regexp"
	"slices"
	"strings"

	"diagnose/matcher"
)

// maxValue is longer than any value that a remedy computes.
const maxValue = 500

// Command gives the settings of a remedy as pieces of a command line, each to
// be kept whole: first the environment ("NAME=value"), then the flags, sizes in
// bytes last. Values are quoted for a POSIX shell where they need it. What is
// to be removed and an upgrade are no part of it.
func Command(r matcher.Remedy) []string {
	keys := make([]string, 0, len(r.Set))
	for k := range r.Set {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if c := order(a) - order(b); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	var out []string
	for _, k := range keys {
		value := clip(SafeText(shorten(r.Set[k])), maxValue)
		name, env := strings.CutPrefix(word(k), "env:")
		switch {
		case env:
			out = append(out, shellWord(name)+"="+shellWord(value))
		case value == "":
			out = append(out, shellWord(name))
		default:
			out = append(out, shellWord(name)+" "+shellWord(value))
		}
	}
	return out
}

func order(key string) int {
	switch {
	case strings.HasPrefix(key, "env:"):
		return 0
	case isSize(key):
		return 2
	}
	return 1
}

func isSize(key string) bool { return strings.Contains(key, "bytes") }

// humanSizes explains the sizes of a remedy: "128228396105 bytes = 119.42 GiB".
// It stands on a line of its own, so that the command above it can be copied.
func humanSizes(r matcher.Remedy) string {
	var out []string
	for k, v := range r.Set {
		if n, ok := wholeNumber(v); ok && isSize(k) && n >= mib {
			out = append(out, v+" bytes = "+SizeText(n))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func wholeNumber(s string) (int64, bool) {
	if s == "" || len(s) > 18 {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

func shellWord(s string) string {
	safe := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("_@%+=:,./-", r))
	}) < 0
	if safe {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// commandLines lays the pieces out on lines of at most width columns, continued
// by a backslash as in a shell script.
func commandLines(pieces []string, width int) []string {
	var lines []string
	line := ""
	for _, p := range pieces {
		switch {
		case line == "":
			line = p
		case columns(line)+1+columns(p)+2 <= width:
			line += " " + p
		default:
			lines = append(lines, line+` \`)
			line = p
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// secretName matches settings whose value no report prints. The plural
// "tokens" of token budgets is not among them.
var secretName = regexp.MustCompile(`(?i)(^|[-_.])(api-?_?keys?|token|secret|password|passwd|credentials?)$`)
