package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"

	"diagnose/matcher"
	"diagnose/matcher/catalog"

	"github.com/spf13/cobra"
)

func (a *app) explainCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "explain MECHANISM", Short: "One mechanism in full, offline", Args: cobra.ExactArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			cat, _ := (&app{err: io.Discard}).knowledge(dir)
			if cat == nil {
				return nil, cobra.ShellCompDirectiveError
			}
			var ids []string
			for _, e := range cat.Entries {
				ids = append(ids, e.ID+"\t"+e.Title)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cat, err := a.knowledge(dir)
			if err != nil {
				return err
			}
			e := cat.Entry(args[0])
			if e == nil {
				return withHint(fmt.Errorf("no mechanism %q", args[0]), nearest(cat, args[0]))
			}
			_, err = fmt.Fprint(a.out, matcher.ExplainText(cat, e))
			return err
		},
	}
	overlayFlag(cmd.Flags(), &dir)
	return cmd
}

// nearest names mechanisms whose id shares a word with what was typed.
func nearest(cat *matcher.Catalog, typed string) string {
	var near []string
	for _, e := range cat.Entries {
		for _, word := range strings.FieldsFunc(typed, func(r rune) bool { return r == '-' || r == '_' || r == ' ' }) {
			if len(word) > 2 && strings.Contains(e.ID, strings.ToLower(word)) {
				near = append(near, e.ID)
				break
			}
		}
	}
	if len(near) == 0 {
		return `"diagnose catalog list" names all of them`
	}
	return "did you mean " + strings.Join(near[:min(len(near), 4)], ", ") + "?"
}

func (a *app) catalogCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "catalog", Short: "The knowledge: list it, prove it", Args: cobra.NoArgs, RunE: showHelp}
	cmd.AddCommand(a.catalogList(), a.catalogTest(), a.catalogNew(), a.catalogNames(), a.catalogDoc())
	return cmd
}

func (a *app) catalogList() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "list", Short: "All mechanisms with class and title", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cat, err := a.knowledge(dir)
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
			for _, e := range cat.Entries {
				role := ""
				if e.Role != "failure" {
					role = " (" + e.Role + ")"
				}
				fmt.Fprintf(w, "%s\t%s%s\t%s\n", e.ID, e.Class, role, e.Title)
			}
			return w.Flush()
		},
	}
	overlayFlag(cmd.Flags(), &dir)
	return cmd
}

// mechanismID is what an id may look like; ids are for ever.
var mechanismID = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (a *app) catalogNew() *cobra.Command {
	return &cobra.Command{
		Use: "new ID", Short: "A scaffold for a new mechanism, to standard output", Args: cobra.ExactArgs(1),
		Example: "  diagnose catalog new my-kernel-scratch > catalog.d/my-kernel-scratch.yaml\n  diagnose catalog test catalog.d",
		RunE: func(_ *cobra.Command, args []string) error {
			if !mechanismID.MatchString(args[0]) {
				return withHint(fmt.Errorf("id %q is not lower-case words joined by hyphens", args[0]), "as in my-kernel-scratch")
			}
			// With its output in matcher/catalog, "go run" builds the empty file in:
			// what is wrong with the knowledge is no matter here.
			if cat, _ := matcher.EmbeddedCatalog(); cat != nil && cat.Entry(args[0]) != nil {
				printWarning(a.err, "%s is shipped already; an entry of yours replaces it", args[0])
			}
			_, err := fmt.Fprint(a.out, matcher.Scaffold(args[0]))
			return err
		},
	}
}

func (a *app) catalogNames() *cobra.Command {
	return &cobra.Command{
		Use: "names", Short: "What an entry's expressions and templates may use", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(a.out, matcher.NamesText())
			return err
		},
	}
}

func (a *app) catalogDoc() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "handbook", Short: "The whole knowledge as one Markdown document", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cat, err := a.knowledge(dir)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(a.out, matcher.Handbook(cat))
			return err
		},
	}
	overlayFlag(cmd.Flags(), &dir)
	return cmd
}

func (a *app) catalogTest() *cobra.Command {
	return &cobra.Command{
		Use: "test [DIR]", Short: "Run every mechanism's own samples against it", Args: cobra.MaximumNArgs(1),
		Long: "Loads the shipped knowledge, and a directory of entries over it if one is given,\nand runs every sample: those that must match and the near misses that must not.",
		RunE: func(_ *cobra.Command, args []string) error {
			cat, err := matcher.EmbeddedCatalog()
			if len(args) == 1 {
				if _, statErr := os.Stat(args[0]); statErr != nil {
					return fmt.Errorf("open catalogue: %w", statErr)
				}
				cat, err = matcher.LoadCatalog(catalog.FS, os.DirFS(args[0]))
			}
			if err != nil {
				return err
			}
			for _, id := range cat.Clashes {
				printWarning(a.err, "%s replaces the shipped mechanism of that name", id)
			}
			n, err := cat.TestSamples()
			if err != nil {
				return err
			}
			from := ""
			if len(args) == 1 {
				word := "mechanisms"
				if cat.Overlaid() == 1 {
					word = "mechanism"
				}
				from = fmt.Sprintf(" (%d %s from %s)", cat.Overlaid(), word, args[0])
			}
			_, err = fmt.Fprintf(a.out, "%d mechanisms, %d samples%s: all as expected\n", len(cat.Entries), n, from)
			return err
		},
	}
}
