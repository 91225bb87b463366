package notify

import (
	"fmt"
	"strings"
)

const (
	// slackReplyBytes is the text of one reply: a section with room for the
	// fence and for escapes.
	slackReplyBytes = 2800
	// slackMaxReplies bounds a thread: at one a second this is half a minute.
	slackMaxReplies = 30
)

// slackDetails cuts the whole diagnosis into replies, on whole lines. Text
// beyond the last reply is left out, and the last reply says so.
func slackDetails(id, text string) []slackMessage {
	pieces := slackPieces(clean(text), slackReplyBytes)
	if len(pieces) > slackMaxReplies {
		left := 0
		for _, p := range pieces[slackMaxReplies:] {
			left += strings.Count(p, "\n") + 1
		}
		pieces = pieces[:slackMaxReplies]
		last := &pieces[slackMaxReplies-1]
		*last = cutLines(*last, len(*last)*9/10) + fmt.Sprintf("\n… and %d lines not shown here", left)
	}
	out := make([]slackMessage, len(pieces))
	for i, p := range pieces {
		out[i] = slackMessage{
			Text:   fmt.Sprintf("Diagnosis of %s, part %d of %d", slackInline(id, 64), i+1, len(pieces)),
			Blocks: []slackBlock{section(slackFence(p, slackMaxSection))},
		}
	}
	return out
}

// slackPieces splits text so that each piece, escaped, has at most limit bytes.
// Lines stay whole unless one alone is longer.
func slackPieces(text string, limit int) []string {
	var out []string
	var piece []string
	size := 0
	flush := func() {
		if strings.TrimSpace(strings.Join(piece, "")) != "" {
			out = append(out, strings.Join(piece, "\n"))
		}
		piece, size = nil, 0
	}
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		for {
			head, rest := splitEscaped(line, limit)
			n := len(slackCode(head)) + 1
			if size+n > limit+1 {
				flush()
			}
			piece, size = append(piece, head), size+n
			if rest == "" {
				break
			}
			line = rest
		}
	}
	flush()
	return out
}

// splitEscaped gives the longest head of a line whose escaped form fits.
func splitEscaped(line string, limit int) (head, rest string) {
	head = headBytes(line, limit)
	for len(slackCode(head)) > limit {
		head = headBytes(head, min(len(head)-1, len(head)*limit/len(slackCode(head))))
	}
	return head, line[len(head):]
}

// slackReply is a reply in words of our own.
func slackReply(id, text string, mentions []string) slackMessage {
	body := slackInline(text, 1500)
	if len(mentions) > 0 {
		body = strings.Join(mentions, " ") + "\n" + body
	}
	return slackMessage{
		Text:   slackInline(text, 300) + " [" + slackInline(id, 64) + "]",
		Blocks: []slackBlock{section(body)},
	}
}
