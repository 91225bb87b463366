package matcher

import (
	"fmt"
	"strings"
)

// ExplainText gives everything an entry knows, as a page for a reader without
// the kernel in mind. It is the source of `diagnose explain` and of the
// handbook.
func ExplainText(c *Catalog, e *Entry) string {
	var b strings.Builder
	title := e.Title
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", e.ID, title)
	fmt.Fprintf(&b, "class %s, family %s", e.Class, FamilyOf(e.Class))
	if e.Role != "failure" {
		fmt.Fprintf(&b, ", %s", e.Role)
	}
	if len(e.Also) > 0 {
		fmt.Fprintf(&b, ", also %s", strings.Join(e.Also, ", "))
	}
	b.WriteString("\n\n")
	section(&b, "What happens", e.Explain)
	section(&b, "Mistaken for", e.Mistaken)
	explainSignature(&b, e)
	explainDemand(&b, e.Demand)
	explainVersions(&b, e.Versions)
	explainSteps(&b, c, e)
	if len(e.Verify) > 0 {
		b.WriteString("## How to verify\n\n")
		for _, v := range e.Verify {
			fmt.Fprintf(&b, "- %s\n", oneParagraph(v.Source()))
		}
		b.WriteString("\n")
	}
	if len(e.Refs) > 0 {
		fmt.Fprintf(&b, "## References\n\n%s\n", strings.Join(e.Refs, ", "))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func section(b *strings.Builder, title, text string) {
	if strings.TrimSpace(text) != "" {
		fmt.Fprintf(b, "## %s\n\n%s\n\n", title, strings.TrimSpace(text))
	}
}

func oneParagraph(s string) string { return strings.Join(strings.Fields(s), " ") }

func explainSignature(b *strings.Builder, e *Entry) {
	if len(e.Match.Signatures) == 0 {
		return
	}
	b.WriteString("## How it is recognised\n\n")
	for _, s := range e.Match.Signatures {
		var parts []string
		add := func(label string, list []string) {
			if len(list) > 0 {
				parts = append(parts, label+" `"+strings.Join(list, "`, `")+"`")
			}
		}
		add("a frame of", s.FramesAny)
		add("all frames of", s.FramesAll)
		add("no frame of", s.FramesNone)
		add("exception", s.Exceptions)
		add("text", s.Texts)
		add("all of the texts", s.TextsAll)
		add("message family", s.Forms)
		if s.OOM != "" {
			parts = append(parts, "out of memory: "+s.OOM)
		}
		if s.Phase != "" {
			parts = append(parts, "at "+s.Phase)
		}
		if s.Requires != nil {
			parts = append(parts, "only if "+s.Requires.String())
		}
		fmt.Fprintf(b, "- %s (confidence %s)\n", strings.Join(parts, "; "), confidenceWord(s.Confidence))
	}
	for _, v := range e.Match.Vetoes {
		fmt.Fprintf(b, "- not if %s: %s\n", v.When.String(), v.Because)
	}
	b.WriteString("\n")
}

func explainDemand(b *strings.Builder, d *Demand) {
	if d == nil {
		return
	}
	b.WriteString("## What one call needs beyond the profile\n\n")
	for _, p := range d.Parts {
		fmt.Fprintf(b, "- %s: %s bytes\n", p.Name, p.Bytes.String())
	}
	if d.Source != "" {
		fmt.Fprintf(b, "\nSource: %s\n", oneParagraph(d.Source))
	}
	for _, c := range d.Coincidences {
		fmt.Fprintf(b, "\nBeware: %s\n", oneParagraph(c))
	}
	b.WriteString("\n")
}

func explainVersions(b *strings.Builder, list []VersionState) {
	if len(list) == 0 {
		return
	}
	b.WriteString("## Versions\n\n")
	for _, v := range list {
		by := ""
		if v.By != "" {
			by = " (" + v.By + ")"
		}
		fmt.Fprintf(b, "- %s: %s%s; %s\n", v.Range.Text, v.State, by, oneParagraph(v.Certainty))
	}
	b.WriteString("- any other release: unknown\n\n")
}

func explainSteps(b *strings.Builder, c *Catalog, e *Entry) {
	if len(e.Remedies) > 0 {
		b.WriteString("## What to do, in this order\n\n")
	}
	for i, spec := range e.Remedies {
		r := c.remedy(spec)
		fmt.Fprintf(b, "%d. %s", i+1, oneParagraph(r.Title.Source()))
		var sets []string
		for flag, fig := range r.Set {
			sets = append(sets, fmt.Sprintf("`%s` = %s", flag, fig.String()))
		}
		sortStrings(sets)
		if len(sets) > 0 {
			fmt.Fprintf(b, ": %s", strings.Join(sets, ", "))
		}
		if r.UpgradeTo != "" {
			fmt.Fprintf(b, ": vLLM %s", r.UpgradeTo)
		}
		fmt.Fprintf(b, " [%s]\n", orWords(r.Grade, "inferred"))
		if why := oneParagraph(r.Why.Source()); why != "" {
			fmt.Fprintf(b, "   %s\n", why)
		}
	}
	if len(e.Remedies) > 0 {
		b.WriteString("\n")
	}
	if len(e.DoNot) > 0 {
		b.WriteString("## What not to do\n\n")
		for _, spec := range e.DoNot {
			d := c.doNot(spec)
			fmt.Fprintf(b, "- %s: %s\n", oneParagraph(d.Change.Source()), oneParagraph(d.Because.Source()))
		}
		b.WriteString("\n")
	}
}
