package notify

import (
	"strings"

	"github.com/hashicorp/go-multierror"
)

// problems collects failures that do not depend on each other. It is not safe
// for concurrent use. This file alone imports go-multierror, whose Append
// returns a pointer that is never nil: only ErrorOrNil leaves here.
type problems struct {
	list *multierror.Error
}

func (p *problems) add(err error) {
	if err == nil {
		return
	}
	p.list = multierror.Append(p.list, err)
	p.list.ErrorFormat = onePerLine
}

// err returns nil when nothing was added.
func (p *problems) err() error {
	return p.list.ErrorOrNil()
}

func onePerLine(errs []error) string {
	lines := make([]string, len(errs))
	for i, err := range errs {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}
