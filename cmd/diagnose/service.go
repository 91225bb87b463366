package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"diagnose/matcher"
	"diagnose/notify"
	"diagnose/report"
	"diagnose/tailer"
	"diagnose/watch"

	bolt "go.etcd.io/bbolt"
)

// service is the running daemon.
type service struct {
	mu  sync.Mutex // guards cfg.Paths
	cfg config
	// again reads the configuration anew; nil where there is no file.
	again func() (config, error)

	log      *slog.Logger
	cat      *matcher.Catalog
	store    *watch.Store
	db       *bolt.DB
	spool    string // a temporary directory of db, "" where it is in the state directory
	gone     bool   // the file of db was removed
	outbox   *notify.Outbox
	sent     deliveries
	fan      *fanout
	daemon   *watch.Daemon
	follower *tailer.Follower
	web      *statusServer
	history  *historyServer
	systemd  *systemd
	sources  *sourceLog
	// refused says that the last reload was, "" if it was taken.
	refused string
	// inputOver tells that the end of standard input was told.
	inputOver bool
}

// The heap of a daemon in its usual work is below 15 MiB. It stands beside a GPU
// server, where memory counts more than the speed of a catch-up: measured with
// 1 GB of backlog in 8 files and lines of 1 MiB, these save 17 of 60 MiB.
const (
	collectAt = 40
	heapAim   = 24 << 20
)

// build makes all parts. What it has opened, release closes.
func (s *service) build(stdin io.Reader) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapAim)
	}
	if err := s.buildCatalog(); err != nil {
		return err
	}
	var err error
	const hint = "the directory must be writable; under systemd StateDirectory= makes it"
	if s.store, err = watch.OpenStore(s.cfg.StateDir); err != nil && !stateRefuses(err) {
		return withHint(err, hint)
	} else if err != nil {
		s.log.Error("incidents cannot be recorded now", "error", err.Error(), "hint", hint)
	}
	if err := s.openDB(); err != nil {
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
		Catalog: s.cat, Store: s.store, Publish: s.fan.publish, Host: host, Warn: seldom(s.log.Error, "watch"),
		RunStart: func(f *os.File, before int64) int64 { return tailer.StartBefore(runFinder{}, f, before) },
		Gather:   t.Gather, Settle: t.Settle, CloseAfter: t.CloseAfter, Historic: t.Historic, HeldAfter: t.HeldAfter,
	})
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	s.follower, err = tailer.NewFollower(tailer.Options{
		Paths: s.cfg.Paths, Journals: s.cfg.Journals, Stdin: stdin,
		Store: s.daemon.Checkpoints(tailer.NewCheckpointFile(s.cfg.StateDir)), Runs: runFinder{}, Pulse: s.caughtUp, Starts: startsRecord,
		// A quiet log's lines still come at once, through inotify; only a
		// rotation of it is seen a second later.
		IdleTick: 2 * time.Second, IdleEvery: 2 * time.Second,
		Warn: seldom(s.log.Warn, "follow"),
	}, s.daemon)
	if err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	s.daemon.SetCommit(s.follower.Commit)
	if s.cfg.Listen != "" {
		if s.web, err = newStatusServer(s); err != nil {
			return err
		}
	}
	if s.history, err = serveHistory(s); err != nil {
		s.log.Warn("only root can list the incidents", "error", err.Error())
	}
	return nil
}

// buildCatalog loads the knowledge. A bad overlay does not stop the daemon:
// what is sound is used, the rest is told.
func (s *service) buildCatalog() error {
	if s.cfg.Catalog == "" {
		cat, err := matcher.EmbeddedCatalog()
		if err != nil {
			return fmt.Errorf("load catalogue: %w", err)
		}
		s.cat = cat
		return nil
	}
	cat, problems := loadOverlay(s.cfg.Catalog)
	if cat == nil {
		return fmt.Errorf("load catalogue: %w", errors.Join(problems...))
	}
	s.cat = cat
	for _, p := range problems {
		s.log.Error("a mechanism is refused", "error", p.Error())
	}
	for _, id := range s.cat.Clashes {
		s.log.Warn("an entry replaces the shipped one", "mechanism", id)
	}
	return nil
}

// openDB opens the queue of notices. While the state directory refuses it, it is
// kept elsewhere, so that the logs are followed and notices go out.
func (s *service) openDB() error {
	var err error
	if s.db, err = openOutboxDB(s.cfg.StateDir, s.log); err == nil || !stateRefuses(err) {
		return err
	}
	s.log.Error("the state directory cannot be written: notices that wait are lost with a restart", "error", err.Error())
	if s.spool, err = os.MkdirTemp("", "diagnose-"); err != nil {
		return fmt.Errorf("keep notices: %w", err)
	}
	s.db, err = openOutboxDB(s.spool, s.log)
	return err
}

func (s *service) buildOutbox() error {
	sinks, err := s.cfg.Notify.Build(notify.BuildOptions{
		Tool: matcher.Tool{Version: version(), Catalog: s.cat.Revision}, Logger: s.log, Getenv: os.Getenv,
		Render: func(n notify.Notice) string { return renderText(s.cat, n) },
	})
	if err != nil {
		return fmt.Errorf("build sinks: %w", err)
	}
	s.fan = &fanout{parts: []notify.Notifier{notify.NewLog("log", s.log)}}
	if s.cfg.JSONL != "" {
		file, err := notify.NewFile("jsonl", s.cfg.JSONL)
		if err != nil {
			return err
		}
		s.fan.parts = append(s.fan.parts, file)
	}
	o := notify.Options{
		Router: s.cfg.Notify.Router(), MaxNotices: s.cfg.Notify.Spool.MaxNotices, MaxAge: s.cfg.Notify.Spool.MaxAge,
		Logger: s.log, Observe: s.sent.observe,
	}
	if s.outbox, err = notify.NewOutbox(s.db, sinks, o); err != nil {
		// The file is a database, but what is in it cannot be read.
		path := s.db.Path()
		if err := errors.Join(s.db.Close(), moveAside(path, s.log, err)); err != nil {
			return err
		}
		if s.db, err = openBolt(path); err != nil {
			return fmt.Errorf("state directory: %w", err)
		}
		if s.outbox, err = notify.NewOutbox(s.db, sinks, o); err != nil {
			return fmt.Errorf("open queue of notices: %w", err)
		}
	}
	s.fan.outbox = s.outbox.Enqueue
	return nil
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

// run follows until ctx ends, or standard input where nothing else is followed,
// then stops in order within 10 s.
func (s *service) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A second signal ends the process at once.
	defer context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	s.daemon.Retry()
	done := make(chan error, 1)
	go func() { done <- s.follower.Run(ctx) }()
	s.log.Info("following", "paths", len(s.cfg.Paths), "journals", len(s.cfg.Journals), "state_dir", s.cfg.StateDir, "version", version())
	s.systemd.ready(s.statusLine())
	// What a start or a reload has found is known when the paths were looked at.
	soon := time.NewTimer(time.Second)
	defer soon.Stop()
	tick := time.NewTicker(s.systemd.interval())
	defer tick.Stop()
	var broken error
	for {
		select {
		case <-done:
			return errors.Join(broken, s.stop()) // it saves again, and tells if that fails
		case <-hup:
			s.reload()
			soon.Reset(time.Second)
		case <-soon.C:
			s.systemd.status(s.statusLine())
			var over bool
			if over, broken = s.inputEnded(); over {
				cancel()
			}
		case <-tick.C:
			s.daemon.Retry()
			s.queueGone()
			// The watchdog is fed only while the reading loops make progress.
			if beat := s.follower.Beat(); beat.IsZero() || time.Since(beat) < 20*time.Second {
				s.systemd.alive(s.statusLine())
			}
		}
	}
}

// caughtUp tells the daemon which logs are read to their ends.
func (s *service) caughtUp() {
	for _, st := range s.follower.State() {
		if st.Status == tailer.StatusFollowing && st.Lag == 0 {
			s.daemon.CaughtUp(st.Ref, st.Offset)
		}
	}
}

// inputEnded tells the log once that standard input has ended. over says that
// nothing else is followed; its incidents are closed by then. err is what the
// reading failed with.
func (s *service) inputEnded() (over bool, err error) {
	all := s.follower.State()
	i := slices.IndexFunc(all, func(st tailer.SourceState) bool { return st.Path == "-" && st.Status == tailer.StatusEnded })
	if i < 0 {
		return false, nil
	}
	if err = all[i].Err; err != nil {
		err = fmt.Errorf("read standard input: %w", err)
	}
	if !s.inputOver {
		s.inputOver = true
		if err != nil {
			s.log.Error("standard input ended", "error", err.Error())
		} else {
			s.log.Info("standard input ended")
		}
	}
	if len(s.cfg.Journals) > 0 || slices.ContainsFunc(s.paths(), func(p string) bool { return p != "-" }) {
		return false, nil
	}
	return true, err
}

// queueGone tells once that the state directory was removed: records and
// checkpoints are written anew, but the queue is an open file without a name.
func (s *service) queueGone() {
	if _, err := os.Lstat(s.db.Path()); errors.Is(err, os.ErrNotExist) && !s.gone {
		s.gone = true
		s.log.Error("the state directory was emptied: notices that wait are lost with a restart", "file", s.db.Path())
	}
}

// statusLine is STATUS, one line; it also tells the log of sources that have
// changed. It is called by run alone.
func (s *service) statusLine() string {
	now := s.sources.look(s.follower.State(), s.paths())
	line := fmt.Sprintf("%s, %d lines read, %d notices queued", now, s.daemon.Metrics().Lines(), s.outbox.Pending())
	if s.refused != "" {
		line = s.refused + "; " + line
	}
	return strings.ReplaceAll(line, "\n", " ")
}

// paths are the followed ones; a reload changes them.
func (s *service) paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.Paths
}

// reload takes the paths of a changed configuration; a bad one is told, in the
// log and by STATUS, and the old one stays. All else is that of the start.
func (s *service) reload() {
	s.systemd.reloading()
	defer func() { s.systemd.ready(s.statusLine()) }()
	if s.again == nil {
		s.log.Warn("reload: there is no configuration file")
		return
	}
	next, err := s.again()
	if err == nil {
		err = s.follower.SetPaths(next.Paths)
	}
	if err != nil {
		s.log.Error("reload: the configuration is bad, the old one stays", "error", err.Error())
		first, more, _ := strings.Cut(err.Error(), "\n")
		s.refused = fmt.Sprintf("configuration refused at %s, the old one is used: %s", time.Now().Format(time.TimeOnly), first)
		if more != "" {
			s.refused += fmt.Sprintf(" (and %d more in the log)", strings.Count(more, "\n")+1)
		}
		return
	}
	s.refused = ""
	s.mu.Lock()
	s.cfg.Paths = next.Paths
	s.mu.Unlock()
	if !reflect.DeepEqual(next, s.cfg) {
		s.log.Warn("reload: only the paths are taken, what else has changed needs a restart")
	}
	s.log.Info("reloaded", "paths", len(next.Paths))
}

// stop writes the checkpoint and gives the sinks a few seconds.
func (s *service) stop() error {
	s.systemd.stopping()
	s.daemon.Retry()
	err := errors.Join(s.follower.Flush(), s.release())
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	s.log.Info("stopped")
	return nil
}

// release closes what build has opened.
func (s *service) release() error {
	var err error
	if s.web != nil {
		s.web.close()
	}
	if s.history != nil {
		s.history.close()
	}
	if s.outbox != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 6*time.Second)
		defer cancel()
		if late := s.outbox.Close(ctx); late != nil {
			s.log.Warn("notices stay queued for the next start", "error", late.Error())
		}
	}
	if s.db != nil {
		err = errors.Join(err, s.db.Close())
	}
	if s.spool != "" {
		err = errors.Join(err, os.RemoveAll(filepath.Clean(s.spool)))
	}
	return err
}
