package notify

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"diagnose/matcher"
)

// slackView is what a message is built from.
type slackView struct {
	Notice
	tool     matcher.Tool
	mentions []string // markup, only where someone is to be paged
}

// room says how much of each part is shown. A message that comes out too long
// as a whole is built again with the next, smaller one.
type room struct {
	summary, step, steps, quotes, quote, field, context int
}

func rooms() []room {
	return []room{
		{summary: 1500, step: 700, steps: 3, quotes: 6, quote: 300, field: 200, context: 300},
		{summary: 900, step: 400, steps: 3, quotes: 4, quote: 200, field: 120, context: 160},
		{summary: 400, step: 250, steps: 2, quotes: 3, quote: 120, field: 60, context: 90},
		{summary: 160, step: 120, steps: 1, quotes: 1, quote: 60, field: 30, context: 60},
	}
}

// build makes the root message of an incident: the largest form that keeps all
// of Slack's limits, and plain text if none does.
func (v slackView) build() slackMessage {
	text := v.fallback()
	for _, r := range rooms() {
		m := slackMessage{Text: text, Blocks: v.blocks(r)}
		if m.validate() == nil {
			return m
		}
	}
	return slackMessage{Text: text}
}

// fallback is the line on a phone's lock screen and for a screen reader.
func (v slackView) fallback() string {
	var b strings.Builder
	if v.Event == EventTest {
		b.WriteString("Test: ")
	} else if c := condition(v.Notice); c != "open" {
		b.WriteString(strings.ToUpper(c[:1]) + c[1:] + ": ")
	}
	i := v.Incident
	b.WriteString(slackInline(headline(i), 200))
	if s := sentences(i.Verdict.Summary, 200); s != "" {
		b.WriteString(". " + slackInline(s, 240))
	}
	if len(i.Remedies) > 0 && (!over(v.Notice) || willRepeat(v.Notice)) {
		b.WriteString(" Do first: " + slackInline(strings.TrimRight(i.Remedies[0].Title, "."), 120) + ".")
	}
	b.WriteString(" [" + slackInline(v.Incident.ID, 64) + "]")
	return b.String()
}

func (v slackView) blocks(r room) []slackBlock {
	out := []slackBlock{v.header(), section(v.verdict(r))}
	if f := v.fields(r); len(f) > 0 {
		out = append(out, slackBlock{Type: "section", Fields: f})
	}
	for _, s := range v.steps(r) {
		out = append(out, section(s))
	}
	if s := v.doNot(r); s != "" {
		out = append(out, section(s))
	}
	if s := v.evidence(r); s != "" {
		out = append(out, section(s))
	}
	return append(out, slackBlock{Type: "context", Elements: v.context(r)})
}

// header carries the one status mark. It is plain text, in which Slack looks for
// no markup.
func (v slackView) header() slackBlock {
	mark := "🔴 "
	switch {
	case v.Event == EventTest:
		mark = "🔵 "
	case over(v.Notice) && !willRepeat(v.Notice):
		mark = "🟢 "
	case v.Observation, condition(v.Notice) != "open":
		mark = "🟡 "
	}
	return slackBlock{Type: "header", Text: plainText(mark + cut(headline(v.Incident), slackMaxHeader-len(mark)))}
}

func (v slackView) verdict(r room) string {
	var lines []string
	if len(v.mentions) > 0 {
		lines = append(lines, strings.Join(v.mentions, " "))
	}
	i := v.Incident
	lines = append(lines, slackInline(i.Verdict.Summary, r.summary))
	know := "confidence " + slackInline(i.Verdict.Confidence, 20)
	if m := deref(i.Verdict.Mechanism); m != "" {
		know += " · mechanism " + slackInline(m, 80)
	}
	know += " · " + condition(v.Notice)
	if v.Delayed > 0 {
		know += " · this notice was delayed " + waited(v.Delayed)
	}
	return strings.TrimSpace(strings.Join(append(lines, "_"+know+"_"), "\n"))
}

func (v slackView) fields(r room) []slackText {
	var out []slackText
	add := func(name, value string) {
		if value != "" && len(out) < slackMaxFields {
			out = append(out, mrkdwn("*"+name+"*\n"+slackInline(value, r.field)))
		}
	}
	i := v.Incident
	if o := firstNumbers(i.OOM); o != nil {
		add("Tried / free / total", sizesText(o.TriedBytes, o.FreeBytes, o.TotalBytes))
	}
	add("KV cache", kvText(i.KVCache))
	add("Token budget", flagText(i.Engine, "max-num-batched-tokens"))
	add("GPU memory utilization", flagText(i.Engine, "gpu-memory-utilization"))
	add(engineTitle(i.Engine), deref(i.Engine.Version))
	add("Failed", ranksText(i.Ranks, i.Phase))
	return out
}

// firstNumbers is the failed allocation of the earliest rank that printed one.
func firstNumbers(list []matcher.OOM) *matcher.OOM {
	for k := range list {
		if !list[k].Masked {
			return &list[k]
		}
	}
	return nil
}

func kvText(k *matcher.KVCache) string {
	if k == nil || k.UsagePct == nil {
		return ""
	}
	s := strconv.FormatFloat(*k.UsagePct, 'f', 1, 64) + " % used"
	if k.Running != nil && k.Waiting != nil {
		s += fmt.Sprintf(", %d running, %d waiting", *k.Running, *k.Waiting)
	}
	return s
}

func flagText(e matcher.Engine, name string) string {
	f, ok := e.Flags[name]
	if !ok {
		return ""
	}
	if f.Basis == "default" {
		return f.Value + " (default)"
	}
	return f.Value
}

// sizesText puts sizes beside each other, "?" for one that was not printed.
func sizesText(sizes ...*int64) string {
	out := make([]string, len(sizes))
	known := false
	for k, n := range sizes {
		out[k] = "?"
		if n != nil {
			out[k], known = bytesText(*n), true
		}
	}
	if !known {
		return ""
	}
	return strings.Join(out, " / ")
}

func engineTitle(e matcher.Engine) string {
	if name := oneLine(e.Name); name != "" && name != "vllm" {
		return slackInline(name, 40)
	}
	return "vLLM"
}

// ranksText counts the processes that failed, names the first, and says when in
// the life of the server it was.
func ranksText(ranks []matcher.Rank, phase string) string {
	var parts []string
	switch len(ranks) {
	case 0:
	case 1:
		parts = append(parts, ranks[0].Process)
	default:
		parts = append(parts, fmt.Sprintf("%d processes, first %s", len(ranks), ranks[0].Process))
	}
	switch phase {
	case "startup":
		parts = append(parts, "at start-up")
	case "runtime":
		parts = append(parts, "while serving")
	case "shutdown":
		parts = append(parts, "while stopping")
	}
	return strings.Join(parts, ", ")
}

// steps are at most three sections: a title, what to copy, one line of
// arithmetic. Each is complete by itself, so the later ones are alternatives.
func (v slackView) steps(r room) []string {
	var out []string
	for k, rem := range v.Incident.Remedies[:min(len(v.Incident.Remedies), r.steps)] {
		s := fmt.Sprintf("*%d. %s*", k+1, slackInline(rem.Title, 150))
		if lines := changesWith(rem, " \\\n"); len(lines) > 0 {
			s += "\n" + slackFence(strings.Join(lines, "\n"), r.step)
		}
		var why []string
		for _, w := range []string{sizesLine(rem), reasonLine(rem)} {
			if w != "" {
				why = append(why, slackInline(w, r.step/2))
			}
		}
		if len(why) > 0 {
			s += "\n" + strings.Join(why, ". ")
		}
		switch k {
		case 0:
			s = "*Do this first*\n" + s
		case 1:
			s = "*If that cannot be done, one of these*\n" + s
		}
		out = append(out, s)
	}
	return out
}

func (v slackView) doNot(r room) string {
	var lines []string
	for _, d := range v.Incident.DoNot[:min(len(v.Incident.DoNot), 2)] {
		because := sentences(d.Because, 1) // the first: the whole is in the thread
		lines = append(lines, "*Do not* "+slackInline(d.Change, r.field)+": "+slackInline(because, r.step/2))
	}
	return strings.Join(lines, "\n")
}

// evidence quotes the root's text, and then says what it is concluded from, each
// with its position.
func (v slackView) evidence(r room) string {
	i := v.Incident
	var parts []string
	if quote := v.rootQuote(r); quote != "" {
		title := "*The log says*"
		if at := position(v.Sources, i.Root.At); at != "" {
			title += " (" + slackInline(at, 80) + ")"
		}
		parts = append(parts, title+"\n"+slackFence(quote, r.quote+120))
	}
	var lines []string
	for _, e := range decisive(i.Evidence, r.quotes-1) {
		text := strings.TrimRight(oneLine(e.Statement), ".")
		if f := oneLine(deref(e.Formula)); f != "" {
			text += ": " + f
		}
		tail := ""
		if len(e.At) > 0 {
			tail = slackInline(position(v.Sources, &e.At[0]), 80)
		}
		if e.Grade != "" && e.Grade != matcher.Established {
			tail = strings.TrimLeft(tail+", "+slackInline(string(e.Grade), 20), ", ")
		}
		if tail != "" {
			tail = " _(" + tail + ")_"
		}
		lines = append(lines, "• "+slackInline(text, r.quote)+tail)
	}
	if len(lines) > 0 {
		parts = append(parts, "*Because*\n"+strings.Join(lines, "\n"))
	}
	return strings.Join(parts, "\n")
}

// rootQuote is the head of the root's text, at most three lines.
func (v slackView) rootQuote(r room) string {
	var lines []string
	for line := range strings.SplitSeq(v.Incident.Root.Text, "\n") {
		if line = oneLine(line); line != "" && len(lines) < 3 {
			lines = append(lines, cut(line, r.quote))
		}
	}
	return strings.Join(lines, "\n")
}

// decisive picks at most n statements, in their order: up to half of them that
// come with arithmetic, which convince most, then the first of the others.
func decisive(list []matcher.Evidence, n int) []matcher.Evidence {
	picked := make([]bool, len(list))
	take := func(most int, want func(matcher.Evidence) bool) {
		for k, e := range list {
			if most > 0 && !picked[k] && oneLine(e.Statement) != "" && want(e) {
				picked[k], most, n = true, most-1, n-1
			}
		}
	}
	take((n+1)/2, func(e matcher.Evidence) bool { return deref(e.Formula) != "" })
	take(n, func(e matcher.Evidence) bool { return deref(e.Formula) == "" })
	take(n, func(matcher.Evidence) bool { return true })
	var out []matcher.Evidence
	for k, e := range list {
		if picked[k] {
			out = append(out, e)
		}
	}
	return out
}

func (v slackView) context(r room) []slackText {
	i := v.Incident
	var out []slackText
	add := func(s string) {
		if s != "" && len(out) < slackMaxElements {
			out = append(out, mrkdwn(s))
		}
	}
	add("incident " + slackInline(i.ID, 64) + " · " + plural(max(i.Occurrences, 1), "occurrence", "occurrences"))
	add(slackInline(seenText(v.Notice), r.context))
	if v.tool.Version != "" {
		add("diagnose " + slackInline(v.tool.Version, 40) + ", catalogue " + slackInline(v.tool.Catalog, 40))
	}
	if len(i.Missing) > 0 {
		add("not known: " + slackInline(i.Missing[0], r.context))
	}
	if len(i.References) > 0 {
		add("see " + slackInline(strings.Join(i.References[:min(len(i.References), 4)], ", "), r.context))
	}
	return out
}

// seenText says when, as far as the log gives it, and when it was noticed.
func seenText(n Notice) string {
	t := n.Incident.Time
	var parts []string
	switch {
	case t.First != nil && t.Last != nil && *t.First != *t.Last:
		parts = append(parts, "first "+*t.First+", last "+*t.Last)
	case t.First != nil:
		parts = append(parts, "at "+*t.First)
	case n.Printed != "":
		parts = append(parts, "log time "+n.Printed)
	}
	if !n.Time.IsZero() {
		parts = append(parts, "noticed "+n.Time.UTC().Format(time.RFC3339))
	}
	return strings.Join(parts, ", ")
}

// SlackPayload is the message about an incident in the JSON that Slack's Block
// Kit builder reads. It needs no sink.
func SlackPayload(n Notice, tool matcher.Tool) ([]byte, error) {
	return json.MarshalIndent(slackView{Notice: prepare(n), tool: tool}.build(), "", "  ")
}
