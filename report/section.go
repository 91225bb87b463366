package report

import (
	"strconv"
	"strings"

	"diagnose/matcher"
)

func (v viewer) section(i matcher.Incident, note bool) section {
	title := ""
	if i.Verdict.Mechanism != nil {
		title = v.o.Titles[*i.Verdict.Mechanism]
	}
	s := section{
		ID:       word(i.ID),
		Headline: Headline(i, title),
		Unknown:  i.Verdict.Family == "unknown",
		Meta:     v.meta(i, title, note),
		Quote:    v.quote(i),
		Summary:  prose(i.Verdict.Summary),
		Load:     v.load(i.KVCache),
		After:    v.after(i),
	}
	if note {
		// Nothing has failed, so no word of an error.
		s.Headline = title
		if s.Headline == "" && i.Verdict.Mechanism != nil {
			s.Headline = *i.Verdict.Mechanism
		}
		s.Headline = prose(s.Headline)
		if s.Headline == "" {
			s.Headline = className(i.Verdict.Class)
		}
	}
	v.steps(&s, i)
	for _, n := range i.DoNot[:v.limit(len(i.DoNot), maxDoNot)] {
		s.DoNot = append(s.DoNot, reason{prose(n.Change), prose(n.Because)})
	}
	s.MoreNot = more(len(i.DoNot) - len(s.DoNot))
	for _, e := range i.Evidence[:v.limit(len(i.Evidence), maxEvidence)] {
		st := statement{Text: prose(e.Statement), Tag: v.tag(string(e.Grade), e.At)}
		if e.Formula != nil {
			st.Formula = prose(*e.Formula)
		}
		s.Why = append(s.Why, st)
	}
	addMore(&s.Why, len(i.Evidence))
	for _, r := range i.RuledOut[:v.limit(len(i.RuledOut), maxStatements)] {
		s.RuledOut = append(s.RuledOut, statement{Lead: className(r.Class), Text: prose(r.Because), Tag: v.tag("", r.At)})
	}
	addMore(&s.RuledOut, len(i.RuledOut))
	for _, c := range i.Contributing[:v.limit(len(i.Contributing), maxStatements)] {
		s.Worse = append(s.Worse, statement{Lead: className(c.Class), Text: prose(c.Statement), Tag: v.tag("", c.At)})
	}
	addMore(&s.Worse, len(i.Contributing))
	v.numbers(&s, i)
	for _, c := range i.Consequences[:v.limit(len(i.Consequences), maxLines)] {
		s.Consequences = append(s.Consequences, v.consequence(c))
	}
	if n := more(len(i.Consequences) - len(s.Consequences)); n != "" {
		s.Consequences = append(s.Consequences, n)
	}
	s.Verify = v.sentences(i.Verify)
	s.Missing = v.sentences(i.Missing)
	s.References = v.sentences(i.References)
	return s
}

// meta are the facts that stand under the headline.
func (v viewer) meta(i matcher.Incident, title string, note bool) []string {
	var m []string
	incident := ""
	if n := len(i.Ranks); n > 0 && !note {
		incident = counted(n, "rank") + ", one incident"
	}
	if i.ID != "" {
		incident = strings.TrimSpace(incident + " " + word(i.ID))
	}
	if incident != "" {
		m = append(m, incident)
	}
	if i.Verdict.Class != "" {
		m = append(m, "class "+word(i.Verdict.Class))
	}
	if i.Verdict.Confidence != "" {
		m = append(m, "confidence "+word(i.Verdict.Confidence))
	}
	if p := phaseName(i.Phase); p != "" {
		m = append(m, p)
	}
	if i.Engine.Version != nil {
		m = append(m, engineName(i.Engine.Name)+" "+word(*i.Engine.Version))
	}
	if i.Engine.Model != nil {
		m = append(m, word(*i.Engine.Model))
	}
	for _, place := range []struct {
		name  string
		value *string
	}{{"host", i.Host}, {"unit", i.Unit}, {"pod", i.Pod}, {"container", i.Container}} {
		if place.value != nil {
			m = append(m, place.name+" "+word(*place.value))
		}
	}
	if i.Time.First != nil {
		m = append(m, word(*i.Time.First))
	} else if t := i.PrintedTime(); t != "" {
		m = append(m, word(t))
	}
	switch {
	case i.RecurrenceOf != nil:
		m = append(m, "again: "+ordinal(i.Occurrences)+" time, first "+word(*i.RecurrenceOf))
	case i.Status == matcher.StatusHistoric:
		m = append(m, "historic")
	}
	if title != "" {
		m = append(m, "mechanism "+word(*i.Verdict.Mechanism))
	}
	return m
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

func engineName(name string) string {
	if name == "" || strings.EqualFold(name, "vllm") {
		return "vLLM"
	}
	return word(name)
}

func who(process string, gpu *int) string {
	name := word(process)
	if gpu == nil {
		return name
	}
	if name != "" {
		name += ", "
	}
	return name + "GPU " + strconv.Itoa(*gpu)
}

func (v viewer) steps(s *section, i matcher.Incident) {
	shown := i.Remedies[:v.limit(len(i.Remedies), maxSteps)]
	for n, r := range shown {
		st := step{
			N:       strconv.Itoa(n + 1),
			Title:   prose(r.Title),
			Grade:   gradeName(r.Grade),
			Command: Command(r),
			Sizes:   humanSizes(r),
			Why:     prose(r.Why),
			Expect:  prose(r.Expect),
			Costs:   prose(r.Costs),
			Refs:    prose(strings.Join(unsaid(r.Refs, r.Why), ", ")),
			Compact: n >= maxFullSteps && !v.o.Verbose,
		}
		for _, u := range r.Unset {
			st.Also = append(st.Also, "remove "+word(strings.TrimPrefix(u, "env:")))
		}
		if r.UpgradeTo != nil {
			st.Also = append(st.Also, "install "+engineName(i.Engine.Name)+" "+word(*r.UpgradeTo)+", this release and no other")
		}
		if n == 0 {
			s.First = append(s.First, st)
		} else {
			s.Further = append(s.Further, st)
		}
	}
	s.MoreSteps = more(len(i.Remedies) - len(shown))
}

// unsaid are the references that the text does not name itself.
func unsaid(refs []string, text string) []string {
	var out []string
	for _, r := range refs {
		if !strings.Contains(text, r) {
			out = append(out, r)
		}
	}
	return out
}

func (v viewer) tag(grade string, at []matcher.At) string {
	limit := maxRefs
	if v.o.Verbose {
		limit = -1
	}
	refs := v.names.Refs(at, limit)
	switch grade = word(grade); {
	case grade == "":
		return refs
	case refs == "":
		return grade
	}
	return grade + "; " + refs
}

func (v viewer) sentences(list []string) []string {
	var out []string
	for _, s := range list[:v.limit(len(list), maxLines)] {
		out = append(out, prose(s))
	}
	if n := more(len(list) - len(out)); n != "" {
		out = append(out, n)
	}
	return out
}

// more says how many entries a list lacks; empty for none.
func more(n int) string {
	if n <= 0 {
		return ""
	}
	return "… and " + grouped(int64(n)) + " more, all in --format json"
}

func addMore(list *[]statement, all int) {
	if n := more(all - len(*list)); n != "" {
		*list = append(*list, statement{Text: n})
	}
}

func (v viewer) consequence(c matcher.Consequence) string {
	s := prose(c.What) + " x" + grouped(int64(c.Count))
	ref := v.names.Ref(c.At)
	switch {
	case ref == "":
	case c.Count > 1:
		s += " (first " + ref + ")"
	default:
		s += " (" + ref + ")"
	}
	return s
}

// stillTo leads in what is missing of an advice.
func stillTo(taken *int) string {
	if taken != nil {
		return "that is step " + strconv.Itoa(*taken) + "; of the better one is missing: "
	}
	return "still to change: "
}

// after tells what became of the server.
func (v viewer) after(i matcher.Incident) []string {
	var out []string
	add := func(lead string, list []string) {
		if len(list) > 0 {
			out = append(out, lead+prose(strings.Join(list, ", ")))
		}
	}
	if r := i.Restarted; r != nil {
		s := "the server was started again"
		if ref := v.names.Ref(r.At); ref != "" {
			s += " (" + ref + ")"
		}
		if len(r.ChangesMade) == 0 && len(r.ChangesMissing) > 0 {
			s += ", with none of the changes above"
		}
		out = append(out, s)
		add("changed: ", r.ChangesMade)
		add(stillTo(r.StepTaken), r.ChangesMissing)
	}
	if f := i.Followup; f != nil {
		if f.RestartedAt != nil {
			out = append(out, "the server was started again at "+word(*f.RestartedAt))
		}
		add("changed: ", f.ChangesMade)
		add(stillTo(f.StepTaken), f.ChangesMissing)
		for _, b := range f.BudgetNow {
			out = append(out, "budget now, "+v.budgetLine(b))
		}
		if f.HeldSince != nil {
			out = append(out, "no failure since "+word(*f.HeldSince))
		}
		add("no longer advised: ", f.Withdrawn)
	}
	return out
}
