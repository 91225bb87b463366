package notify

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"diagnose/notify/slacktest"
)

func TestSlackEscape(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"channel", "<!channel> died", "&lt;!channel&gt; died"},
		{"link", "<https://evil|click>", "&lt;https://evil|click&gt;"},
		{"ampersand first", "&lt;!here&gt;", "&amp;lt;!here&amp;gt;"},
		{"bare word", "ping @channel and @HERE", "ping @\u2060channel and @\u2060HERE"},
		{"address", "a@b.example", "a@b.example"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := slackEscape(c.in); got != c.want {
				t.Errorf("want %q, got %q", c.want, got)
			}
		})
	}
}

func TestSlackFence(t *testing.T) {
	long := strings.Repeat("line with <angle> & ```fence```\n", 300)
	got := slackFence(long, 500)
	if len(got) > 500 {
		t.Errorf("%d bytes", len(got))
	}
	if strings.Count(got, "```") != 2 || !strings.HasPrefix(got, "```\n") || !strings.HasSuffix(got, "\n```") {
		t.Errorf("fence not closed: %q", got)
	}
	if !strings.Contains(got, "more lines") {
		t.Errorf("the cut is not marked: %q", got)
	}
}

func TestSlackMention(t *testing.T) {
	for id, want := range map[string]string{
		"U012ABC": "<@U012ABC>", "W012ABC": "<@W012ABC>", "S012ABC": "<!subteam^S012ABC>", "here": "<!here>",
		"channel": "<!channel>", "": "", "maria": "", "U1>|x": "", "U": "", "<!here>": "",
	} {
		if got := slackMention(id); got != want {
			t.Errorf("slackMention(%q): want %q, got %q", id, want, got)
		}
	}
}

func TestSlackTextFormsNoMarkup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("<>&!@#|`^chanelr \nhevyo"))).Draw(t, "s")
		n := rapid.IntRange(20, 200).Draw(t, "n")
		for _, out := range []string{slackInline(s, n), slackFence(s, n)} {
			if pages := slacktest.Pages(out, ""); len(pages) > 0 {
				t.Fatalf("%q gives %q with %q", s, out, pages)
			}
			if len(out) > n {
				t.Fatalf("%d bytes, at most %d", len(out), n)
			}
		}
	})
}
