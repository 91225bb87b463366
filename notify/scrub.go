package notify

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// scrubber holds the compiled shapes of secrets.
type scrubber struct {
	shapes []shape
	named  *regexp.Regexp
	flag   *regexp.Regexp
}

// shape is one kind of secret. It is searched only in text that holds one of
// its hints, in lower case: most text holds none, and a search is slow.
type shape struct {
	hints []string
	re    *regexp.Regexp
	with  string
}

// secrets compiles the shapes at the first use; they never change.
var secrets = sync.OnceValue(newScrubber)

// scrub replaces what looks like a secret in s.
func scrub(s string) string {
	sc := secrets()
	low := strings.ToLower(s)
	holds := func(hints ...string) bool {
		return slices.ContainsFunc(hints, func(h string) bool { return strings.Contains(low, h) })
	}
	for _, p := range sc.shapes {
		if holds(p.hints...) {
			s = p.re.ReplaceAllString(s, p.with)
		}
	}
	if !holds("token", "key", "secret", "passw", "pwd", "passphrase", "credential", "authorization") {
		return s
	}
	for _, re := range []*regexp.Regexp{sc.flag, sc.named} {
		s = re.ReplaceAllStringFunc(s, func(m string) string {
			g := re.FindStringSubmatch(m)
			if !secretName(g[1]) || harmlessValue(g[1], g[3]) {
				return m
			}
			return g[1] + g[2] + redacted
		})
	}
	return s
}

func newScrubber() scrubber {
	// What precedes a secret stands in group 1 and is kept.
	list := []struct{ hints, expr, with string }{
		{"private key", `-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`, redacted},
		{"hooks.slack", `(https?://hooks\.slack(?:-gov)?\.com/)[^\s"'<>\\]+`, "${1}" + redacted},
		{"://", `(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/@"'<>?#]+@`, "${1}" + redacted + "@"},
		{"?|&", `(?i)([?&;](?:[a-z0-9_-]*(?:token|key|secret|sig|signature|password|passwd|auth|credential))=)[^&\s"'<>#]+`, "${1}" + redacted},
		{"authorization", `(?i)(\b(?:proxy-)?authorization["']?\s*[:=]\s*)(?:"[^"\n]*"|'[^'\n]*'|[^\s"'][^\n"']*)`, "${1}" + redacted},
		{"cookie", `(?i)(\b(?:set-)?cookie["']?\s*[:=]\s*)(?:"[^"\n]*"|'[^'\n]*'|[^\s"'][^\n"']*)`, "${1}" + redacted},
		{"bearer", `(?i)(\bbearer\s+)[a-z0-9._~+/=-]{4,}`, "${1}" + redacted},
		{"basic", `(?i)(\bbasic\s+)[a-z0-9+/]{6,}(?:=+|[0-9][a-z0-9+/=]*)`, "${1}" + redacted},
		{"eyj", `(^|[^A-Za-z0-9])eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`, "${1}" + redacted},
		{"sk-|rk-|pk-", `(^|[^A-Za-z0-9])(?:sk|rk|pk)-[A-Za-z0-9_-]{6,}`, "${1}" + redacted},
		{"hf_|gsk_|r8_|gh|npm_|pypi_|dop_", `(^|[^A-Za-z0-9])(?:hf|gsk|r8|gh[pousr]|npm|pypi|dop_v1)_[A-Za-z0-9]{16,}`, "${1}" + redacted},
		{"github_pat|glpat|nvapi|wandb_v1", `(^|[^A-Za-z0-9])(?:github_pat|glpat|nvapi|wandb_v1)[-_][A-Za-z0-9_-]{6,}`, "${1}" + redacted},
		{"xox|xapp", `(^|[^A-Za-z0-9])x(?:ox[a-z]|app)[.-][A-Za-z0-9.-]{4,}`, "${1}" + redacted},
		{"akia|asia", `(^|[^A-Za-z0-9])(?:AKIA|ASIA)[0-9A-Z]{12,}`, "${1}" + redacted},
		{"aiza", `(^|[^A-Za-z0-9])AIza[0-9A-Za-z_-]{10,}`, "${1}" + redacted},
		{"/home/|/users/", `(^|[^A-Za-z0-9._-])/(?:home|Users)/[^/\s"'<>:,;()\[\]{}\\]+`, "${1}~"},
		{"/root", `(^|[\s"'=:(\[,])/root(/|\b)`, "${1}~${2}"},
	}
	sc := scrubber{
		// A value after a name is a quoted string, a list, or one word.
		// (b'x-api-key', b'...') is how ASGI prints a header, \" a quote in JSON.
		named: regexp.MustCompile(`([A-Za-z0-9][A-Za-z0-9_-]*)(\\?["']?\s{0,4}[:=]\s{0,4}|["']\s{0,4},\s{0,4})(\[[^\]\n]*\]?|b?"[^"\n]*"?|b?'[^'\n]*'?|\\"[^"\n]*"?|[^\s,;)}\]"'\[]+)`),
		// --api-key takes several words (vllm/entrypoints/openai/cli_args.py).
		flag: regexp.MustCompile(`(--?[A-Za-z][A-Za-z0-9_.-]*)([ \t]+)((?:[^\s-]\S*)(?:[ \t]+[^\s-]\S*)*)`),
	}
	for _, p := range list {
		sc.shapes = append(sc.shapes, shape{strings.Split(p.hints, "|"), regexp.MustCompile(p.expr), p.with})
	}
	return sc
}
