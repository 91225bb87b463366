package notify

import (
	"strings"
	"unicode"

	"diagnose/matcher"
)

const (
	redacted = "[redacted]"
	notShown = "[not shown]"

	// maxScan bounds the text that is searched, maxString what is kept of it. A
	// secret cut in two at maxScan is never shown, because maxString is smaller.
	maxScan   = 16 << 10
	maxString = 8 << 10
	// maxIncident bounds the text of a whole incident; beyond it each string is
	// searched only in maxSpare bytes, and half of that is kept.
	maxIncident = 512 << 10
	maxSpare    = 512
)

// Redact returns a copy of an incident that may leave the host: every string is
// cleaned of terminal sequences and hidden characters, cut at 8 KiB, and freed
// of API keys, tokens, authorization headers, credentials in URLs, and the names
// of home directories. Values of settings are kept only for the flags on the
// allow-list. Redacting twice changes nothing.
func Redact(i matcher.Incident) matcher.Incident {
	left := maxIncident
	out := mapStrings(i, func(s string) string {
		if left <= 0 {
			return redactTo(s, maxSpare, maxSpare/2)
		}
		left -= min(len(s), maxScan)
		return redactText(s)
	})
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

// RedactText does for one text, such as a file's name, what Redact does for an
// incident's.
func RedactText(s string) string { return redactText(s) }

func redactText(s string) string { return redactTo(s, maxScan, maxString) }

func redactTo(s string, scan, keep int) string {
	return cut(scrub(clean(headBytes(s, scan))), keep)
}

// prepare is what every sink does first with a notice.
func prepare(n Notice) Notice {
	if n.Printed == "" {
		n.Printed = cut(redactText(n.Incident.PrintedTime()), 64)
	}
	n.Incident = Redact(n.Incident)
	sources := make([]string, min(len(n.Sources), maxList))
	for i := range sources {
		sources[i] = redactText(n.Sources[i])
	}
	n.Sources = sources
	return n
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
