package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"diagnose/matcher"
	"diagnose/matcher/catalog"
	"diagnose/notify"
	"diagnose/report"
	"diagnose/tailer"
	"diagnose/watch"

	"github.com/spf13/cobra"
	bolt "go.etcd.io/bbolt"
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
		Long:    "Follows files, globs, journals and container logs, over rotation and restarts.\nWhat does not exist yet is waited for. Incidents are kept in the state\ndirectory; diagnose incidents lists them.",
		Example: "  diagnose watch --state-dir /var/lib/diagnose --jsonl incidents.jsonl '/var/log/vllm/*.log'\n  diagnose watch --config /etc/diagnose/config.yaml\n  diagnose watch --state-dir ./state --journal vllm.service",
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := f.resolve(args)
			if err != nil {
				return err
			}
			return a.watch(c.Context(), cfg, f.config)
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
	var c config
	if f.config != "" {
		var err error
		if c, err = loadConfig(f.config); err != nil {
			return c, err
		}
	}
	for _, p := range args {
		if p != "-" {
			abs, err := filepath.Abs(p)
			if err != nil {
				return c, fmt.Errorf("resolve %s: %w", p, err)
			}
			p = abs
		}
		c.Paths = append(c.Paths, p)
	}
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
	if f.config == "" {
		return c, linesOfFlags(c)
	}
	return c, nil
}

func linesOfFlags(c config) error {
	switch {
	case len(c.Paths)+len(c.Journals) == 0:
		return withHint(errors.New("nothing to follow"), "name files or globs, --journal UNIT, or --config FILE")
	case c.StateDir == "":
		return withHint(errors.New("no state directory"), "give --state-dir DIR")
	case c.Listen != "" && !loopback(c.Listen):
		return fmt.Errorf("--listen %q is not a loopback address and port", c.Listen)
	}
	return nil
}

func loopback(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
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

// service is the running daemon.
type service struct {
	cfg      config
	cfgPath  string
	log      *slog.Logger
	cat      *matcher.Catalog
	store    *watch.Store
	db       *bolt.DB
	outbox   *notify.Outbox
	local    *local
	daemon   *watch.Daemon
	follower *tailer.Follower
	systemd  *systemd
	began    time.Time
}

func (a *app) watch(ctx context.Context, cfg config, cfgPath string) error {
	s := &service{cfg: cfg, cfgPath: cfgPath, log: newLogger(a.err, cfg.Log), systemd: newSystemd(), began: time.Now()}
	if err := s.build(a); err != nil {
		return err
	}
	return s.run(ctx)
}

// build makes all parts. A bad overlay does not stop the daemon: what is sound
// is used, the rest is told.
func (s *service) build(a *app) error {
	var err error
	if s.cfg.Catalog != "" {
		s.cat, err = matcher.LoadCatalog(catalog.FS, os.DirFS(s.cfg.Catalog))
	} else {
		s.cat, err = matcher.EmbeddedCatalog()
	}
	if s.cat == nil {
		return fmt.Errorf("load catalogue: %w", err)
	}
	if err != nil {
		s.log.Error("a part of the catalogue is refused", "error", err.Error())
	}
	for _, id := range s.cat.Clashes {
		s.log.Warn("an entry replaces the shipped one", "mechanism", id)
	}
	if s.store, err = watch.OpenStore(s.cfg.StateDir); err != nil {
		return withHint(err, "the directory must be writable; under systemd StateDirectory= makes it")
	}
	if s.db, err = openOutboxDB(s.cfg.StateDir, s.log); err != nil {
		return err
	}
	if err := s.buildOutbox(); err != nil {
		return err
	}
	host := s.cfg.Host
	if host == "" {
		host, _ = os.Hostname() // an unknown host is left out of the incident
	}
	t := s.cfg.Timing
	s.daemon, err = watch.New(watch.Options{
		Catalog: s.cat, Store: s.store, Publish: s.publish, Host: host,
		Warn:   func(err error) { s.log.Error("watch", "error", err.Error()) },
		Gather: t.Gather, Settle: t.Settle, CloseAfter: t.CloseAfter, Historic: t.Historic, HeldAfter: t.HeldAfter,
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	s.follower, err = tailer.NewFollower(tailer.Options{
		Paths: s.cfg.Paths, Journals: s.cfg.Journals, Stdin: a.in,
		Store: tailer.NewCheckpointFile(s.cfg.StateDir), FirstStart: firstStart, Starts: startsRecord,
		// A quiet log's lines still come at once, through inotify; only a
		// rotation of it is seen a second later.
		IdleTick: 2 * time.Second, IdleEvery: 2 * time.Second,
		Warn: func(err error) { s.log.Warn("follow", "error", err.Error()) },
	}, s.daemon)
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	s.daemon.SetCommit(s.follower.Commit)
	return nil
}

// openOutboxDB opens the queue of notices. A file that cannot be opened is
// moved aside, never deleted: following must go on.
func openOutboxDB(dir string, log *slog.Logger) (*bolt.DB, error) {
	path := filepath.Join(dir, "outbox.db")
	open := func() (*bolt.DB, error) {
		return bolt.Open(path, 0o600, &bolt.Options{Timeout: 3 * time.Second})
	}
	db, err := open()
	if err == nil {
		return db, nil
	}
	if errors.Is(err, bolt.ErrTimeout) {
		return nil, withHint(fmt.Errorf("state directory %s: another diagnose watch uses it", dir), "stop it, or give another --state-dir")
	}
	if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	aside := fmt.Sprintf("%s.bad-%d", path, time.Now().Unix())
	if mvErr := os.Rename(path, aside); mvErr != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	log.Error("the queue of notices cannot be read and was moved aside", "file", aside, "error", err.Error())
	db, err = open()
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	return db, nil
}

func (s *service) buildOutbox() error {
	sinks, err := s.cfg.Notify.Build(notify.BuildOptions{
		Tool: matcher.Tool{Version: version(), Catalog: s.cat.Revision}, Logger: s.log, Getenv: os.Getenv,
		Render: func(n notify.Notice) string { return renderText(s.cat, n) },
	})
	if err != nil {
		return fmt.Errorf("build sinks: %w", err)
	}
	s.local = &local{log: s.log}
	if s.cfg.JSONL != "" {
		file, err := notify.NewFile("jsonl", s.cfg.JSONL)
		if err != nil {
			return err
		}
		s.local.sinks = append(s.local.sinks, file)
	}
	s.local.sinks = append(s.local.sinks, notify.NewLog("log", s.log))
	s.outbox, err = notify.NewOutbox(s.db, sinks, notify.Options{
		Router: s.cfg.Notify.Router(), MaxNotices: s.cfg.Notify.Spool.MaxNotices, MaxAge: s.cfg.Notify.Spool.MaxAge, Logger: s.log,
	})
	if err != nil {
		return fmt.Errorf("open queue of notices: %w", err)
	}
	return nil
}

// publish writes the notice on this host and queues it for the others. The end
// of a crash's record is news for this host alone; for the others the matter is
// closed when the server is back.
func (s *service) publish(n notify.Notice) error {
	s.local.publish(n)
	if n.Event == notify.EventClosed {
		return nil
	}
	if f := n.Incident.Followup; n.Event == notify.EventFollowup && f != nil && f.HeldSince == nil && len(f.Withdrawn) == 0 {
		n.Event = notify.EventClosed
	}
	return s.outbox.Enqueue(n)
}

// renderText is the whole diagnosis of a notice. Its inputs are known by name
// only, which is what positions are shown with.
func renderText(cat *matcher.Catalog, n notify.Notice) string {
	var b strings.Builder
	doc := matcher.Document{Schema: matcher.Schema, Tool: matcher.Tool{Version: version(), Catalog: cat.Revision}, Incidents: []matcher.Incident{n.Incident}}
	for _, name := range n.Sources {
		doc.Inputs = append(doc.Inputs, matcher.Input{Name: name})
	}
	if err := report.Text(&b, doc, report.Options{Width: 78, Titles: titles(cat)}); err != nil {
		return n.Incident.Verdict.Summary
	}
	return b.String()
}

// firstStart finds where to begin in a log that was never followed: at the
// start of the run before the last one, so that the configuration and a crash
// just before are known; at most 64 MiB back.
func firstStart(_ string, f *os.File, size int64) int64 {
	const back = 64 << 20
	args := [][]byte{[]byte("non-default args: {"), []byte("args: Namespace(")}
	at, ok, err := tailer.LastLineContaining(f, size, back, args)
	if err != nil || !ok {
		return lineFrom(f, size, size-back)
	}
	if left := back - (size - at); left > 0 {
		if before, ok, err := tailer.LastLineContaining(f, at, left, args); err == nil && ok {
			at = before
		}
	}
	// The banner stands a few lines above the arguments.
	banner := [][]byte{[]byte("█  version "), []byte("vLLM API server version "), []byte("vLLM server version ")}
	if b, ok, err := tailer.LastLineContaining(f, at, 8<<10, banner); err == nil && ok {
		at = b
	}
	if at <= 8<<10 {
		return 0 // only so are lines counted, and what stands before is short
	}
	return at
}

// lineFrom gives the start of the first line that begins at or after an offset.
func lineFrom(f *os.File, size, at int64) int64 {
	if at <= 0 {
		return 0
	}
	buf := make([]byte, 1<<20)
	n, _ := f.ReadAt(buf, at-1) // a short read leaves the end to start from
	if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
		return at + int64(i)
	}
	return size
}

// startsRecord tells whether a line certainly begins a line of its own.
func startsRecord(line []byte) bool {
	return len(line) > 6 && line[0] == '(' && strings.Contains(string(line[:min(len(line), 80)]), " pid=")
}

// run follows until ctx ends, then stops in order within 10 s.
func (s *service) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var web *statusServer
	if s.cfg.Listen != "" {
		var err error
		if web, err = newStatusServer(s); err != nil {
			return err
		}
		defer web.close()
	}
	s.daemon.Resume()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	done := make(chan error, 1)
	go func() { done <- s.follower.Run(ctx) }()
	s.log.Info("following", "paths", len(s.cfg.Paths), "journals", len(s.cfg.Journals), "state_dir", s.cfg.StateDir, "version", version())
	s.systemd.ready(s.statusLine())
	tick := time.NewTicker(s.systemd.interval())
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return errors.Join(err, s.stop())
		case <-hup:
			s.reload()
		case <-tick.C:
			s.local.retry()
			// The watchdog is fed only while the reading loops make progress.
			if beat := s.follower.Beat(); beat.IsZero() || time.Since(beat) < 20*time.Second {
				s.systemd.alive(s.statusLine())
			}
		}
	}
}

func (s *service) statusLine() string {
	waiting := 0
	for _, st := range s.follower.State() {
		if st.Status != tailer.StatusFollowing && st.Status != tailer.StatusReading {
			waiting++
		}
	}
	return fmt.Sprintf("following %d sources, %d waited for, %d lines read, %d notices queued", len(s.follower.State())-waiting, waiting, s.daemon.Metrics().Lines(), s.outbox.Pending())
}

// reload takes a changed configuration; a bad one is told and the old one
// stays. Sinks and state directory are those of the start.
func (s *service) reload() {
	s.systemd.reloading()
	defer s.systemd.ready(s.statusLine())
	if s.cfgPath == "" {
		s.log.Warn("reload: there is no configuration file")
		return
	}
	next, err := loadConfig(s.cfgPath)
	if err != nil {
		s.log.Error("reload: the configuration is bad, the old one stays", "error", err.Error())
		return
	}
	if err := s.follower.SetPaths(next.Paths); err != nil {
		s.log.Error("reload: the old paths stay", "error", err.Error())
		return
	}
	s.cfg.Paths = next.Paths
	s.log.Info("reloaded", "paths", len(next.Paths))
}

// stop writes the checkpoint and gives the sinks a few seconds.
func (s *service) stop() error {
	s.systemd.stopping()
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
	defer cancel()
	s.local.retry()
	err := errors.Join(s.follower.Flush(), s.outbox.Close(ctx), s.db.Close())
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	s.log.Info("stopped")
	return nil
}
