package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"diagnose/matcher"
)

//go:embed page.html.tmpl
var pageTemplate string

// HTML writes d as one page that needs nothing else: no script, no font, no
// image, no link. It follows the reader's choice of light or dark.
func HTML(w io.Writer, d matcher.Document, o Options) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"lines":   func(q quote) string { return strings.Join(q.essential(quoteWidth), "\n") },
		"where":   quote.where,
		"command": func(s step) string { return strings.Join(commandLines(s.Command, quoteWidth), "\n") },
		"parts":   step.parts,
		"join":    func(list []string) string { return strings.Join(list, " · ") },
		"named":   func(name string, list []string) namedList { return namedList{name, list} },
		"stated":  func(name string, list []statement) namedStatements { return namedStatements{name, list} },
		"titled":  func(name string, list []step) namedSteps { return namedSteps{name, list} },
		"count":   func(n int) string { return counted(n, "incident") },
	}).Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("parse page: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, newPage(d, o)); err != nil {
		return fmt.Errorf("render page: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// The template's blocks take one value each.
type (
	namedList struct {
		Name string
		List []string
	}
	namedStatements struct {
		Name string
		List []statement
	}
	namedSteps struct {
		Name string
		List []step
	}
)
