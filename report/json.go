package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"

	"diagnose/matcher"
)

//go:embed schema/diagnose-v1.json
var schemaV1 string

// Schema is the JSON Schema (draft 2020-12) of the contract that
// matcher.Schema names. It allows fields that it does not name, since within v1
// fields are added.
func Schema() []byte { return []byte(schemaV1) }

// JSON writes d as the contract says, indented by two spaces. The same document
// gives the same bytes.
func JSON(w io.Writer, d matcher.Document) error {
	data, err := json.MarshalIndent(Complete(d), "", "  ")
	if err != nil {
		return fmt.Errorf("encode document: %w", err)
	}
	if _, err := w.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

// secretValue stands for the value of a setting that no report prints.
const secretValue = "***"

// Complete returns a copy of d that encodes as the contract says: no list or
// map in it is nil, and no setting in it tells a secret. d is not changed. Use
// it wherever a document leaves the program as JSON.
func Complete(d matcher.Document) matcher.Document {
	if d.Schema == "" {
		d.Schema = matcher.Schema
	}
	d.Inputs = list(d.Inputs)
	for i := range d.Inputs {
		d.Inputs[i].Skipped = list(d.Inputs[i].Skipped)
	}
	d.Incidents = incidents(d.Incidents)
	d.Observations = incidents(d.Observations)
	return d
}

// list is a copy of s that is not nil.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }

func incidents(in []matcher.Incident) []matcher.Incident {
	out := list(in)
	for n := range out {
		i := &out[n]
		i.Engine.Flags = flags(i.Engine.Flags)
		i.Ranks = list(i.Ranks)
		i.OOM = list(i.OOM)
		for k := range i.OOM {
			o := &i.OOM[k]
			o.OtherProcesses = list(o.OtherProcesses)
			if o.Precision == nil {
				o.Precision = map[string]int64{}
			}
		}
		i.Budget = list(i.Budget)
		i.Evidence = list(i.Evidence)
		for k := range i.Evidence {
			i.Evidence[k].At = list(i.Evidence[k].At)
		}
		i.RuledOut = list(i.RuledOut)
		for k := range i.RuledOut {
			i.RuledOut[k].At = list(i.RuledOut[k].At)
		}
		i.Contributing = list(i.Contributing)
		for k := range i.Contributing {
			i.Contributing[k].At = list(i.Contributing[k].At)
		}
		i.Consequences = list(i.Consequences)
		i.Remedies = list(i.Remedies)
		for k := range i.Remedies {
			r := &i.Remedies[k]
			if r.Set == nil {
				r.Set = map[string]string{}
			}
			r.Unset, r.Refs = list(r.Unset), list(r.Refs)
		}
		i.DoNot = list(i.DoNot)
		i.Verify, i.Missing, i.References = list(i.Verify), list(i.Missing), list(i.References)
		if i.Restarted != nil {
			r := *i.Restarted
			r.ChangesMade, r.ChangesMissing = list(r.ChangesMade), list(r.ChangesMissing)
			i.Restarted = &r
		}
		if i.Followup != nil {
			f := *i.Followup
			f.ChangesMade, f.ChangesMissing = list(f.ChangesMade), list(f.ChangesMissing)
			f.BudgetNow, f.Withdrawn = list(f.BudgetNow), list(f.Withdrawn)
			i.Followup = &f
		}
	}
	return out
}

// flags copies the settings without the secrets among them. The reader of the
// log leaves them out already; this is the last place where they could pass.
func flags(in map[string]matcher.Flag) map[string]matcher.Flag {
	out := make(map[string]matcher.Flag, len(in))
	for name, f := range in {
		if secretName.MatchString(name) {
			f.Value = secretValue
		}
		out[name] = f
	}
	return out
}
