package notify

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "a b\tc\nd", "a b\tc\nd"},
		{"colour", "\x1b[31mred\x1b[0m", "red"},
		{"title", "\x1b]0;owned\x07text", "text"},
		{"title ended by ST", "\x1b]0;owned\x1b\\text", "text"},
		{"open title keeps the next line", "\x1b]0;owned\ntext", "\ntext"},
		{"clear screen", "a\x1bcb", "ab"},
		{"C1 CSI", "a\u009b31mb", "ab"},
		{"nul and bell", "a\x00\x07b", "ab"},
		{"bidi", "a\u202eb\u2066c", "abc"},
		{"zero width", "@\u200bchannel", "@channel"},
		{"tags", "a\U000E0041b", "ab"},
		{"carriage return", "10%\r20%\r\nend", "10%\n20%\nend"},
		{"line separator", "a\u2028b", "a\nb"},
		{"broken UTF-8", "a\xffb", "a\uFFFDb"},
		{"trailing escape", "a\x1b", "a"},
		{"other scripts stay", "日本語 é 😀", "日本語 é 😀"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := clean(c.in); got != c.want {
				t.Errorf("clean(%q): want %q, got %q", c.in, c.want, got)
			}
		})
	}
}

func TestCleanIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := clean(string(rapid.SliceOf(rapid.SampledFrom([]byte("a\x1b[]0;m\x07\n\r\x00\x9b\xc2\xe2\x80\xae\\"))).Draw(t, "s")))
		if !utf8.ValidString(s) {
			t.Fatalf("invalid UTF-8: %q", s)
		}
		if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Fatalf("control character: %q", s)
		}
		if clean(s) != s {
			t.Fatalf("not stable: %q, %q", s, clean(s))
		}
	})
}

func TestCutLines(t *testing.T) {
	for _, c := range []struct {
		name, in string
		limit    int
		want     string
	}{
		{"fits", "a\nb", 10, "a\nb"},
		{"whole lines", "1234567\n1234567\n1234567\n1234567\n1234567", 32, "1234567\n… 4 more lines"},
		{"one long line", strings.Repeat("x", 50), 10, "xxxxxxx…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := cutLines(c.in, c.limit); got != c.want {
				t.Errorf("want %q, got %q", c.want, got)
			}
		})
	}
}

func TestCutsKeepTheirLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("ab\n<é日😀`&"))).Draw(t, "s")
		n := rapid.IntRange(0, 60).Draw(t, "n")
		for name, got := range map[string]string{"cut": cut(s, n), "cutLines": cutLines(s, n), "inline": slackInline(s, n)} {
			if len(got) > n || !utf8.ValidString(got) {
				t.Fatalf("%s(%q, %d) = %q", name, s, n, got)
			}
		}
	})
}
