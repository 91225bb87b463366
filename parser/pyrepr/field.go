package pyrepr

import "strings"

// Field gives the value of "name=" in a dump, as a person would type it, and
// whether there is one. It is meant for lines of up to some MB, of which it
// keeps nothing: SchedulerOutput(...) with all its token ids.
//
// Text in quotes is passed over. Of several occurrences the outermost counts,
// and of those the first: a request's id, which a client may have chosen, stands
// deeper than the figures of the step.
func Field(s, name string) (string, bool) {
	if name == "" || !strings.Contains(s, name+"=") {
		return "", false
	}
	at := outermost(s, name+"=")
	if at < 0 {
		return "", false
	}
	end := min(len(s), at+maxText)
	p := parser{s: s[at:end]}
	p.space()
	v, ok := p.value(0, inner)
	// A value at the very end of the text may have been cut, unless it is
	// closed: "num_running_reqs=1" can be the beginning of 12.
	if !ok || p.pos == len(p.s) && !closed(v) {
		return "", false
	}
	return v.Text(), true
}

// closed tells whether a value carries its own end.
func closed(v Value) bool {
	switch v.Kind {
	case None, Bool, String, List, Tuple, Set, Dict, Call:
		return true
	}
	return strings.HasPrefix(v.Source, "<") && strings.HasSuffix(v.Source, ">")
}

// outermost finds where the value of key begins; -1 if it is nowhere outside
// of quotes.
func outermost(s, key string) int {
	p := parser{s: s}
	best, bestDepth, depth := -1, 0, 0
	next := strings.Index(s, key)
	for next >= 0 {
		for p.pos < next {
			switch s[p.pos] {
			case '\'', '"':
				p.skipQuoted()
				continue
			case '(', '[', '{':
				depth++
			case ')', ']', '}':
				depth = max(0, depth-1)
			}
			p.pos++
		}
		if p.pos == next && (next == 0 || !isWord(s[next-1]) && s[next-1] != '.') && (best < 0 || depth < bestDepth) {
			best, bestDepth = next+len(key), depth
			if depth == 0 {
				return best
			}
		}
		from := max(p.pos, next+1)
		if from >= len(s) {
			break
		}
		next = strings.Index(s[from:], key)
		if next >= 0 {
			next += from
		}
	}
	return best
}
