package tailer

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	podFolder   = "prod_vllm-7d9c-x2_0a1b2c3d-1111-2222-3333-444455556666"
	containerID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

func TestPodMeta(t *testing.T) {
	for _, c := range []struct {
		path string
		want Meta
		ok   bool
	}{
		{"/var/log/pods/" + podFolder + "/server/3.log", Meta{Namespace: "prod", Pod: "vllm-7d9c-x2", Container: "server", Restart: 3}, true},
		{"/var/log/pods/kube-system_etcd-a_0123456789abcdef0123456789abcdef/etcd/0.log", Meta{Namespace: "kube-system", Pod: "etcd-a", Container: "etcd"}, true},
		{"/var/log/pods/" + podFolder + "/server/3.log.20261130-140311", Meta{}, false},
		{"/var/log/vllm/3.log", Meta{}, false},
		{"/var/log/pods/a_b_c/server/3.log", Meta{}, false},
		{"3.log", Meta{}, false},
	} {
		if got, ok := podMeta(c.path); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %v", c.path, got, ok)
		}
	}
}

func TestContainerMeta(t *testing.T) {
	for path, want := range map[string]Meta{
		"/var/log/containers/vllm-7d9c-x2_prod_server-" + containerID + ".log":            {Namespace: "prod", Pod: "vllm-7d9c-x2", Container: "server"},
		"/var/log/containers/vllm_prod_my-side-car-" + containerID + ".log":               {Namespace: "prod", Pod: "vllm", Container: "my-side-car"},
		"/var/lib/docker/containers/" + containerID + "/" + containerID + "-json.log":     {Container: "0123456789ab"},
		"/var/log/containers/vllm_prod_server.log":                                        {},
		"/var/log/a_b_c-" + containerID[:63] + ".log":                                     {},
		"/var/lib/docker/containers/" + containerID + "/" + containerID[:5] + "-json.log": {},
	} {
		if got, ok := containerMeta(path); got != want || ok != (want != Meta{}) {
			t.Errorf("%s: %+v, %v", path, got, ok)
		}
	}
}

// calls gives lines and ends in their order.
func calls(r *recorder) []string {
	var got []string
	for _, e := range r.all() {
		switch e.call {
		case "line":
			got = append(got, e.text)
		case "gone":
			got = append(got, "gone")
		case "rotated":
			got = append(got, "rotated")
		}
	}
	return got
}

func waitCalls(t *testing.T, r *recorder, want ...string) {
	t.Helper()
	ok := func() bool { return slices.Equal(calls(r), want) }
	for end := time.Now().Add(deadline); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("calls %q, want %q", calls(r), want)
		}
	}
}

func TestFollowPod(t *testing.T) {
	pods := filepath.Join(t.TempDir(), "pods")
	dir := filepath.Join(pods, podFolder, "server")
	must(t, os.MkdirAll(dir, 0o755))
	file := func(name string) string { return filepath.Join(dir, name) }
	write(t, file("0.log"), "long ago\n")
	write(t, file("1.log"), "crash\nlast words")
	write(t, file("2.log"), "start\n")
	// The link in /var/log/containers is the same source.
	links := filepath.Join(filepath.Dir(pods), "containers")
	must(t, os.Mkdir(links, 0o755))
	must(t, os.Symlink(file("2.log"), filepath.Join(links, "vllm-7d9c-x2_prod_server-"+containerID+".log")))

	r := &recorder{}
	store := &memStore{}
	opt := fast(filepath.Join(pods, "*/*/*.log"), filepath.Join(links, "*.log"))
	opt.Store, opt.Runs = store, startWords{}
	f, stop := follow(t, opt, r)
	waitCalls(t, r, "crash", "last words", "gone", "start")
	if s := f.State(); len(s) != 1 || s[0].Path != filepath.Join(dir, "*.log") {
		t.Errorf("state %+v", s)
	}

	// The kubelet rotates: the same run.
	must(t, os.Rename(file("2.log"), file("2.log.20261130-140311")))
	write(t, file("2.log"), "more\n")
	waitCalls(t, r, "crash", "last words", "gone", "start", "rotated", "more")
	must(t, compressFile(file("2.log.20261130-140311"), file("2.log.20261130-140311.gz")))

	// Two restarts between two looks.
	write(t, file("3.log"), "short life\n")
	write(t, file("4.log"), "again\n")
	want := []string{"crash", "last words", "gone", "start", "rotated", "more", "gone", "short life", "gone", "again"}
	waitCalls(t, r, want...)
	for _, e := range r.all() {
		if e.call != "line" {
			continue
		}
		restart := map[string]int{"crash": 1, "last words": 1, "start": 2, "more": 2, "short life": 3, "again": 4}[e.text]
		m := Meta{Namespace: "prod", Pod: "vllm-7d9c-x2", Container: "server", Restart: restart}
		if d := cmp.Diff(m, e.ref.Meta); d != "" {
			t.Errorf("%s: %s", e.text, d)
		}
		f.Commit(e.ref, e.line.Next, 0)
	}
	eventually(t, "the earlier runs are forgotten", func() bool {
		must(t, f.Flush())
		return len(store.saved[filepath.Join(dir, "*.log")].Generations) == 2
	})
	stop()

	// Restarted while nobody looked.
	write(t, file("4.log"), "end of 4\n")
	write(t, file("5.log"), "start of 5\n")
	r = &recorder{}
	_, _ = follow(t, opt, r)
	waitCalls(t, r, "end of 4", "gone", "start of 5")

	// The pod is removed.
	must(t, os.RemoveAll(filepath.Join(pods, podFolder)))
	waitCalls(t, r, "end of 4", "gone", "start of 5", "gone")
}

// The run before the one that is written began in a generation that the kubelet
// has rotated; that the run is over is told between the two.
func TestBeginInAPod(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pods", podFolder, "server")
	must(t, os.MkdirAll(dir, 0o755))
	file := func(name string) string { return filepath.Join(dir, name) }
	write(t, file("2.log.20261130-020000"), "START2\n")
	must(t, compressFile(file("2.log.20261130-020000"), file("2.log.20261130-020000.gz")))
	write(t, file("2.log"), "crash\n")
	write(t, file("3.log.20261130-030000"), "START3\n")
	write(t, file("3.log"), "more\n")
	r := &recorder{}
	opt := fast(filepath.Join(dir, "*.log"))
	store := &memStore{}
	opt.Store, opt.Runs = store, startWords{}
	f, stop := follow(t, opt, r)
	waitCalls(t, r, "START2", "rotated", "crash", "gone", "START3", "rotated", "more")
	for _, e := range r.all() {
		if e.call == "line" && e.ref.Meta.Restart != map[string]int{"START2": 2, "crash": 2}[e.text] && e.ref.Meta.Restart != 3 {
			t.Errorf("%s is of restart %d", e.text, e.ref.Meta.Restart)
		}
		if e.text == "START2" { // a daemon that is killed here reads the rest again
			f.Commit(e.ref, e.line.Next, 0)
		}
	}
	stop()
	r = &recorder{}
	_, _ = follow(t, opt, r)
	waitCalls(t, r, "crash", "gone", "START3", "rotated", "more")
}
