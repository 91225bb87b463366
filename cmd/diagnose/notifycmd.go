package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"diagnose/matcher"
	"diagnose/notify"
	"diagnose/report"

	"github.com/hashicorp/go-multierror"
	"github.com/spf13/cobra"
)

// sendTimeout bounds a delivery by hand, retries included.
const sendTimeout = 2 * time.Minute

func (a *app) notifyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "notify", Short: "Try the notices: send a test, see a payload", Args: cobra.NoArgs, RunE: showHelp}
	cmd.AddCommand(a.notifyTest(), a.notifyPreview())
	return cmd
}

func (a *app) notifyTest() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use: "test", Short: "Send a harmless notice to each sink and print its answer", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := loadConfig(path)
			if err != nil {
				return err
			}
			tool, sinks, err := buildSinks(cfg)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), sendTimeout)
			defer cancel()
			var all *multierror.Error
			for _, s := range sinks {
				answer, err := notify.Test(ctx, s, tool, time.Now())
				if err != nil {
					all = multierror.Append(all, named(s, err))
					continue
				}
				fmt.Fprintf(a.out, "%s: %s\n", s.Name(), answer)
			}
			if len(sinks) == 0 {
				return withHint(errors.New("no sink is configured"), "notify.sinks in the configuration")
			}
			return linesOf(all)
		},
	}
	cmd.Flags().StringVar(&path, "config", "/etc/diagnose/config.yaml", "configuration file")
	return cmd
}

func (a *app) notifyPreview() *cobra.Command {
	var path, sink string
	cmd := &cobra.Command{
		Use: "preview FILE", Short: "Print exactly what would be sent, without sending", Args: cobra.ExactArgs(1),
		Long: "FILE is a log, or a document of diagnose --format json. Without --config the\nSlack message is printed, which pastes into Slack's Block Kit Builder.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := (&oneshot{}).keepInputs(a, []server{{files: args}}); err != nil {
				return err
			}
			doc, cat, err := a.documentOf(c.Context(), args[0])
			if err != nil {
				return err
			}
			if len(doc.Incidents) == 0 {
				return errors.New("no failure found in " + args[0])
			}
			n := noticeOf(doc, doc.Incidents[len(doc.Incidents)-1])
			if path == "" {
				return writePayload(a.out, func() ([]byte, error) {
					return notify.SlackPayload(n, matcher.Tool{Version: version(), Catalog: cat.Revision})
				})
			}
			cfg, err := loadConfig(path)
			if err != nil {
				return err
			}
			_, sinks, err := buildSinks(cfg)
			if err != nil {
				return err
			}
			shown := 0
			for _, s := range sinks {
				p, ok := s.(notify.Previewer)
				if !ok || sink != "" && s.Name() != sink {
					continue
				}
				shown++
				fmt.Fprintf(a.err, "diagnose: sink %s\n", s.Name())
				if err := writePayload(a.out, func() ([]byte, error) { return p.Preview(n) }); err != nil {
					return err
				}
			}
			if shown == 0 && sink != "" {
				return fmt.Errorf("no sink %q that can show what it sends: %s", sink, strings.Join(sinkNames(sinks), ", "))
			}
			if shown == 0 {
				return errors.New("no sink of this configuration can show what it sends")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "print for the sinks of this configuration")
	cmd.Flags().StringVar(&sink, "sink", "", "only this sink")
	return cmd
}

// named puts a sink's name before an error that does not begin with it.
func named(s notify.Notifier, err error) error {
	if strings.HasPrefix(err.Error(), s.Name()+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", s.Name(), err)
}

func writePayload(w io.Writer, make func() ([]byte, error)) error {
	payload, err := make()
	if err != nil {
		return fmt.Errorf("make payload: %w", err)
	}
	var b bytes.Buffer
	if json.Indent(&b, payload, "", "  ") != nil {
		b.Write(payload) // not JSON: as it is
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

// documentOf reads a log, or a document that was written before.
func (a *app) documentOf(ctx context.Context, name string) (matcher.Document, *matcher.Catalog, error) {
	cat, err := matcher.EmbeddedCatalog()
	if err != nil {
		return matcher.Document{}, nil, fmt.Errorf("load catalogue: %w", err)
	}
	if data, err := os.ReadFile(name); err == nil && bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		var doc matcher.Document
		if err := json.Unmarshal(data, &doc); err == nil && doc.Schema == matcher.Schema {
			return doc, cat, nil
		}
	}
	doc, err := postmortem(ctx, a, cat, matcher.Options{}, []server{{files: []string{name}}}, false)
	return doc, cat, err
}

func noticeOf(doc matcher.Document, in matcher.Incident) notify.Notice {
	names := make([]string, len(doc.Inputs))
	for i, input := range doc.Inputs {
		names[i] = input.Name
	}
	return notify.Notice{Event: notify.EventOpened, Incident: in, Time: time.Now(), Sources: names}
}

// buildSinks makes the configured sinks for a delivery by hand.
func buildSinks(cfg config) (matcher.Tool, []notify.Notifier, error) {
	cat, err := matcher.EmbeddedCatalog()
	if err != nil {
		return matcher.Tool{}, nil, fmt.Errorf("load catalogue: %w", err)
	}
	tool := matcher.Tool{Version: version(), Catalog: cat.Revision}
	built, err := cfg.Notify.Build(notify.BuildOptions{
		Tool: tool, Getenv: os.Getenv, Render: func(n notify.Notice) string { return renderText(cat, n) },
	})
	if err != nil {
		return tool, nil, fmt.Errorf("build sinks: %w", err)
	}
	out := make([]notify.Notifier, len(built))
	for i, s := range built {
		out[i] = s.Notifier
	}
	return tool, out, nil
}

// post sends a post-mortem by hand, as the configuration routes it.
func post(ctx context.Context, a *app, path string, doc matcher.Document) error {
	cfg, err := loadConfig(path)
	if err != nil {
		return err
	}
	_, sinks, err := buildSinks(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	var all *multierror.Error
	for _, in := range doc.Incidents {
		n := noticeOf(doc, in)
		plan := cfg.Notify.Router().Decide(n, sinkNames(sinks), time.Now())
		var to []notify.Notifier
		for _, s := range sinks {
			for _, name := range plan.Sinks {
				if s.Name() == name {
					to = append(to, s)
				}
			}
		}
		if len(to) == 0 {
			fmt.Fprintf(a.err, "diagnose: incident %s goes to no sink, as the configuration says\n", in.ID)
			continue
		}
		if err := notify.DeliverAll(ctx, to, plan.Apply(n)); err != nil {
			all = multierror.Append(all, err)
			continue
		}
		fmt.Fprintf(a.err, "diagnose: incident %s sent to %s\n", in.ID, strings.Join(sinkNames(to), ", "))
	}
	return linesOf(all)
}

func sinkNames(sinks []notify.Notifier) []string {
	out := make([]string, len(sinks))
	for i, s := range sinks {
		out[i] = s.Name()
	}
	return out
}

// slackFormat prints the message of each incident as Block Kit JSON.
func slackFormat(w io.Writer, d matcher.Document, _ report.Options) error {
	for _, in := range d.Incidents {
		n := noticeOf(d, in)
		if err := writePayload(w, func() ([]byte, error) { return notify.SlackPayload(n, d.Tool) }); err != nil {
			return err
		}
	}
	return nil
}
