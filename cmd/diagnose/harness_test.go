package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"diagnose/matcher"
	"diagnose/report"
)

var update = flag.Bool("update", false, "rewrite golden files, the expected output in scripts, and the README's first screen")

func TestMain(m *testing.M) {
	// The scripts run this test binary again under the program's name.
	testscript.Main(m, map[string]func(){"diagnose": func() { os.Exit(run()) }})
}

// fixtures is the folder of logs, seen from this package.
const fixtures = "../../fixtures"

// result is what one call of the program gave.
type result struct {
	status      int
	out, errors string
}

// call runs the program in-process.
func call(t testing.TB, stdin string, args ...string) result {
	t.Helper()
	var out, errw bytes.Buffer
	status := execute(t.Context(), args, strings.NewReader(stdin), &out, &errw)
	return result{status, out.String(), errw.String()}
}

// document decodes a result in the JSON format and holds it against the
// schema.
func (r result) document(t testing.TB) matcher.Document {
	t.Helper()
	var d matcher.Document
	if err := json.Unmarshal([]byte(r.out), &d); err != nil {
		t.Fatalf("status %d, no document: %v\n%s", r.status, err, r.errors)
	}
	if err := valid([]byte(r.out)); err != nil {
		t.Errorf("not as the schema says: %v", err)
	}
	return d
}

// valid checks JSON against the shipped schema.
func valid(data []byte) error {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(report.Schema()))
	if err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("diagnose-v1.json", schema); err != nil {
		return err
	}
	compiled, err := c.Compile("diagnose-v1.json")
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return compiled.Validate(v)
}

// golden compares got with a file under testdata/golden, or rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	written(t, filepath.Join("testdata", "golden", name), got)
}

// written compares got with a file, or rewrites it.
func written(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test ./cmd/diagnose -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), to be read and then accepted with -update:\n%s", file, diff)
	}
}
