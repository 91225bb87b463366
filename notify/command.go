package notify

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"diagnose/matcher"
)

var flagShape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:--?[A-Za-z][A-Za-z0-9_.-]*|env:[A-Za-z_][A-Za-z0-9_]*)$`)
})

// changes lists what a remedy asks for, one line each that can be copied into a
// command line. A value can come from a log: it is quoted for a shell. A key
// that is no flag is left out.
func changes(r matcher.Remedy) []string {
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
	slices.Sort(flags)
	slices.Sort(env)
	if len(flags) > 0 {
		out = append(out, strings.Join(flags, " "))
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
