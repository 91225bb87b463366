package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must come. Nothing waits that long
// unless it fails.
const patience = 90 * time.Second

// program is the binary under test.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "diagnose-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "diagnose")
		if out, err := exec.Command("go", "build", "-o", program, "diagnose/cmd/diagnose").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

func required() bool { return os.Getenv("DIAGNOSE_REQUIRE_E2E") == "1" }

// need skips a test whose tool is missing, and gives the tool's path.
func need(t *testing.T, command string) string {
	t.Helper()
	path, err := exec.LookPath(command)
	switch {
	case err == nil:
	case required():
		t.Fatalf("needs %s", command)
	default:
		t.Skipf("needs %s", command)
	}
	return path
}

// slow skips a test that takes a minute.
func slow(t *testing.T) {
	t.Helper()
	if !required() {
		t.Skip("takes a minute; DIAGNOSE_REQUIRE_E2E=1 runs it")
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("did not happen in %s: %s", patience, what)
}

// freePort gives an address on loopback that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// appendTo writes like a server does: at the end of a file that stays open to
// others.
func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// daemon is a running "diagnose watch" with its directory: logs in logs/, its
// state in state/, what it has to say in stderr.
type daemon struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
}

// newDaemon prepares a directory with a configuration; notify is its section of
// that name.
func newDaemon(t *testing.T, notify string) *daemon {
	t.Helper()
	d := &daemon{t: t, dir: t.TempDir()}
	if err := os.Mkdir(d.path("logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, d.path("config.yaml"), fmt.Sprintf(`
paths: [%s/*.log]
state_dir: %s
jsonl: %s
host: node17
timing: {gather: 500ms, settle: 2s}
notify:
%s`, d.path("logs"), d.path("state"), d.path("incidents.jsonl"), notify))
	t.Cleanup(d.kill)
	return d
}

func (d *daemon) path(name string) string { return filepath.Join(d.dir, name) }

func (d *daemon) start() {
	d.t.Helper()
	f, err := os.OpenFile(d.path("stderr"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	d.cmd = exec.Command(program, "watch", "--config", d.path("config.yaml"))
	d.cmd.Stderr = f
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
}

// kill ends the daemon as a power cut would.
func (d *daemon) kill() {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Kill() // it may be gone already
	_ = d.cmd.Wait()         // killed: the status says no more
	d.cmd = nil
}

// stop ends it in order, and expects that.
func (d *daemon) stop() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		d.t.Error(err)
	}
	if err := d.cmd.Wait(); err != nil {
		d.t.Errorf("stop: %v", err)
	}
	d.cmd = nil
}

// said is what the daemon wrote to its own log and to the JSON lines.
func (d *daemon) said() string {
	var b bytes.Buffer
	for _, name := range []string{"stderr", "incidents.jsonl"} {
		text, err := os.ReadFile(d.path(name))
		if err == nil {
			b.Write(text)
		}
	}
	return b.String()
}

const fixture = "../fixtures/vllm-h200/v0240-dsa-32768-0.92.log"

// server is the log of one server: a start, a crash, whose times are moved to
// now so that it is no old story.
type server struct {
	start, crash string
	first        int // pid
}

// newServer gives a server of its own: its processes have pids that start at
// first.
func newServer(t *testing.T, first int) server {
	t.Helper()
	text := rewrite(t, read(t, fixture), first, time.Now())
	start, crash, ok := strings.Cut(text, readyLine)
	if !ok {
		t.Fatalf("%s: no %q", fixture, readyLine)
	}
	return server{start: start + readyLine, crash: crash, first: first}
}

const readyLine = "Application startup complete.\n"

// rewrite gives a log other times and pids.
func rewrite(t *testing.T, text string, first int, at time.Time) string {
	t.Helper()
	text = regexp.MustCompile(`\b\d\d-\d\d \d\d:\d\d:\d\d\b`).ReplaceAllString(text, at.UTC().Format("01-02 15:04:05"))
	for i, pid := range []string{"2476", "2643"} {
		text = strings.ReplaceAll(text, "pid="+pid, fmt.Sprint("pid=", first+i))
		text = strings.ReplaceAll(text, "["+pid+"]", fmt.Sprintf("[%d]", first+i))
	}
	return text
}

// restarted is the next start of that server with flags changed: pairs of a
// name in "non-default args" and its new value.
func (s server) restarted(t *testing.T, change ...string) string {
	t.Helper()
	out, _, _ := strings.Cut(rewrite(t, read(t, fixture), s.first+50, time.Now().Add(time.Minute)), readyLine)
	out += readyLine
	for i := 0; i < len(change); i += 2 {
		old := regexp.MustCompile(`'` + change[i] + `': [^,}]+`)
		if set := "'" + change[i] + "': " + change[i+1]; old.MatchString(out) {
			out = old.ReplaceAllString(out, set)
		} else {
			out = strings.Replace(out, "non-default args: {", "non-default args: {"+set+", ", 1)
		}
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
