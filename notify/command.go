package notify

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"diagnose/matcher"
)

var flagShape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:--?[A-Za-z][A-Za-z0-9_.-]*|env:[A-Za-z_][A-Za-z0-9_]*)$`)
})

// changes lists what a remedy asks for, one line each that can be copied into a
// command line: all flags in one line, sizes in bytes last. A value can come
// from a log: it is quoted for a shell. A key that is no flag is left out.
func changes(r matcher.Remedy) []string { return changesWith(r, " ") }

// changesWith puts sep between two flags.
func changesWith(r matcher.Remedy, sep string) []string {
	var flags, env, out []string
	for key, value := range r.Set {
		if !flagShape().MatchString(key) {
			continue
		}
		if name, ok := strings.CutPrefix(key, "env:"); ok {
			env = append(env, "export "+name+"="+shellQuote(value))
			continue
		}
		if value == "" {
			flags = append(flags, key)
			continue
		}
		flags = append(flags, key+" "+shellQuote(value))
	}
	slices.SortFunc(flags, func(a, b string) int {
		return cmp.Or(cmp.Compare(sizeRank(a), sizeRank(b)), cmp.Compare(a, b))
	})
	slices.Sort(env)
	if len(flags) > 0 {
		out = append(out, strings.Join(flags, sep))
	}
	out = append(out, env...)
	for _, key := range r.Unset {
		if name, ok := strings.CutPrefix(key, "env:"); ok && flagShape().MatchString(key) {
			out = append(out, "unset "+name)
		} else if flagShape().MatchString(key) {
			out = append(out, "remove "+key)
		}
	}
	if v := oneLine(deref(r.UpgradeTo)); v != "" {
		out = append(out, "upgrade vLLM to "+v)
	}
	return out
}

// sizeRank is 1 for a flag that takes a size in bytes: a pinned size is read
// after the change that it goes with.
func sizeRank(flag string) int {
	if name, _, _ := strings.Cut(flag, " "); strings.Contains(name, "bytes") {
		return 1
	}
	return 0
}

// sizesLine says long sizes in GiB: "28464895754 bytes = 26.51 GiB". It stands
// beside what is copied, never in it.
func sizesLine(r matcher.Remedy) string {
	var out []string
	for key, value := range r.Set {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n >= 1<<20 && flagShape().MatchString(key) && sizeRank(key) == 1 {
			out = append(out, value+" bytes = "+bytesText(n))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// shellQuote quotes a word for a POSIX shell, on one line.
func shellQuote(s string) string {
	s = oneLine(s)
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// reasonLine is the one line of arithmetic under a step: the first of why and
// expect that holds figures.
func reasonLine(r matcher.Remedy) string {
	why, expect := firstLine(r.Why), firstLine(r.Expect)
	if !strings.ContainsAny(why, "0123456789") && strings.ContainsAny(expect, "0123456789") || why == "" {
		return expect
	}
	return why
}
