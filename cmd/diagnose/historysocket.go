package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"diagnose/watch"
)

// The state directory of a service whose user is made anew at each start is
// closed to all but root (DynamicUser puts it below /var/lib/private). So the
// daemon answers for it, on a socket that its group may use, read only.

// recorded is the answer of /ids.
type recorded struct {
	StateDir string   `json:"state_dir"`
	IDs      []string `json:"ids"`
}

// historyServer answers /ids and /incidents/ID from the files.
type historyServer struct {
	srv  *http.Server
	done chan struct{}
}

// serveHistory gives nil where no RuntimeDirectory is set: the files are then
// those of the user who started the daemon.
func serveHistory(s *service) (*historyServer, error) {
	if os.Getenv("RUNTIME_DIRECTORY") == "" {
		return nil, nil
	}
	ln, err := listenUnix(socketPath())
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(s.cfg.StateDir)
	if err != nil {
		dir = s.cfg.StateDir
	}
	files := watch.ReadStore(s.cfg.StateDir)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ids", func(w http.ResponseWriter, _ *http.Request) {
		ids, err := files.IDs()
		reply(w, recorded{dir, ids}, err)
	})
	mux.HandleFunc("GET /incidents/{id}", func(w http.ResponseWriter, r *http.Request) {
		record, err := files.Get(filepath.Base(r.PathValue("id")))
		reply(w, record, err)
	})
	h := &historyServer{
		srv:  &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second},
		done: make(chan struct{}),
	}
	go func() {
		defer close(h.done)
		if err := h.srv.Serve(ln); err != http.ErrServerClosed {
			s.log.Error("socket of the incidents", "error", err.Error())
		}
	}()
	return h, nil
}

func reply(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who asked is gone
}

func (h *historyServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = h.srv.Shutdown(ctx) // what is still open is cut with the process
	<-h.done
}

// listenUnix makes a socket that its group may use. One that a killed daemon
// left behind is replaced, one that answers is another daemon's.
func listenUnix(path string) (net.Listener, error) {
	ln, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) {
		info, errStat := os.Lstat(path)
		if errStat == nil && info.Mode()&fs.ModeSocket == 0 {
			return nil, fmt.Errorf("listen on %s: there is a file that is no socket", path)
		}
		if conn, errDial := net.DialTimeout("unix", path, time.Second); !errors.Is(errDial, syscall.ECONNREFUSED) {
			if errDial == nil {
				_ = conn.Close() // nothing was written to it
			}
			return nil, fmt.Errorf("listen on %s: another daemon uses it", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove the socket of an earlier daemon: %w", err)
		}
		ln, err = net.Listen("unix", path)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	return ln, nil
}

// askedHistory is what a running daemon answers.
type askedHistory struct {
	client *http.Client
}

// askDaemon asks the daemon that keeps a state directory. Without an answer it
// gives a hint what to do.
func askDaemon(socket, dir string) (history, string) {
	h := askedHistory{&http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}}
	var is recorded
	err := h.get("/ids", &is)
	abs, errAbs := filepath.Abs(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Sprintf("it is for root and the group %s: use sudo, or get into that group", groupOf(filepath.Dir(socket)))
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Sprintf("use sudo; the service's group may ask the running daemon, but none answers at %s", socket)
	case err != nil:
		return nil, fmt.Sprintf("use sudo; the daemon does not answer: %v", err)
	case errAbs != nil || abs != is.StateDir:
		return nil, fmt.Sprintf("use sudo; the daemon at %s keeps another one, %s", socket, is.StateDir)
	}
	return h, ""
}

func (h askedHistory) IDs() ([]string, error) {
	var is recorded
	err := h.get("/ids", &is)
	return is.IDs, err
}

func (h askedHistory) Get(id string) (r watch.Record, err error) {
	err = h.get("/incidents/"+id, &r)
	return r, err
}

// Incidents is as watch.Store has it.
func (h askedHistory) Incidents(most int) ([]watch.Record, error) {
	ids, err := h.IDs()
	if err != nil {
		return nil, err
	}
	var out []watch.Record
	var failed []error
	for _, id := range ids[:min(most, len(ids))] {
		r, err := h.Get(id)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b watch.Record) int { return b.Opened.Compare(a.Opened) })
	return out, errors.Join(failed...)
}

func (h askedHistory) get(path string, into any) error {
	resp, err := h.client.Get("http://daemon" + path)
	if err != nil {
		return fmt.Errorf("ask the daemon: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("ask the daemon: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(data)))
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the daemon's answer: %w", err)
	}
	return nil
}

// groupOf names the group of a folder.
func groupOf(dir string) string {
	info, err := os.Stat(dir)
	if err != nil {
		return "of the service"
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "of the service"
	}
	id := strconv.FormatUint(uint64(st.Gid), 10)
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name
	}
	return id
}
