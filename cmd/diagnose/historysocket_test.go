package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dynamicUser runs the daemon as systemd does with DynamicUser: as a user
// whose state nobody else may read, with a folder for its group.
type dynamicUser struct {
	dir   string
	group uint32
}

func newDynamicUser(t *testing.T) dynamicUser {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to run as several users")
	}
	u := dynamicUser{public(t), 64321}
	copyFile(t, os.Args[0], filepath.Join(u.dir, "diagnose"), 0o755)
	copyFile(t, filepath.Join(fixtures, "vllm-h200", "v0240-dsa-32768-0.92.log"), filepath.Join(u.dir, "vllm.log"), 0o644)
	for sub, mode := range map[string]os.FileMode{"state": 0o700, "run": 0o750} {
		path := filepath.Join(u.dir, sub)
		if err := errors.Join(os.Mkdir(path, mode), os.Chmod(path, mode), os.Chown(path, 64320, int(u.group))); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// command is the program, run by a user and group.
func (u dynamicUser) command(uid, gid uint32, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(u.dir, "diagnose"), args...)
	cmd.Dir = u.dir
	cmd.Env = []string{"RUNTIME_DIRECTORY=" + filepath.Join(u.dir, "run"), "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	return cmd
}

// watch starts the daemon and waits until it has recorded the crash.
func (u dynamicUser) watch(t *testing.T) (*exec.Cmd, *heard) {
	t.Helper()
	var said heard
	cmd := u.command(64320, u.group, "watch", "--state-dir", filepath.Join(u.dir, "state"), filepath.Join(u.dir, "vllm.log"))
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
		}
	})
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if list, _ := filepath.Glob(filepath.Join(u.dir, "state", "incidents", "*.json")); len(list) == 1 && strings.Contains(said.String(), "msg=following") {
			return cmd, &said
		}
		if time.Now().After(end) {
			t.Fatalf("no incident:\n%s", said.String())
		}
	}
}

// ask lists the incidents as a user.
func (u dynamicUser) ask(t *testing.T, uid, gid uint32, args ...string) (status int, out, errors string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := u.command(uid, gid, append([]string{"incidents", "--state-dir", filepath.Join(u.dir, "state")}, args...)...)
	cmd.Stdout, cmd.Stderr = &o, &e
	_ = cmd.Run() // the status says it
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// The group of the service sees the history that only root can read, also after
// the daemon was killed and has come back; another user does not.
func TestIncidentsForTheGroup(t *testing.T) {
	u := newDynamicUser(t)
	state, socket := filepath.Join(u.dir, "state"), filepath.Join(u.dir, "run", "incidents.sock")
	denied := "diagnose: error: state directory: open " + state + "/incidents: permission denied\ndiagnose: hint: "
	refused := func(uid, gid uint32, hint string) {
		t.Helper()
		if status, out, errs := u.ask(t, uid, gid); status != exitUsage || out != "" || errs != denied+hint+"\n" {
			t.Errorf("status %d: %s%s, expected the hint: %s", status, out, errs, hint)
		}
	}
	noDaemon := "use sudo; the service's group may ask the running daemon, but none answers at " + socket
	refused(nobody, u.group, noDaemon)
	for _, life := range []string{"first", "after kill -9"} {
		t.Run(life, func(t *testing.T) {
			daemon, said := u.watch(t)
			if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
				t.Errorf("%v, %v", info, err)
			}
			status, out, errs := u.ask(t, nobody, u.group)
			row := regexp.MustCompile(`(?m)^([0-9a-f]{12}) .* workspace +flashmla-sparse-mixed-batch .*/vllm\.log$`).FindStringSubmatch(out)
			if status != 0 || row == nil || errs != "" {
				t.Fatalf("status %d: %s%s\n%s", status, out, errs, said)
			}
			_, asRoot, _ := u.ask(t, 0, 0)
			if asRoot != out {
				t.Errorf("root reads\n%s\nthe group\n%s", asRoot, out)
			}
			if status, out, errs := u.ask(t, nobody, u.group, row[1][:6]); status != 0 || !strings.Contains(out, "--max-num-batched-tokens 16384") {
				t.Errorf("status %d: %s%s", status, out, errs)
			}
			if status, _, errs := u.ask(t, nobody, u.group, "zzz"); status != exitUsage || !strings.Contains(errs, `no incident "zzz"`) {
				t.Errorf("status %d: %s", status, errs)
			}
			refused(nobody, nobody, "it is for root and the group 64321: use sudo, or get into that group")
			if err := errors.Join(daemon.Process.Kill(), ignoreExit(daemon.Wait())); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(socket); err != nil {
				t.Errorf("a killed daemon leaves its socket: %v", err)
			}
			refused(nobody, u.group, noDaemon)
		})
	}
	daemon, _ := u.watch(t)
	if err := errors.Join(daemon.Process.Signal(syscall.SIGTERM), daemon.Wait()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a stopped daemon takes its socket away: %v", err)
	}
}

func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil
	}
	return err
}

// Another directory's daemon is not taken for the one that is asked for, and a
// socket that cannot be made does not keep the daemon from starting.
func TestIncidentsSocketInTheWay(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RUNTIME_DIRECTORY", run+":"+dir)
	socket := filepath.Join(run, "incidents.sock")
	ln, err := listenUnix(socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"state_dir": "/var/lib/other", "ids": []}`)
	})}
	go func() { served <- srv.Serve(ln) }()
	if h, hint := askDaemon(socket, dir); h != nil || hint != "use sudo; the daemon at "+socket+" keeps another one, /var/lib/other" {
		t.Errorf("%v, %q", h, hint)
	}
	state, log := filepath.Join(dir, "state"), filepath.Join(dir, "vllm.log")
	status, said := watched(t, "msg=following", "--state-dir", state, log)
	if want := `msg="only root can list the incidents" error="listen on ` + socket + `: another daemon uses it"`; status != 0 || !strings.Contains(said, want) {
		t.Errorf("status %d: %s", status, said)
	}
	if err := srv.Shutdown(context.Background()); err != nil || <-served != http.ErrServerClosed {
		t.Error(err)
	}

	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, said := watched(t, "msg=following", "--state-dir", state, log); status != 0 || !strings.Contains(said, "there is a file that is no socket") {
		t.Errorf("status %d: %s", status, said)
	}
	if _, err := os.Stat(socket); err != nil {
		t.Errorf("what is no socket was taken away: %v", err)
	}

	// One that nobody listens to is replaced.
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	if status, said := watched(t, "msg=following", "--state-dir", state, log); status != 0 || strings.Contains(said, "only root") {
		t.Errorf("status %d: %s", status, said)
	}
}
