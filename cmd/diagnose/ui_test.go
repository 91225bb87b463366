package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestPrintError(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"plain", errors.New("open x: no"), "diagnose: error: open x: no\n"},
		{"several", errors.Join(errors.New("a.yaml:1: one"), errors.New("b.yaml:2: two")), "diagnose: error: a.yaml:1: one\ndiagnose: error: b.yaml:2: two\n"},
		{"hint", withHint(errors.New("no log"), "name one"), "diagnose: error: no log\ndiagnose: hint: name one\n"},
		{"a wrapped hint", fmt.Errorf("read: %w", withHint(errors.New("no"), "do")), "diagnose: error: read: no\ndiagnose: hint: do\n"},
		{"control characters", errors.New("open \x1b[2J\u202e: no"), "diagnose: error: open ␛[2J<U+202E>: no\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			printError(&b, c.err)
			if b.String() != c.want {
				t.Errorf("got %q, expected %q", b.String(), c.want)
			}
		})
	}
}

func TestExitOf(t *testing.T) {
	// The whole rule is exit_status.txtar's; here only that a document decides.
	for _, c := range []struct {
		log  string
		want int
	}{
		{"vllm-h200/v0240-clean-stop.log", exitHealthy},
		{"vllm-h200/v0251-kv-pressure.log", exitHealthy},
		{"vllm-h200/v0251-kv-refused.log", exitFailure},
		{"signatures/S11-dead-without-cause.log", exitUnknown},
	} {
		if r := call(t, "", fixtures+"/"+c.log); r.status != c.want {
			t.Errorf("%s: status %d, expected %d", c.log, r.status, c.want)
		}
	}
}
