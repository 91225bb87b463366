package notify

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"diagnose/matcher"
)

const (
	redacted = "[redacted]"
	notShown = "[not shown]"

	// maxScan bounds the text that is searched, maxString what is kept of it. A
	// secret cut in two at maxScan is never shown, because maxString is smaller.
	maxScan   = 64 << 10
	maxString = 8 << 10
)

// Redact returns a copy of an incident that may leave the host: every string is
// cleaned of terminal sequences and hidden characters, cut at 8 KiB, and freed
// of API keys, tokens, authorization headers, credentials in URLs, and the names
// of home directories. Values of settings are kept only for the flags on the
// allow-list. Redacting twice changes nothing.
func Redact(i matcher.Incident) matcher.Incident {
	out := mapStrings(i, redactText)
	for name, f := range out.Engine.Flags {
		switch {
		case secretName(name):
			f.Value = redacted
		case !shownFlag(name) && f.Value != "":
			f.Value = notShown
		}
		out.Engine.Flags[name] = f
	}
	for _, r := range out.Remedies {
		for name, v := range r.Set {
			if secretName(name) && v != "" {
				r.Set[name] = redacted
			}
		}
	}
	return out
}

func redactText(s string) string {
	return cut(scrub(clean(headBytes(s, maxScan))), maxString)
}

// prepare is what every sink does first with a notice.
func prepare(n Notice) Notice {
	n.Incident = Redact(n.Incident)
	sources := make([]string, min(len(n.Sources), maxList))
	for i := range sources {
		sources[i] = redactText(n.Sources[i])
	}
	n.Sources = sources
	return n
}

// scrubber holds the compiled shapes of secrets.
type scrubber struct {
	shapes []shape
	named  *regexp.Regexp
	flag   *regexp.Regexp
}

type shape struct {
	re   *regexp.Regexp
	with string
}

// secrets compiles the shapes at the first use; they never change.
var secrets = sync.OnceValue(newScrubber)

// scrub replaces what looks like a secret in s.
func scrub(s string) string {
	sc := secrets()
	for _, p := range sc.shapes {
		s = p.re.ReplaceAllString(s, p.with)
	}
	s = sc.flag.ReplaceAllStringFunc(s, func(m string) string {
		g := sc.flag.FindStringSubmatch(m)
		if !secretName(g[1]) || harmlessValue(g[1], g[3]) {
			return m
		}
		return g[1] + g[2] + redacted
	})
	return sc.named.ReplaceAllStringFunc(s, func(m string) string {
		g := sc.named.FindStringSubmatch(m)
		if !secretName(g[1]) || harmlessValue(g[1], g[3]) {
			return m
		}
		return g[1] + g[2] + redacted
	})
}

func newScrubber() scrubber {
	// What precedes a secret stands in group 1 and is kept.
	list := []struct{ expr, with string }{
		{`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`, redacted},
		{`(https?://hooks\.slack(?:-gov)?\.com/)[^\s"'<>\\]+`, "${1}" + redacted},
		{`(?i)(\b[a-z][a-z0-9+.-]*://)[^\s/@"'<>?#]+@`, "${1}" + redacted + "@"},
		{`(?i)([?&;](?:[a-z0-9_-]*(?:token|key|secret|sig|signature|password|passwd|auth|credential))=)[^&\s"'<>#]+`, "${1}" + redacted},
		{`(?i)(\b(?:proxy-)?authorization["']?\s*[:=]\s*)(?:"[^"\n]*"|'[^'\n]*'|[^\s"'][^\n"']*)`, "${1}" + redacted},
		{`(?i)(\b(?:set-)?cookie["']?\s*[:=]\s*)(?:"[^"\n]*"|'[^'\n]*'|[^\s"'][^\n"']*)`, "${1}" + redacted},
		{`(?i)(\bbearer\s+)[a-z0-9._~+/=-]{4,}`, "${1}" + redacted},
		{`(?i)(\bbasic\s+)[a-z0-9+/]{6,}(?:=+|[0-9][a-z0-9+/=]*)`, "${1}" + redacted},
		{`(^|[^A-Za-z0-9])eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`, "${1}" + redacted},
		{`(^|[^A-Za-z0-9])(?:sk|rk|pk)-[A-Za-z0-9_-]{6,}`, "${1}" + redacted},
		{`(^|[^A-Za-z0-9])(?:hf|gsk|r8|ghp|gho|ghu|ghs|ghr|npm|pypi|dop_v1)_[A-Za-z0-9]{16,}`, "${1}" + redacted},
		{`(^|[^A-Za-z0-9])(?:github_pat|glpat|nvapi|wandb_v1)[-_][A-Za-z0-9_-]{6,}`, "${1}" + redacted},
		{`(^|[^A-Za-z0-9])x(?:ox[a-z]|app)[.-][A-Za-z0-9.-]{4,}`, "${1}" + redacted},
		{`(^|[^A-Za-z0-9])(?:AKIA|ASIA)[0-9A-Z]{12,}`, "${1}" + redacted},
		{`(^|[^A-Za-z0-9])AIza[0-9A-Za-z_-]{10,}`, "${1}" + redacted},
		{`/(?:home|Users)/[^/\s"'<>:,;()\[\]{}\\]+`, "~"},
		{`(^|[\s"'=:(\[,])/root(/|\b)`, "${1}~${2}"},
	}
	sc := scrubber{
		// A value after a name is a quoted string, a list, or one word.
		// (b'x-api-key', b'...') is how ASGI prints a header, \" a quote in JSON.
		named: regexp.MustCompile(`([A-Za-z0-9][A-Za-z0-9_-]*)(\\?["']?\s{0,4}[:=]\s{0,4}|["']\s{0,4},\s{0,4})(\[[^\]\n]*\]?|b?"[^"\n]*"?|b?'[^'\n]*'?|\\"[^"\n]*"?|[^\s,;)}\]"'\[]+)`),
		// --api-key takes several words (vllm/entrypoints/openai/cli_args.py).
		flag: regexp.MustCompile(`(--?[A-Za-z][A-Za-z0-9_.-]*)([ \t]+)((?:[^\s-]\S*)(?:[ \t]+[^\s-]\S*)*)`),
	}
	for _, p := range list {
		sc.shapes = append(sc.shapes, shape{regexp.MustCompile(p.expr), p.with})
	}
	return sc
}

// secretName tells whether a setting of this name holds a secret. It looks at
// whole words, so that tokenizer, max_num_batched_tokens and eos_token_id pass.
func secretName(name string) bool {
	words := nameWords(name)
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	before := ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch last {
	case "password", "passwd", "passphrase", "pwd", "secret", "secrets", "credential", "credentials", "apikey", "apikeys", "authorization":
		return true
	case "token":
		switch before {
		case "bos", "eos", "pad", "unk", "sep", "cls", "mask", "image", "audio", "video", "stop", "per", "end", "start", "special", "next", "last", "first", "draft", "one", "single", "each", "every":
			return false
		}
		return true
	case "tokens":
		return before == "api" || before == "access" || before == "auth" || before == "hf"
	case "key", "keys":
		switch before {
		case "api", "access", "private", "secret", "auth", "encryption", "signing", "account", "ssh", "ssl", "tls", "license":
			return true
		}
	}
	return false
}

// nameWords splits a setting's name at its separators and humps, in lower case.
func nameWords(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			b.WriteByte('-')
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool {
		return r == '-' || r == '_' || r == '.' || r == ':' || r == ' '
	})
}

// harmlessValue keeps what is surely no secret: nothing at all, a Python
// constant, what was redacted before, and "token: 1536", where a token is a
// unit.
func harmlessValue(name, value string) bool {
	v := strings.Trim(value, `"'[] `)
	switch v {
	case "", "None", "none", "null", "True", "False", "true", "false", "redacted":
		return true
	}
	if strings.HasPrefix(value, redacted) {
		return true
	}
	words := nameWords(name)
	if words[len(words)-1] != "token" || strings.HasPrefix(name, "-") {
		return false
	}
	return len(v) < 12 && strings.Trim(v, "0123456789.,") == ""
}
