package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"diagnose/notify"
	"diagnose/tailer"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// statusServer answers /metrics, /healthz and /readyz on a loopback address.
type statusServer struct {
	srv  *http.Server
	done chan struct{}
}

func newStatusServer(s *service) (*statusServer, error) {
	ln, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics: %w", err)
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(&collector{s})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.healthy()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.readiness()) })
	web := &statusServer{
		srv:  &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second},
		done: make(chan struct{}),
	}
	go func() {
		defer close(web.done)
		if err := web.srv.Serve(ln); err != http.ErrServerClosed {
			s.log.Error("status server", "error", err.Error())
		}
	}()
	return web, nil
}

func answer(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (w *statusServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = w.srv.Shutdown(ctx) // what is still open is cut with the process
	<-w.done
}

// healthy is the loop: it is alive while every source's loop goes round.
func (s *service) healthy() error {
	if beat := s.follower.Beat(); !beat.IsZero() && time.Since(beat) > 20*time.Second {
		return fmt.Errorf("a reading loop has stood still for %s", time.Since(beat).Round(time.Second))
	}
	return nil
}

// readiness is the work: sources are open or waited for, and no sink is in a
// permanent error. What is not so is a line each.
func (s *service) readiness() error {
	all := []error{s.healthy()}
	for _, st := range s.follower.State() {
		if st.Status == tailer.StatusDenied || st.Status == tailer.StatusUnfit {
			all = append(all, fmt.Errorf("%s: %s: %s", st.Path, st.Status, whyBarred(st)))
		}
	}
	for _, p := range emptyPatterns(s.paths()) {
		if err := deniedFolder(p); err != nil {
			all = append(all, fmt.Errorf("%s: %s: %w", p, tailer.StatusDenied, err))
		}
	}
	return errors.Join(append(all, s.outbox.Ready())...)
}

// collector reads the counters when it is asked.
type collector struct{ s *service }

var (
	descLines     = desc("lines_total", "Lines read.")
	descBytes     = desc("bytes_total", "Bytes read.")
	descTruncated = desc("truncated_lines_total", "Lines whose middle was left out.")
	descLag       = desc("lag_bytes", "Unread text of all sources.")
	descRotations = desc("rotations_total", "Rotations seen.", "kind")
	descIncidents = desc("incidents_total", "Incidents opened.", "family")
	descUnknown   = desc("unclassified_failures_total", "Incidents that no mechanism explains.")
	descQueue     = desc("notify_queue", "Notices that wait for a sink.")
	descSink      = desc("notify_sink_ok", "1 if the sink accepts notices, 0 if its breaker is open.", "sink")
	descAge       = desc("checkpoint_age_seconds", "Time since the checkpoints were last written.")
	descSources   = desc("sources", "Followed sources.", "status")
	descLostBytes = desc("lost_bytes_total", "Bytes known to be lost: unread when their file was truncated or removed.")
	descLostFiles = desc("lost_generations_total", "Generations of a log that were to be read on after a restart and were found nowhere.")
	descStalls    = desc("follow_stalls_total", "Times that the follower was silent over unread lines and was started anew.")
	descJournals  = desc("journal_restarts_total", "Times that journalctl ended and was started again.")
	descSkipped   = desc("journal_skipped_total", "Journal entries that could not be read.")
	descNotices   = desc("notify_total", "Attempts to deliver a notice, and notices dropped.", "sink", "result", "reason")
	descState     = desc("state_errors_total", "Incidents that could not be written to the state directory; each attempt counts.")
	descPublish   = desc("publish_errors_total", "Notices that could not be written or queued; each attempt counts.")
	descBuild     = desc("build_info", "Version of the program and of its knowledge.", "version", "catalog")
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("diagnose_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descLines, descBytes, descTruncated, descLag, descRotations, descIncidents, descUnknown, descQueue, descSink, descAge, descSources, descBuild,
		descLostBytes, descLostFiles, descStalls, descJournals, descSkipped, descNotices, descState, descPublish,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	m := c.s.daemon.Metrics()
	counter(descLines, m.Lines())
	counter(descBytes, m.Bytes())
	counter(descTruncated, m.Truncated())
	gauge(descLag, float64(c.s.follower.Lag()))
	for _, k := range tailer.RotationKinds() {
		counter(descRotations, c.s.follower.Counters().Rotations(k), string(k))
	}
	read := c.s.follower.Counters()
	counter(descLostBytes, read.LostBytes.Load())
	counter(descLostFiles, read.LostGenerations.Load())
	counter(descStalls, read.Stalls.Load())
	counter(descJournals, read.JournalRestarts.Load())
	counter(descSkipped, read.JournalSkipped.Load())
	counter(descState, m.StateErrors())
	counter(descPublish, m.PublishErrors())
	c.s.sent.each(func(o notify.Outcome, n int64) { counter(descNotices, n, o.Sink, o.Result, string(o.Reason)) })
	families, unclassified := m.Incidents()
	for _, f := range []string{"workspace_driven", "kv_pressure", "capacity", "other_oom", "host", "not_oom", "unknown"} {
		counter(descIncidents, families[f], f)
	}
	counter(descUnknown, unclassified)
	gauge(descQueue, float64(c.s.outbox.Pending()))
	for _, st := range c.s.outbox.Status() {
		ok := 1.0
		if st.Open {
			ok = 0
		}
		gauge(descSink, ok, st.Name)
	}
	if saved := c.s.follower.Counters().Saved(); !saved.IsZero() {
		gauge(descAge, time.Since(saved).Seconds())
	}
	byStatus := map[tailer.Status]int{}
	for _, st := range c.s.follower.State() {
		byStatus[st.Status]++
	}
	for _, st := range []tailer.Status{tailer.StatusWaiting, tailer.StatusDenied, tailer.StatusUnfit, tailer.StatusDuplicate, tailer.StatusReading, tailer.StatusFollowing} {
		gauge(descSources, float64(byStatus[st]), string(st))
	}
	gauge(descBuild, 1, version(), c.s.cat.Revision)
}
