package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

const usageExamples = `  diagnose vllm.log                      why did this server die?
  diagnose vllm.log.2.gz vllm.log        generations of one log, read oldest first
  journalctl -u vllm -b --no-pager | diagnose -
  diagnose --format json vllm.log        the contract diagnose/v1
  diagnose explain flashmla-sparse-mixed-batch`

// app is one call of the program with everything that it touches.
type app struct {
	in       io.Reader
	out, err io.Writer
	// status is what a finished post-mortem exits with.
	status int
	// earlier counts the failed runs that a post-mortem found and left out.
	earlier int
}

// execute runs a command line and gives the exit status.
func execute(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	stdout := &output{to: out}
	a := &app{in: in, out: stdout, err: errw}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(stdout)
	root.SetErr(errw)
	if err := root.ExecuteContext(ctx); err != nil {
		if errors.Is(err, context.Canceled) {
			err = fmt.Errorf("interrupted")
		}
		printError(errw, err)
		return exitUsage
	}
	if stdout.err != nil {
		printError(errw, stdout.err) // a command that did not look at what a write gave
		return exitUsage
	}
	return a.status
}

// output is standard output. An answer that did not arrive is an error, also
// where a command does not look at what its write gave. A reader that has seen
// enough is none: the runtime then ends the program by SIGPIPE, without a word.
// Nor is a stream that was closed at the start: the runtime has put /dev/null in
// its place (runtime/fds_unix.go), as a caller does that wants only the exit
// status (Python's subprocess.DEVNULL), and the two cannot be told apart.
type output struct {
	to  io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.to.Write(p)
	o.err = err
	return n, err
}

func (a *app) rootCommand() *cobra.Command {
	var o oneshot
	cmd := &cobra.Command{
		Use:           "diagnose [flags] FILE...",
		Short:         "Tells why a vLLM server died",
		Long:          "Reads the log of a vLLM server and tells what really happened, with the lines,\nthe arithmetic, what it was not, and what to change.\n\nExit status: 0 no failure found, 1 a failure found, 3 a failure whose cause is\nunknown, 2 usage or I/O error.",
		Example:       usageExamples,
		Args:          cobra.ArbitraryArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withHint(fmt.Errorf("no log file given"), `name a log, or "-" for standard input; "diagnose --help" shows examples`)
			}
			return o.run(c.Context(), a, args)
		},
	}
	o.flags(cmd.Flags())
	cmd.CompletionOptions.HiddenDefaultCmd = false
	cmd.AddCommand(a.explainCommand(), a.catalogCommand(), a.versionCommand(), a.watchCommand(), a.incidentsCommand(), a.checkConfigCommand(), a.notifyCommand())
	return cmd
}

// showHelp is the run of a command that has only subcommands. Without a run
// cobra would not check the arguments.
func showHelp(c *cobra.Command, _ []string) error { return c.Help() }
