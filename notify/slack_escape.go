package notify

import "strings"

// wordJoiner is invisible and keeps a word from being recognised.
const wordJoiner = "\u2060"

// slackEscape makes a text literal in Slack's mrkdwn: with &, < and > escaped no
// mention, link or command can be formed
// (docs.slack.dev/messaging/formatting-message-text), and the bare words that
// some clients turn into mentions are broken.
func slackEscape(s string) string {
	if strings.ContainsAny(s, "&<>") {
		s = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
	}
	return breakMentions(s)
}

// slackCode escapes a text and takes its backticks away, so that it neither
// ends a code block nor opens one.
func slackCode(s string) string {
	return slackEscape(strings.ReplaceAll(s, "`", "'"))
}

// slackFence puts text into a code block of at most limit bytes. It cuts whole
// lines and always closes the fence.
func slackFence(text string, limit int) string {
	const open, closing = "```\n", "\n```"
	room := limit - len(open) - len(closing)
	return open + cutEscaped(strings.Trim(text, "\n"), room) + closing
}

// cutEscaped cuts the unescaped text so that its escaped form fits, because a
// cut inside of "&lt;" would show as such.
func cutEscaped(text string, room int) string {
	out := slackCode(cutLines(text, room))
	for limit := room; len(out) > room && limit > 0; {
		limit = min(limit-1, limit*room/len(out))
		out = slackCode(cutLines(text, limit))
	}
	return out
}

// slackInline escapes a short text for running mrkdwn and cuts it to limit. It
// folds lines first, and looks only at the head of a huge text.
func slackInline(s string, limit int) string {
	s = oneLine(headBytes(s, 4*limit+64))
	out := slackCode(cut(s, limit))
	for n := limit; len(out) > limit && n > 0; {
		n = min(n-1, n*limit/len(out))
		out = slackCode(cut(s, n))
	}
	return out
}

// breakMentions puts an invisible character after the @ of the words that page
// a whole channel.
func breakMentions(s string) string {
	if !strings.Contains(s, "@") {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(s[i])
		if s[i] == '@' && pagesMany(s[i+1:]) {
			b.WriteString(wordJoiner)
		}
	}
	return b.String()
}

func pagesMany(rest string) bool {
	for _, word := range []string{"channel", "here", "everyone", "group", "all"} {
		if len(rest) >= len(word) && strings.EqualFold(rest[:len(word)], word) {
			return true
		}
	}
	return false
}

// slackMention gives the markup for an id from the configuration, or "" for
// what is none.
func slackMention(id string) string {
	switch {
	case id == "here" || id == "channel" || id == "everyone":
		return "<!" + id + ">"
	case !slackID(id):
		return ""
	case id[0] == 'S':
		return "<!subteam^" + id + ">"
	}
	return "<@" + id + ">"
}

// slackID tells whether s looks like the id of a user (U, W) or a user group
// (S). An address or a name would need one more scope to look up.
func slackID(s string) bool {
	if len(s) < 3 || len(s) > 32 || !strings.ContainsRune("UWS", rune(s[0])) {
		return false
	}
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}
