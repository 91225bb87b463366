package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/spf13/cobra"
)

// watchFlags are those of `diagnose watch`.
type watchFlags struct {
	config   string
	stateDir string
	jsonl    string
	journals []string
	listen   string
	format   string
}

func (a *app) watchCommand() *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use: "watch [--config FILE] [FILE|GLOB...]", Short: "Follow live logs and tell each failure once",
		Long:    "Follows files, globs, journals and container logs, over rotation and restarts.\nWhat does not exist yet is waited for. Incidents are kept in the state\ndirectory; diagnose incidents lists them.\n\n\"-\" is standard input. When it has ended and nothing else is followed, what it\nheld is told and the daemon ends with status 0.",
		Example: "  diagnose watch --state-dir /var/lib/diagnose --jsonl incidents.jsonl '/var/log/vllm/*.log'\n  diagnose watch --config /etc/diagnose/config.yaml\n  diagnose watch --state-dir ./state --journal vllm.service",
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := f.resolve(args)
			if err != nil {
				return err
			}
			log := newLogger(a.err, cfg.Log)
			s := &service{cfg: cfg, log: log, systemd: newSystemd(), sources: &sourceLog{log: log}}
			if f.config != "" {
				s.again = func() (config, error) { return f.resolve(args) }
			}
			if err := s.build(a.in); err != nil {
				return errors.Join(err, s.release())
			}
			return s.run(c.Context())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "", "configuration file")
	fl.StringVar(&f.stateDir, "state-dir", "", "where checkpoints and incidents are kept")
	fl.StringVar(&f.jsonl, "jsonl", "", "append each event as a JSON line to this file")
	fl.StringArrayVar(&f.journals, "journal", nil, "follow this systemd unit's journal (repeatable)")
	fl.StringVar(&f.listen, "listen", "", "loopback address for /metrics, /healthz, /readyz (default off)")
	fl.StringVar(&f.format, "log-format", "", "text or json")
	return cmd
}

// resolve joins the configuration file and the flags; flags win.
func (f watchFlags) resolve(args []string) (config, error) {
	if err := f.check(); err != nil {
		return config{}, err
	}
	var paths []string
	for _, p := range args {
		if p != "-" {
			abs, err := filepath.Abs(p)
			if err != nil {
				return config{}, fmt.Errorf("resolve %s: %w", p, err)
			}
			p = abs
		}
		paths = append(paths, p)
	}
	over := func(c *config) {
		c.Paths = append(c.Paths, paths...)
		c.Journals = append(c.Journals, f.journals...)
		for _, o := range []struct {
			into *string
			from string
		}{{&c.StateDir, f.stateDir}, {&c.JSONL, f.jsonl}, {&c.Listen, f.listen}, {&c.Log.Format, f.format}} {
			if o.from != "" {
				*o.into = o.from
			}
		}
		if c.StateDir == "" {
			c.StateDir = os.Getenv("STATE_DIRECTORY") // set by systemd
		}
	}
	if f.config != "" {
		return loadConfig(f.config, over)
	}
	var c config
	over(&c)
	switch {
	case len(c.Paths)+len(c.Journals) == 0:
		return c, withHint(errors.New("nothing to follow"), "name files or globs, --journal UNIT, or --config FILE")
	case c.StateDir == "":
		return c, withHint(errors.New("no state directory"), "give --state-dir DIR")
	}
	var all *multierror.Error
	c.ownOutput(func(field, format string, args ...any) {
		if field == "jsonl" {
			format = "--jsonl " + format
		}
		all = multierror.Append(all, fmt.Errorf(format, args...))
	})
	return c, linesOf(all)
}

// check finds impossible values of flags.
func (f watchFlags) check() error {
	switch {
	case f.listen != "" && !loopback(f.listen):
		return fmt.Errorf("--listen %q is not a loopback address and port, as in 127.0.0.1:9464", f.listen)
	case f.format != "" && f.format != "text" && f.format != "json":
		return fmt.Errorf("--log-format %q is neither text nor json", f.format)
	}
	for _, j := range f.journals {
		if !unitName(j) {
			return fmt.Errorf("--journal %q is not the name of a unit, as in vllm.service", j)
		}
	}
	return nil
}

func loopback(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		return false
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func logLevel(s string) (slog.Level, error) {
	if s == "" {
		return slog.LevelInfo, nil
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(s)); err != nil {
		return l, fmt.Errorf("%q is none of debug, info, warn, error", s)
	}
	return l, nil
}

func newLogger(w io.Writer, c logConfig) *slog.Logger {
	level, _ := logLevel(c.Level) // checked with the configuration
	o := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// seldom gives a function that logs an error, but the same one at most once in
// a minute: a full disk is met with every line.
func seldom(log func(msg string, args ...any), msg string) func(error) {
	const every = time.Minute
	var mu sync.Mutex
	last := map[string]time.Time{}
	return func(err error) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		text := err.Error()
		if t, ok := last[text]; ok && now.Sub(t) < every {
			return
		}
		if len(last) >= 64 {
			clear(last)
		}
		last[text] = now
		log(msg, "error", text)
	}
}
