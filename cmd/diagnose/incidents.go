package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"diagnose/matcher"
	"diagnose/report"
	"diagnose/watch"

	"github.com/spf13/cobra"
)

// defaultStateDir is that of the packaged service.
const defaultStateDir = "/var/lib/diagnose"

func (a *app) incidentsCommand() *cobra.Command {
	var dir, format string
	cmd := &cobra.Command{
		Use: "incidents [ID]", Short: "The history of the daemon on this host", Args: cobra.MaximumNArgs(1),
		Long: "Lists the incidents that the daemon recorded, the newest first, or shows one in\nfull. It reads the state directory and needs no running daemon.",
		RunE: func(_ *cobra.Command, args []string) error {
			if dir == "" {
				dir = defaultStateDir
			}
			list, err := watch.ReadStore(dir).Incidents()
			if len(list) == 0 && err != nil {
				return withHint(err, "give the daemon's --state-dir; its group may read it")
			}
			if err != nil {
				printWarning(a.err, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
			}
			if len(args) == 1 {
				return a.showIncident(list, args[0], format)
			}
			return a.listIncidents(list)
		},
	}
	cmd.Flags().StringVar(&dir, "state-dir", os.Getenv("STATE_DIRECTORY"), "the daemon's state directory (default "+defaultStateDir+")")
	cmd.Flags().StringVar(&format, "format", "text", "of one incident: text or json")
	return cmd
}

func (a *app) listIncidents(list []watch.Record) error {
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
	f := r.Incident.Followup
	switch {
	case f != nil && len(f.Withdrawn) > 0:
		return word + ", advice withdrawn"
	case r.Held != nil:
		return word + ", held"
	case r.Restarted != nil && r.Applied:
		return word + ", restarted with the change"
	case r.Restarted != nil:
		return word + ", restarted without the change"
	case r.Closed == nil:
		return word + ", open"
	}
	return word
}

func (a *app) showIncident(list []watch.Record, id, format string) error {
	for _, r := range list {
		if !strings.HasPrefix(r.Incident.ID, id) {
			continue
		}
		doc := matcher.Document{
			Schema: matcher.Schema, Tool: matcher.Tool{Version: version()}, Observations: []matcher.Incident{},
			Incidents: []matcher.Incident{r.Incident}, Inputs: inputsOf(r),
		}
		cat, err := matcher.EmbeddedCatalog()
		if err != nil {
			return fmt.Errorf("load catalogue: %w", err)
		}
		doc.Tool.Catalog = cat.Revision
		if format == "json" {
			return report.JSON(a.out, doc)
		}
		if format != "text" {
			return fmt.Errorf("--format %q is neither text nor json", format)
		}
		width, color := look(a.out)
		fmt.Fprintf(a.out, "opened %s, last change %s, %s\n\n", r.Opened.Local().Format(time.RFC3339), r.Updated.Local().Format(time.RFC3339), stateWord(r))
		return report.Text(a.out, doc, report.Options{Width: width, Color: color, Titles: titles(cat)})
	}
	return withHint(fmt.Errorf("no incident %q", id), `"diagnose incidents" lists those of this host`)
}

func inputsOf(r watch.Record) []matcher.Input {
	out := []matcher.Input{}
	for _, n := range r.Sources {
		out = append(out, matcher.Input{Name: n, Framing: "followed", Skipped: []matcher.Skipped{}})
	}
	return out
}
