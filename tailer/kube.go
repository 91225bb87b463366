package tailer

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// targetOf reads what a path says of its container. The folder
// /var/log/pods/<namespace>_<pod>_<uid>/<container> is one source: its 0.log,
// 1.log, ... are the container's runs. A link in /var/log/containers leads
// there and is the same source (kubelet: pkg/kubelet/kuberuntime).
func targetOf(path string) target {
	path = filepath.Clean(path)
	for _, name := range []string{path, linkTarget(path)} {
		if m, ok := podMeta(name); ok {
			m.Restart = 0
			return target{key: filepath.Join(filepath.Dir(name), "*.log"), path: name, meta: m, successor: true}
		}
	}
	t := target{key: path, path: path}
	if m, ok := containerMeta(path); ok {
		t.meta = m
	}
	return t
}

// linkTarget follows one link; "" where there is none.
func linkTarget(path string) string {
	to, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	return to
}

// podMeta takes <namespace>_<pod>_<uid>/<container>/<restarts>.log apart.
func podMeta(path string) (Meta, bool) {
	dir, file := filepath.Split(path)
	restart, ok := restartOf(file)
	if !ok {
		return Meta{}, false
	}
	pod, container := filepath.Split(filepath.Clean(dir))
	parts := strings.Split(filepath.Base(pod), "_")
	// Namespaces and pods are DNS names and hold no "_".
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || !isUID(parts[2]) || container == "" {
		return Meta{}, false
	}
	return Meta{Namespace: parts[0], Pod: parts[1], Container: container, Restart: restart}, true
}

// isUID: a UUID, or the 32 hex digits of a static pod.
func isUID(s string) bool {
	digits := strings.ReplaceAll(s, "-", "")
	if len(digits) != 32 {
		return false
	}
	return strings.Trim(digits, "0123456789abcdef") == ""
}

// restartOf reads the number in <restarts>.log.
func restartOf(file string) (int, bool) {
	digits, ok := strings.CutSuffix(file, ".log")
	if !ok || !allDigits(digits) {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil
}

// containerMeta reads <pod>_<namespace>_<container>-<id>.log, and Docker's
// <id>/<id>-json.log.
func containerMeta(path string) (Meta, bool) {
	name := filepath.Base(path)
	if id, ok := strings.CutSuffix(name, "-json.log"); ok && isContainerID(id) {
		return Meta{Container: id[:12]}, true
	}
	stem, ok := strings.CutSuffix(name, ".log")
	parts := strings.Split(stem, "_")
	if !ok || len(parts) != 3 || parts[0] == "" || parts[1] == "" {
		return Meta{}, false
	}
	i := strings.LastIndexByte(parts[2], '-')
	if i <= 0 || !isContainerID(parts[2][i+1:]) {
		return Meta{}, false
	}
	return Meta{Pod: parts[0], Namespace: parts[1], Container: parts[2][:i]}, true
}

func isContainerID(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// metaOf is that of one file of the target.
func (t *target) metaOf(name string) Meta {
	m := t.meta
	if t.successor {
		m.Restart, _ = runOf(name)
		if filepath.Dir(name) != filepath.Dir(t.path) { // a link to the runtime's own file
			m.Restart, _ = restartOf(filepath.Base(t.path))
		}
	}
	return m
}

// runOf reads the restart number of a file and of its rotated generations,
// 0.log.20261130-140311.gz.
func runOf(name string) (int, bool) {
	base := filepath.Base(name)
	i := strings.Index(base, ".log")
	if i < 0 {
		return 0, false
	}
	return restartOf(base[:i+len(".log")])
}

// restarted tells whether two files belong to different runs of a container.
func (t *target) restarted(from, to string) bool {
	a, okA := runOf(from)
	b, okB := runOf(to)
	if okA && okB {
		return a != b
	}
	return from != to // the runtime's own files: one a run
}

// newestRestart gives the file of a container's last run.
func newestRestart(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	best := -1
	for _, e := range entries {
		if n, ok := restartOf(e.Name()); ok && n > best {
			best = n
		}
	}
	if best < 0 {
		return "", &fs.PathError{Op: "follow", Path: dir, Err: fs.ErrNotExist}
	}
	return filepath.Join(dir, strconv.Itoa(best)+".log"), nil
}

// replaceContainer goes over to the next run of a container: its parser begins
// anew, and nothing is joined over it.
func (s *source) replaceContainer(ctx context.Context, cur *life, file *os.File, info os.FileInfo, name string) {
	for _, missed := range namesBetween(cur.name, name) {
		c := newCandidate(missed)
		if c == nil {
			continue
		}
		s.finishContainer(ctx)
		l := s.lifeOf(c, 0, 0)
		s.begin(l)
		s.readWhole(ctx, l)
	}
	s.finishContainer(ctx)
	next := s.newLife(file, info, name, 0, 0)
	s.lastKnown, s.progOff = 0, 0
	s.begin(next)
	s.hurry = 1
}

// finishContainer ends the run that is followed.
func (s *source) finishContainer(ctx context.Context) {
	cur := s.cur()
	if cur.file != nil {
		_ = s.drain(ctx, cur)
	}
	s.surrender(s.lives)
	s.retire(cur)
	s.f.handler.Gone(cur.ref)
}

// runsSince names the files of a container's runs from that of name on, before
// the one that is written.
func (s *source) runsSince(name, path string) (names []string) {
	from, ok := runOf(name)
	to, last := restartOf(filepath.Base(path))
	if !s.target.successor || !ok || !last {
		return nil
	}
	for n := max(from, to-maxBetween); n < to; n++ {
		names = append(names, filepath.Join(filepath.Dir(path), strconv.Itoa(n)+".log"))
	}
	return names
}
