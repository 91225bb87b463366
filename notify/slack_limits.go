package notify

import (
	"encoding/json"
	"fmt"
	"unicode/utf16"
)

// Block Kit's limits (docs.slack.dev/reference/block-kit/blocks). A message
// beyond one of them is refused whole, not cut.
const (
	slackMaxBlocks   = 50
	slackMaxHeader   = 150  // plain_text of a header
	slackMaxSection  = 3000 // text of a section
	slackMaxFields   = 10
	slackMaxField    = 2000
	slackMaxElements = 10 // of a context block
	// slackMaxElement is not documented; a context element is a text object,
	// whose own limit is 3000.
	slackMaxElement = 2000
	// slackMaxText is advised; beyond 40,000 Slack cuts.
	slackMaxText = 4000
	// slackMaxTotal is the undocumented limit on all blocks together, seen as
	// msg_blocks_too_long (slackapi/bolt-js#2509).
	slackMaxTotal = 13200
)

// slackMessage is a message in Slack's JSON, as webhooks take it and as the
// Block Kit builder reads it.
type slackMessage struct {
	Text   string       `json:"text"`
	Blocks []slackBlock `json:"blocks,omitempty"`
}

type slackBlock struct {
	Type     string      `json:"type"`
	Text     *slackText  `json:"text,omitempty"`
	Fields   []slackText `json:"fields,omitempty"`
	Elements []slackText `json:"elements,omitempty"`
}

type slackText struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Verbatim keeps Slack from making links and mentions of bare words.
	Verbatim bool `json:"verbatim,omitempty"`
}

func plainText(s string) *slackText { return &slackText{Type: "plain_text", Text: s} }

func mrkdwn(s string) slackText { return slackText{Type: "mrkdwn", Text: s, Verbatim: true} }

func section(s string) slackBlock {
	t := mrkdwn(s)
	return slackBlock{Type: "section", Text: &t}
}

// Validate checks a Slack payload, {"text": ..., "blocks": [...]}, against all
// limits and returns every violation, one a line. It is run before each send.
func Validate(payload []byte) error {
	var m slackMessage
	if err := json.Unmarshal(payload, &m); err != nil {
		return fmt.Errorf("slack payload: %w", err)
	}
	return m.validate()
}

func (m slackMessage) validate() error {
	var p problems
	check := func(what string, n, limit int) {
		if n > limit {
			p.add(fmt.Errorf("%s: %d exceeds %d", what, n, limit))
		}
	}
	text := func(what string, t slackText, limit int) {
		if t.Text == "" {
			p.add(fmt.Errorf("%s: empty", what))
		}
		check(what, units(t.Text), limit)
	}
	if m.Text == "" {
		p.add(fmt.Errorf("text: empty"))
	}
	check("text", units(m.Text), slackMaxText)
	check("blocks", len(m.Blocks), slackMaxBlocks)
	for i, b := range m.Blocks {
		at := fmt.Sprintf("blocks[%d]", i)
		check(at+".fields", len(b.Fields), slackMaxFields)
		check(at+".elements", len(b.Elements), slackMaxElements)
		if b.Text != nil {
			limit := slackMaxSection
			if b.Type == "header" {
				limit = slackMaxHeader
			}
			text(at+".text", *b.Text, limit)
		}
		for j, f := range b.Fields {
			text(fmt.Sprintf("%s.fields[%d]", at, j), f, slackMaxField)
		}
		for j, e := range b.Elements {
			text(fmt.Sprintf("%s.elements[%d]", at, j), e, slackMaxElement)
		}
	}
	if raw, err := json.Marshal(m.Blocks); err != nil {
		p.add(err)
	} else if len(m.Blocks) > 0 {
		check("all blocks together", len(raw), slackMaxTotal)
	}
	return p.err()
}

// units counts as Slack's clients do, in UTF-16.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
