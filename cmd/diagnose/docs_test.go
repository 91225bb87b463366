package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// top is the root of the tree, seen from this package.
const top = "../.."

// section holds what stands between two marker lines of a file against what
// belongs there, or writes it.
func section(t *testing.T, file, begin, end, want string) {
	t.Helper()
	file = filepath.Join(top, file)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	from := strings.Index(text, begin)
	if from < 0 {
		t.Fatalf("%s: no line %q", file, begin)
	}
	from += strings.IndexByte(text[from:], '\n') + 1
	to := strings.Index(text[from:], end)
	if to < 0 {
		t.Fatalf("%s: no line %q", file, end)
	}
	to += from
	if *update {
		if err := os.WriteFile(file, []byte(text[:from]+want+text[to:]), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(text[from:to], want); diff != "" {
		t.Errorf("%s, below %q (-file +program); -update writes it:\n%s", file, begin, diff)
	}
}

// TestReadmeScreen: the diagnosis shown is what the program prints today.
func TestReadmeScreen(t *testing.T) {
	r := call(t, "", "--width", "80", fixtures+"/seed/glm52-8xh200.log")
	screen, _, found := strings.Cut(r.out, "\nfurther steps")
	if !found {
		t.Fatalf("the answer has no further steps:\n%s", r.out)
	}
	section(t, "README.md", "<!-- begin screen", "<!-- end screen -->", "\n```text\n"+screen+"```\n\n")
}

// TestReadmeCommands: every command of the README stands in a script that runs
// it; what feeds it through a pipe is left out there, and the service's own
// configuration, which is that of packaging/, is held by other tests.
func TestReadmeCommands(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join("testdata", "script", "readme.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	ran := strings.Split(string(script), "\n")
	fenced := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	seen := 0
	for _, f := range fenced {
		for _, line := range strings.Split(strings.TrimSpace(f[1]), "\n") {
			_, command, found := strings.Cut(" "+strings.Replace(line, "go run ./cmd/diagnose", "diagnose", 1), " diagnose ")
			if !found {
				continue // ./test, or another program
			}
			command, _, _ = strings.Cut(command, " #")
			if command = strings.TrimSpace(command); strings.Contains(command, "/etc/") {
				continue
			}
			seen++
			// In a script a redirection is a copy in the next line.
			command, target, redirected := strings.Cut(command, " > ")
			at := slices.IndexFunc(ran, func(l string) bool {
				l, _, _ = strings.Cut(l, " &")
				return (strings.HasPrefix(l, "exits ") || strings.HasPrefix(l, "exec ")) && strings.HasSuffix(l, " diagnose "+command)
			})
			if at < 0 {
				t.Errorf("readme.txtar does not run %q", "diagnose "+command)
			} else if redirected && ran[at+1] != "cp stdout "+target {
				t.Errorf("readme.txtar does not write %q to %s", "diagnose "+command, target)
			}
		}
	}
	if seen < 5 {
		t.Errorf("%d commands found in the README", seen)
	}
}

// TestManPage: the page has the options and commands of the program.
func TestManPage(t *testing.T) {
	root := (&app{}).rootCommand()
	root.InitDefaultHelpFlag()
	root.InitDefaultCompletionCmd()
	const file = "packaging/diagnose.1"
	section(t, file, `.\" begin options`, `.\" end options`, manFlags(root))
	section(t, file, `.\" begin commands`, `.\" end commands`, manCommands(root))
}

func manCommands(c *cobra.Command) string {
	var b strings.Builder
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.Name() == "help" {
			continue
		}
		if sub.HasAvailableSubCommands() && sub.Name() != "completion" {
			b.WriteString(manCommands(sub))
			continue
		}
		use := strings.TrimPrefix(sub.UseLine(), "diagnose ")
		if sub.Name() == "completion" {
			use = "completion bash|fish|powershell|zsh"
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s.\n", roff(use), roff(sub.Short))
		if flags := manFlags(sub); flags != "" {
			fmt.Fprintf(&b, ".RS\n%s.RE\n", flags)
		}
	}
	return b.String()
}

func manFlags(c *cobra.Command) string {
	var b strings.Builder
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" && c.HasParent() {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + strings.ToUpper(strings.TrimSuffix(kind, "Array"))
		}
		fmt.Fprintf(&b, ".TP\n.B %s\n%s.\n", roff(name), roff(strings.ToUpper(usage[:1])+usage[1:]))
	})
	return b.String()
}

// roff escapes text; a dash that is typed must be a dash when it is copied.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// TestNotice: every module that this test binary contains, and so every one
// that the program contains, is named with its licence.
func TestNotice(t *testing.T) {
	notice, err := os.ReadFile(filepath.Join(top, "NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Deps) == 0 {
		t.Skip("this binary does not say what it contains")
	}
	for _, m := range info.Deps {
		if !regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(m.Path) + ` +\S`).Match(notice) {
			t.Errorf("NOTICE does not name %s", m.Path)
		}
	}
}
