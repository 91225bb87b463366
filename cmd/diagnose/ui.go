package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"diagnose/report"

	"github.com/hashicorp/go-multierror"
	"golang.org/x/term"
)

// The rules of what a person sees:
//   - the answer goes to stdout, everything about the program to stderr;
//   - a message is lower case, has no full stop, and says what is wrong, then
//     (as a hint) what to do where that is surely right;
//   - several problems are several lines, each "diagnose: error: ...";
//   - names and values are shown without control characters;
//   - colour and progress only on a terminal, and NO_COLOR is honoured.

// Exit statuses of a post-mortem.
const (
	exitHealthy = 0 // no failure found
	exitFailure = 1 // a failure was found and named
	exitUsage   = 2 // usage or I/O error
	exitUnknown = 3 // a failure was found and its cause is unknown
)

// hinted is an error with a line that says what to do.
type hinted struct {
	err  error
	hint string
}

func (h hinted) Error() string { return h.err.Error() }
func (h hinted) Unwrap() error { return h.err }

func withHint(err error, hint string) error { return hinted{err, hint} }

// printError prints each error as one message, with its hint.
func printError(w io.Writer, err error) {
	var several *multierror.Error
	if errors.As(err, &several) && len(several.Errors) > 1 {
		for _, e := range several.Errors {
			printError(w, e)
		}
		return
	}
	for _, line := range strings.Split(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintf(w, "diagnose: error: %s\n", report.SafeText(strings.TrimSpace(line)))
	}
	var h hinted
	if errors.As(err, &h) {
		fmt.Fprintf(w, "diagnose: hint: %s\n", report.SafeText(h.hint))
	}
}

func printWarning(w io.Writer, format string, args ...any) {
	fmt.Fprintf(w, "diagnose: warning: %s\n", report.SafeText(fmt.Sprintf(format, args...)))
}

// isTerminal tells whether a stream is one; only then colour and progress are
// shown.
func isTerminal(v any) bool {
	if o, ok := v.(*output); ok {
		v = o.to
	}
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// look is how a report is laid out on a stream.
func look(w io.Writer) (width int, color bool) {
	width = 80
	if o, ok := w.(*output); ok {
		w = o.to
	}
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			width = n
		}
	}
	return min(width, 120), isTerminal(w) && os.Getenv("NO_COLOR") == ""
}
