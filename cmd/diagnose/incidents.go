package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"diagnose/matcher"
	"diagnose/report"
	"diagnose/watch"

	"github.com/spf13/cobra"
)

// Where the packaged service keeps its state, and where it answers.
const (
	defaultStateDir   = "/var/lib/diagnose"
	defaultRuntimeDir = "/run/diagnose"
)

func (a *app) incidentsCommand() *cobra.Command {
	var dir, configFile, format string
	most := 0
	cmd := &cobra.Command{
		Use: "incidents [ID]", Short: "The history of the daemon on this host", Args: cobra.MaximumNArgs(1),
		Long: "Lists the incidents that the daemon recorded, the newest first, or shows one in\nfull. It reads the state directory and needs no running daemon; who may not read\nthat, but is in the service's group (adm), is answered by the daemon.",
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return fmt.Errorf("--format %q is neither text nor json", format)
			}
			if most < 1 {
				return fmt.Errorf("--last %d is not a positive number", most)
			}
			dir, err := stateDirOf(dir, configFile)
			if err != nil {
				return err
			}
			h, err := openHistory(dir)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				r, err := byPrefix(h, args[0])
				if err != nil {
					return err
				}
				return a.showIncident(r, format)
			}
			list, err := h.Incidents(most)
			if len(list) == 0 && err != nil {
				return err
			}
			if err != nil {
				printWarning(a.err, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
			}
			return a.listIncidents(list, format)
		},
	}
	cmd.Flags().IntVar(&most, "last", 100, "how many to list, those changed last")
	cmd.Flags().StringVar(&dir, "state-dir", "", "the daemon's state directory (default "+defaultStateDir+")")
	cmd.Flags().StringVar(&configFile, "config", "", "the daemon's configuration, which names its state directory")
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

func (a *app) listIncidents(list []watch.Record, format string) error {
	if format == "json" {
		cat, err := matcher.EmbeddedCatalog()
		if err != nil {
			return fmt.Errorf("load catalogue: %w", err)
		}
		return report.JSON(a.out, document(list, cat))
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.out, "no incident recorded")
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tOPENED\tSTATUS\tCLASS\tMECHANISM\tMODEL\tLOG")
	for _, r := range list {
		in := r.Incident
		mechanism, model := "-", "-"
		if in.Verdict.Mechanism != nil {
			mechanism = *in.Verdict.Mechanism
		}
		if in.Engine.Model != nil {
			model = *in.Engine.Model
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", in.ID, r.Opened.Local().Format("2006-01-02 15:04:05"),
			stateWord(r), in.Verdict.Class, mechanism, report.SafeText(model), r.Path)
	}
	return w.Flush()
}

// stateWord says how the matter stands.
func stateWord(r watch.Record) string {
	word := r.Incident.Status
	switch {
	case r.Withdrawn():
		return word + ", advice withdrawn"
	case r.Held != nil:
		return word + ", held"
	case r.Restarted != nil && r.AppliedAt != nil:
		return word + ", restarted with the change"
	case r.Restarted != nil:
		return word + ", restarted without the change"
	case r.Closed == nil:
		return word + ", open"
	}
	return word
}

func (a *app) showIncident(r watch.Record, format string) error {
	cat, err := matcher.EmbeddedCatalog()
	if err != nil {
		return fmt.Errorf("load catalogue: %w", err)
	}
	doc := document([]watch.Record{r}, cat)
	if format == "json" {
		return report.JSON(a.out, doc)
	}
	width, color := look(a.out)
	fmt.Fprintf(a.out, "opened %s, last change %s, %s\n\n", r.Opened.Local().Format(time.RFC3339), r.Updated.Local().Format(time.RFC3339), stateWord(r))
	return report.Text(a.out, doc, report.Options{Width: width, Color: color, Titles: titles(cat)})
}

// document makes one of some records; each brings its own inputs.
func document(list []watch.Record, cat *matcher.Catalog) matcher.Document {
	doc := matcher.Document{
		Schema: matcher.Schema, Tool: matcher.Tool{Version: version(), Catalog: cat.Revision},
		Inputs: []matcher.Input{}, Observations: []matcher.Incident{}, Incidents: []matcher.Incident{},
	}
	for _, r := range list {
		in := watch.ShiftSources(r.Incident, len(doc.Inputs))
		for _, n := range r.Sources {
			doc.Inputs = append(doc.Inputs, matcher.Input{Name: n, Framing: "followed", Skipped: []matcher.Skipped{}})
		}
		doc.Incidents = append(doc.Incidents, in)
	}
	return doc
}
