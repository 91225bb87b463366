package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/script: the command line, one topic a file.
// Beside the commands of testscript there are those of scriptCommands, the
// condition [root], FIXTURES, the folder of logs, and ESC, an escape character.
func TestScripts(t *testing.T) {
	logs, err := filepath.Abs(fixtures)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("FIXTURES", logs)
			e.Setenv("ESC", "\x1b")
			prepareDaemons(e)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, errors.New("unknown condition")
		},
		Cmds: scriptCommands(),
	})
}

type scriptCommand = func(ts *testscript.TestScript, neg bool, args []string)

func scriptCommands() map[string]scriptCommand {
	all := map[string]scriptCommand{
		// exits STATUS COMMAND ARG...: run it and compare the exit status.
		"exits": plain(2, func(ts *testscript.TestScript, args []string) error {
			want, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			got := 0
			var exit *exec.ExitError
			if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
				got = exit.ExitCode()
			} else if err != nil {
				return err
			}
			if got != want {
				ts.Fatalf("exit status %d, expected %d", got, want)
			}
			return nil
		}),
		// lines FROM TO SOURCE TARGET: copy some lines, from 1; TO may be "end".
		"lines": plain(4, func(ts *testscript.TestScript, args []string) error {
			all := strings.SplitAfter(ts.ReadFile(args[2]), "\n")
			from, err := strconv.Atoi(args[0])
			to := len(all)
			if args[1] != "end" {
				to, err = strconv.Atoi(args[1])
			}
			if err != nil || from < 1 || to > len(all) {
				return errors.New("no such lines")
			}
			return os.WriteFile(ts.MkAbs(args[3]), []byte(strings.Join(all[from-1:to], "")), 0o644)
		}),
		// bytes COUNT SOURCE TARGET: copy the first bytes.
		"bytes": plain(3, func(ts *testscript.TestScript, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			data := ts.ReadFile(args[1])
			if n < 0 || n > len(data) {
				return fmt.Errorf("%s has %d bytes", args[1], len(data))
			}
			return os.WriteFile(ts.MkAbs(args[2]), []byte(data[:n]), 0o644)
		}),
		// concat TARGET SOURCE...: put files behind each other.
		"concat": plain(2, func(ts *testscript.TestScript, args []string) error {
			var b bytes.Buffer
			for _, s := range args[1:] {
				b.WriteString(ts.ReadFile(s))
			}
			return os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o644)
		}),
		// pack gzip|zstd SOURCE TARGET: compress.
		"pack": plain(3, func(ts *testscript.TestScript, args []string) error {
			var b bytes.Buffer
			var w io.WriteCloser = gzip.NewWriter(&b)
			if args[0] == "zstd" {
				z, err := zstd.NewWriter(&b)
				if err != nil {
					return err
				}
				w = z
			}
			if _, err := io.WriteString(w, ts.ReadFile(args[1])); err != nil {
				return err
			}
			if err := w.Close(); err != nil {
				return err
			}
			return os.WriteFile(ts.MkAbs(args[2]), b.Bytes(), 0o644)
		}),
		// hex DIGITS TARGET: write these bytes.
		"hex": plain(2, func(ts *testscript.TestScript, args []string) error {
			data, err := hex.DecodeString(args[0])
			if err != nil {
				return err
			}
			return os.WriteFile(ts.MkAbs(args[1]), data, 0o644)
		}),
		// longline MIB TARGET: append one line of that length.
		"longline": plain(2, func(ts *testscript.TestScript, args []string) error {
			mib, err := strconv.Atoi(args[0])
			if err != nil {
				return err
			}
			f, err := os.OpenFile(ts.MkAbs(args[1]), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			if err != nil {
				return err
			}
			piece := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
			for range mib {
				if _, err := f.Write(piece); err != nil {
					return errors.Join(err, f.Close())
				}
			}
			_, err = f.WriteString("\n")
			return errors.Join(err, f.Close())
		}),
		// appears FILE: wait until a program in the background has written to it.
		"appears": plain(1, func(ts *testscript.TestScript, args []string) error {
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				if st, err := os.Stat(ts.MkAbs(args[0])); err == nil && st.Size() > 0 {
					return nil
				}
			}
			return fmt.Errorf("%s does not appear", args[0])
		}),
		// schema FILE: hold JSON against the shipped schema.
		"schema": plain(1, func(ts *testscript.TestScript, args []string) error {
			return valid([]byte(ts.ReadFile(args[0])))
		}),
	}
	maps.Copy(all, daemonCommands())
	return all
}

// plain is a command with a least number of arguments that cannot be negated.
func plain(least int, do func(ts *testscript.TestScript, args []string) error) scriptCommand {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < least {
			ts.Fatalf("wrong use")
		}
		ts.Check(do(ts, args))
	}
}
