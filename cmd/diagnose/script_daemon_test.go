package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience is how long a script waits for what must come. Nothing waits that
// long unless it fails.
const patience = 60 * time.Second

// running are the daemons of a script, by name.
type running map[string]*exec.Cmd

type runningKey struct{}

func prepareDaemons(e *testscript.Env) {
	all := running{}
	e.Values[runningKey{}] = all
	e.Defer(func() {
		for _, cmd := range all {
			_ = cmd.Process.Kill() // it may have ended
			_ = cmd.Wait()
		}
	})
}

// daemonCommands are for what runs while the script goes on.
func daemonCommands() map[string]scriptCommand {
	named := func(ts *testscript.TestScript, name string) *exec.Cmd {
		cmd := ts.Value(runningKey{}).(running)[name]
		if cmd == nil {
			ts.Fatalf("no daemon %s", name)
		}
		return cmd
	}
	return map[string]scriptCommand{
		// daemon NAME ARG...: start "diagnose watch ARG..."; what it says goes to
		// the file NAME.log.
		"daemon": plain(2, func(ts *testscript.TestScript, args []string) error {
			log, err := os.OpenFile(ts.MkAbs(args[0]+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			defer log.Close()
			path, err := lookIn(ts.Getenv("PATH"), "diagnose")
			if err != nil {
				return err
			}
			cmd := exec.Command(path, append([]string{"watch"}, args[1:]...)...)
			cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), log, log
			cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "TMPDIR=" + ts.Getenv("TMPDIR"), "HOME=" + ts.Getenv("HOME")}
			if err := cmd.Start(); err != nil {
				return err
			}
			ts.Value(runningKey{}).(running)[args[0]] = cmd
			return nil
		}),
		// signal NAME HUP|TERM|KILL
		"signal": plain(2, func(ts *testscript.TestScript, args []string) error {
			which := map[string]os.Signal{"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
			return named(ts, args[0]).Process.Signal(which[args[1]])
		}),
		// ends NAME STATUS: wait for the end, at most 10 s; STATUS is -1 after a kill.
		"ends": plain(2, func(ts *testscript.TestScript, args []string) error {
			cmd := named(ts, args[0])
			late := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
			err := cmd.Wait()
			delete(ts.Value(runningKey{}).(running), args[0])
			if !late.Stop() {
				return errors.New("it did not end within 10 s")
			}
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return err
			}
			if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != args[1] {
				return fmt.Errorf("exit status %s, expected %s:\n%s", got, args[1], ts.ReadFile(args[0]+".log"))
			}
			return nil
		}),
		// awaits FILE PATTERN [COUNT]: wait until so many lines of a file match.
		"awaits": plain(2, func(ts *testscript.TestScript, args []string) error {
			count := 1
			if len(args) > 2 {
				if _, err := fmt.Sscan(args[2], &count); err != nil {
					return err
				}
			}
			re, err := regexp.Compile("(?m)" + args[1])
			if err != nil {
				return err
			}
			var data []byte
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				data, _ = os.ReadFile(ts.MkAbs(args[0])) // it may not be there yet
				if len(re.FindAll(data, -1)) >= count {
					return nil
				}
			}
			return fmt.Errorf("%s: %q does not come %d times:\n%s", args[0], args[1], count, data)
		}),
		// append TARGET SOURCE: write at the end of a file, as a server does.
		"append": plain(2, func(ts *testscript.TestScript, args []string) error {
			f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			_, err = io.WriteString(f, ts.ReadFile(args[1]))
			return errors.Join(err, f.Close())
		}),
		// fresh SOURCE TARGET [PID]: copy a log whose times are now, and whose pids
		// begin at PID.
		"fresh": plain(2, func(ts *testscript.TestScript, args []string) error {
			text := regexp.MustCompile(`\b\d\d-\d\d \d\d:\d\d:\d\d\b`).ReplaceAllString(ts.ReadFile(args[0]), time.Now().UTC().Format("01-02 15:04:05"))
			if len(args) > 2 {
				text = regexp.MustCompile(`pid=\d`).ReplaceAllString(text, "pid="+args[2])
			}
			return os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600)
		}),
		// freeport NAME: put a loopback address that was free a moment ago into a
		// variable.
		"freeport": plain(1, func(ts *testscript.TestScript, args []string) error {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			ts.Setenv(args[0], ln.Addr().String())
			return ln.Close()
		}),
		// get URL FILE: write status and body of an answer; waits for the server.
		"get": plain(2, func(ts *testscript.TestScript, args []string) error {
			var err error
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				var resp *http.Response
				if resp, err = http.Get(args[0]); err != nil {
					continue
				}
				body, readErr := io.ReadAll(resp.Body)
				if err := errors.Join(readErr, resp.Body.Close()); err != nil {
					return err
				}
				return os.WriteFile(ts.MkAbs(args[1]), fmt.Appendf(nil, "%d\n%s", resp.StatusCode, body), 0o600)
			}
			return err
		}),
		// awaitsget URL PATTERN: ask until the answer matches.
		"awaitsget": plain(2, func(ts *testscript.TestScript, args []string) error {
			re, err := regexp.Compile("(?m)" + args[1])
			if err != nil {
				return err
			}
			var body []byte
			for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
				resp, err := http.Get(args[0])
				if err != nil {
					return err
				}
				body, err = io.ReadAll(resp.Body)
				if err := errors.Join(err, resp.Body.Close()); err != nil {
					return err
				}
				if body = fmt.Appendf(nil, "%d\n%s", resp.StatusCode, body); re.Match(body) {
					return nil
				}
			}
			return fmt.Errorf("%s: %q does not come:\n%s", args[0], args[1], body)
		}),
		// rooted FILE: put the script's directory for WORK in a file.
		"rooted": plain(1, func(ts *testscript.TestScript, args []string) error {
			text := strings.ReplaceAll(ts.ReadFile(args[0]), "WORK", ts.MkAbs("."))
			return os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600)
		}),
		// unrooted FILE: the other way round, for an output to be compared.
		"unrooted": plain(1, func(ts *testscript.TestScript, args []string) error {
			text := strings.ReplaceAll(ts.ReadFile(args[0]), ts.MkAbs("."), "WORK")
			return os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600)
		}),
		// idof FILE: put the id of the first incident of a file of JSON lines into
		// $ID, cut to eight digits.
		"idof": plain(1, func(ts *testscript.TestScript, args []string) error {
			m := regexp.MustCompile(`"incident":\{"id":"([0-9a-f]{8})`).FindStringSubmatch(ts.ReadFile(args[0]))
			if m == nil {
				return errors.New("no incident")
			}
			ts.Setenv("ID", m[1])
			return nil
		}),
		// events FILE TARGET: list "event status" of a file of JSON lines, and hold
		// each incident against the schema.
		"events": plain(2, func(ts *testscript.TestScript, args []string) error {
			var out bytes.Buffer
			for line := range strings.Lines(ts.ReadFile(args[0])) {
				var e struct {
					Event    string
					Time     time.Time
					Incident json.RawMessage
				}
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					return err
				}
				var in struct{ Status string }
				if err := json.Unmarshal(e.Incident, &in); err != nil {
					return err
				}
				doc := fmt.Sprintf(`{"schema": "diagnose/v1", "tool": {"version": "", "catalog": ""}, "inputs": [], "observations": [], "incidents": [%s]}`, e.Incident)
				if err := valid([]byte(doc)); err != nil {
					return err
				}
				if e.Time.IsZero() {
					return errors.New("an event without a time")
				}
				fmt.Fprintln(&out, e.Event, in.Status)
			}
			return os.WriteFile(ts.MkAbs(args[1]), out.Bytes(), 0o600)
		}),
	}
}

// lookIn finds a program in a PATH that is not this process's.
func lookIn(path, name string) (string, error) {
	for dir := range strings.SplitSeq(path, string(os.PathListSeparator)) {
		if p, err := exec.LookPath(dir + "/" + name); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("no %s in %s", name, path)
}
