package notify

import (
	"encoding/json"
	"strings"
	"testing"

	"diagnose/matcher"
	"diagnose/notify/slacktest"

	"pgregory.net/rapid"
)

func TestSlackMessageGolden(t *testing.T) {
	bot := newTestBot(t, &slacktest.Server{})
	for _, c := range []struct {
		name   string
		notice func() Notice
	}{
		{"opened", func() Notice { return sampleNotice(EventOpened) }},
		{"recovered", func() Notice {
			n := sampleNotice(EventFollowup)
			n.Incident.Occurrences = 13
			n.Incident.Followup = &matcher.Followup{RestartedAt: ptr("2026-11-30T14:10:00Z"), ChangesMade: []string{"--max-num-batched-tokens 16384"}, HeldSince: ptr("2026-11-30T15:10:00Z")}
			return n
		}},
		{"withheld", func() Notice {
			n := sampleNotice(EventOpened)
			n.Incident.Verdict.Confidence = "low"
			n.Incident = Withhold(n.Incident, "medium")
			return n
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := bot.Preview(c.notice())
			if err != nil {
				t.Fatal(err)
			}
			if err := Validate(got); err != nil {
				t.Error(err)
			}
			golden(t, "slack-"+c.name+".json", append(got, '\n'))
		})
	}
}

func TestSlackFallbackLine(t *testing.T) {
	v := slackView{Notice: sampleNotice(EventOpened)}
	want := "GPU OOM (workspace) · GLM-5.2-FP8 · node17. Worker_TP0 died of a GPU OOM: the sparse decode kernel asked for 8.00 GiB of workspace and 6.40 GiB were free. The KV cache was 5.4 % full, so this is no KV pressure. Do first: Halve the token budget and pin the KV cache. [9f86d081884c]"
	if got := v.fallback(); got != want {
		t.Errorf("\nwant %s\ngot  %s", want, got)
	}
}

// The notification on a lock screen shows about 180 characters: whole sentences
// stand in it.
func TestSlackFallbackKeepsWholeSentences(t *testing.T) {
	n := sampleNotice(EventOpened)
	n.Incident.Remedies = nil
	n.Incident.Verdict.Summary = "A step of 8.00 GiB failed. " + strings.Repeat("More about it, e.g. this. ", 20)
	want := "GPU OOM (workspace) · GLM-5.2-FP8 · node17. A step of 8.00 GiB failed. More about it, e.g. this. More about it, e.g. this. More about it, e.g. this. More about it, e.g. this. More about it, e.g. this. More about it, e.g. this. [9f86d081884c]"
	if got := (slackView{Notice: n}).fallback(); got != want {
		t.Errorf("\nwant %s\ngot  %s", want, got)
	}
}

func TestSentences(t *testing.T) {
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"", 10, ""},
		{"One. Two.", 100, "One. Two."},
		{"One. Two.", 1, "One."},
		{"One. Two. Three.", 9, "One. Two."},
		{"One. Two. Three.", 8, "One."},
		{"8.00 GiB of 9.5 GiB. Done.", 5, "8.00 GiB of 9.5 GiB."},
		{"See e.g. this one. Done.", 5, "See e.g. this one."},
		{"no end", 3, "no end"},
		{"One.\n\nTwo.", 1, "One."},
	} {
		if got := sentences(c.text, c.limit); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.text, c.limit, got, c.want)
		}
	}
}

// Of many statements those with arithmetic are shown, but not they alone, and in
// the order of the report.
func TestSlackShowsWhatDecides(t *testing.T) {
	var list []matcher.Evidence
	for k := range 9 {
		e := matcher.Evidence{Statement: string(rune('a' + k))}
		if k >= 4 {
			e.Formula = ptr("1 + 1 = 2")
		}
		list = append(list, e)
	}
	for _, c := range []struct {
		n    int
		want string
	}{{5, "abefg"}, {2, "ae"}, {1, "e"}, {0, ""}, {20, "abcdefghi"}} {
		got := ""
		for _, e := range decisive(list, c.n) {
			got += e.Statement
		}
		if got != c.want {
			t.Errorf("%d: %q, want %q", c.n, got, c.want)
		}
	}
}

func TestSlackSaysSizesBesideTheCommand(t *testing.T) {
	n := sampleNotice(EventOpened)
	n.Incident.Remedies[0].Set["--kv-cache-memory-bytes"] = "128228396105"
	steps := slackView{Notice: n}.steps(rooms()[0])
	want := "--max-num-batched-tokens 16384 \\\n--kv-cache-memory-bytes 128228396105\n```\n128228396105 bytes = 119.42 GiB. "
	if !strings.Contains(steps[0], want) {
		t.Errorf("%q", steps[0])
	}
}

// largest is an incident with every string and list at its worst.
func largest(fill string) Notice {
	n := sampleNotice(EventOpened)
	long := func() string { return strings.Repeat(fill, 1+20000/len(fill)) }
	i := &n.Incident
	*i = mapStrings(*i, func(string) string { return long() })
	i.ID, i.Verdict.Class, i.Phase = "9f86d081884c", "workspace", "runtime"
	i.Engine.Flags = sample().Engine.Flags
	i.Remedies[0].Set = map[string]string{"--compilation-config": long(), "--speculative-config": long(), "env:X": long()}
	for len(i.Remedies) < 40 {
		i.Remedies, i.Evidence, i.DoNot = append(i.Remedies, i.Remedies[0]), append(i.Evidence, i.Evidence[0]), append(i.DoNot, i.DoNot[0])
		i.Missing, i.References, i.Ranks = append(i.Missing, long()), append(i.References, long()), append(i.Ranks, i.Ranks[0])
	}
	n.Sources = []string{long()}
	n.Hints.Mentions = []string{"here", "S012345"}
	return n
}

func TestSlackMessageKeepsEveryLimit(t *testing.T) {
	bot := newTestBot(t, &slacktest.Server{})
	for _, fill := range []string{"x", "word ", "<", "&", "`", "\"", "\\", "\n", "é", "日", "😀", "line\n", "<!channel> ", "\x00", "\xff"} {
		t.Run(fill, func(t *testing.T) {
			got, err := bot.Preview(largest(fill))
			if err != nil {
				t.Fatal(err)
			}
			var m struct{ Blocks json.RawMessage }
			if err := json.Unmarshal(got, &m); err != nil {
				t.Fatal(err)
			}
			if len(m.Blocks) == 0 {
				t.Error("fell back to plain text")
			}
			compact, _ := json.Marshal(m.Blocks)
			if word := slacktest.Limits("x", string(compact)); word != "" {
				t.Error(word)
			}
		})
	}
}

func TestSlackMessageKeepsEveryLimitRandom(t *testing.T) {
	bot := newTestBot(t, &slacktest.Server{})
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("a <>&`\n\"日😀*_~@")), 0, 4000, -1), 1, 4).Draw(t, "texts")
		k := 0
		n := sampleNotice(EventUpdated)
		n.Incident = mapStrings(n.Incident, func(string) string { k++; return texts[k%len(texts)] })
		n.Incident.ID = "9f86d081884c"
		got, err := bot.Preview(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := Validate(got); err != nil {
			t.Fatal(err)
		}
		var m struct {
			Text   string
			Blocks json.RawMessage
		}
		_ = json.Unmarshal(got, &m)
		if word := slacktest.Limits(m.Text, string(m.Blocks)); word != "" && !strings.HasPrefix(word, "msg_blocks_too_long") {
			t.Fatal(word) // the preview is indented: its total is checked by Validate
		}
	})
}

func TestValidate(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	blocks := func(b ...slackBlock) slackMessage { return slackMessage{Text: "t", Blocks: b} }
	many := make([]slackBlock, 51)
	for i := range many {
		many[i] = section("x")
	}
	for _, c := range []struct {
		name string
		m    slackMessage
		want string
	}{
		{"fine", blocks(section(long(3000))), ""},
		{"no text", slackMessage{Blocks: []slackBlock{section("x")}}, "text: empty"},
		{"header", blocks(slackBlock{Type: "header", Text: plainText(long(151))}), "blocks[0].text: 151 exceeds 150"},
		{"section", blocks(section(long(3001))), "blocks[0].text: 3001 exceeds 3000"},
		{"surrogates count double", blocks(slackBlock{Type: "header", Text: plainText(strings.Repeat("😀", 76))}), "blocks[0].text: 152 exceeds 150"},
		{"empty section", blocks(section("")), "blocks[0].text: empty"},
		{"fields", blocks(slackBlock{Type: "section", Fields: make([]slackText, 0, 11)}), ""},
		{"long field", blocks(slackBlock{Type: "section", Fields: []slackText{mrkdwn(long(2001))}}), "blocks[0].fields[0]: 2001 exceeds 2000"},
		{"blocks", slackMessage{Text: "t", Blocks: many}, "blocks: 51 exceeds 50"},
		{"total", blocks(section(long(3000)), section(long(3000)), section(long(3000)), section(long(3000)), section(long(3000))), "all blocks together: 15351 exceeds 13200"},
		{"two at once", slackMessage{Text: long(4001), Blocks: []slackBlock{section("")}}, "text: 4001 exceeds 4000\nblocks[0].text: empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, _ := json.Marshal(c.m)
			got := ""
			if err := Validate(raw); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("want %q, got %q", c.want, got)
			}
		})
	}
	if Validate([]byte("{")) == nil {
		t.Error("broken JSON passes")
	}
}

func TestSlackDetails(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"short", "one line"},
		{"long", strings.Repeat("a line of some length with <angles> & more\n", 300)},
		{"one huge line", strings.Repeat("<", 9000)},
		{"fences", strings.Repeat("```\n", 2000)},
		{"beyond the last reply", strings.Repeat("x\n", 60000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			list := slackDetails("id", c.text)
			if len(list) == 0 || len(list) > slackMaxReplies {
				t.Fatalf("%d replies", len(list))
			}
			var whole strings.Builder
			for _, m := range list {
				if err := m.validate(); err != nil {
					t.Fatal(err)
				}
				body := strings.TrimSuffix(strings.TrimPrefix(m.Blocks[0].Text.Text, "```\n"), "\n```")
				if strings.Contains(body, "```") {
					t.Fatal("a fence inside")
				}
				whole.WriteString(body)
			}
			strip := strings.NewReplacer("\n", "", "`", "'")
			if len(list) < slackMaxReplies && strip.Replace(whole.String()) != strip.Replace(slackCode(c.text)) {
				t.Error("text is lost")
			}
			if len(list) == slackMaxReplies && !strings.Contains(whole.String(), "lines not shown here") {
				t.Error("the loss is not said")
			}
		})
	}
	if list := slackDetails("id", " \n "); len(list) != 0 {
		t.Errorf("nothing gives %d replies", len(list))
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{
		"16384": "16384", "": "''", "a b": "'a b'", "$(reboot)": "'$(reboot)'", "it's": `'it'\''s'`, "a\nb": "'a b'", `{"a":1}`: `'{"a":1}'`,
	} {
		if got := shellQuote(in); got != want {
			t.Errorf("shellQuote(%q): want %s, got %s", in, want, got)
		}
	}
}

func TestChanges(t *testing.T) {
	r := matcher.Remedy{
		Set:   map[string]string{"--b": "2", "--a": "", "env:X_Y": "1 2", "; rm -rf /": "x", "--c d": "x"},
		Unset: []string{"--gone", "env:OLD", "; evil"}, UpgradeTo: ptr("0.29.1"),
	}
	want := "--a --b 2\nexport X_Y='1 2'\nremove --gone\nunset OLD\nupgrade vLLM to 0.29.1"
	if got := strings.Join(changes(r), "\n"); got != want {
		t.Errorf("want\n%s\ngot\n%s", want, got)
	}
}
