package version

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// python runs a script against the real implementation and skips without one;
// DIAGNOSE_REQUIRE_PYTHON=1 turns the skip into a failure.
func python(t *testing.T, script string, input any) []byte {
	t.Helper()
	skip := t.Skipf
	if os.Getenv("DIAGNOSE_REQUIRE_PYTHON") == "1" {
		skip = t.Fatalf
	}
	path, err := exec.LookPath("python3")
	if err != nil {
		skip("python3: %v", err)
	}
	if out, err := exec.Command(path, "-c", "import packaging.version").CombinedOutput(); err != nil {
		skip("python3 has no packaging: %s", out)
	}
	in, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-c", script)
	cmd.Stdin = strings.NewReader(string(in))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestConfirmOrder(t *testing.T) {
	out := python(t, `
import json, sys
from packaging.version import Version
vs = [Version(s) for s in json.load(sys.stdin)]
print(json.dumps([[(a > b) - (a < b) for b in vs] for a in vs]))`, inOrder)
	var want [][]int
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	for i, a := range inOrder {
		for j, b := range inOrder {
			va, _ := Parse(a)
			vb, _ := Parse(b)
			if got := Compare(va, vb); got != want[i][j] {
				t.Errorf("Compare(%s, %s): packaging says %d, got %d", a, b, want[i][j], got)
			}
		}
	}
}

// For releases, sets mean what they mean to pip.
func TestConfirmSets(t *testing.T) {
	input := struct{ Sets, Versions []string }{
		Sets: []string{
			"<0.29", "<=0.29", "==0.29.*", "!=0.29.*", ">=0.30,<=0.33.0", "~=0.29.1", "~=0.29",
			"==0.6.6", ">0.6.6", ">=0.6.6.post1", "==0.6.6.*", "<0.24.0rc1", ">=0.24.0.dev1", "!=0.24",
		},
		Versions: []string{
			"0.6.6", "0.6.6.post1", "0.9.2", "0.24.0", "0.24", "0.24.0+cu129", "0.28.3", "0.29",
			"0.29.0", "0.29.1", "0.29.1.post2", "0.30.0", "0.33.0", "0.33.1", "1.0", "1!0.29.0",
		},
	}
	out := python(t, `
import json, sys
from packaging.specifiers import SpecifierSet
d = json.load(sys.stdin)
print(json.dumps([[SpecifierSet(s).contains(v, prereleases=True) for v in d["Versions"]] for s in d["Sets"]]))`, input)
	var want [][]bool
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	for i, s := range input.Sets {
		set, err := ParseSet(s)
		if err != nil {
			t.Fatal(err)
		}
		for j, text := range input.Versions {
			v, _ := Parse(text)
			if got := set.Contains(v); got != want[i][j] {
				t.Errorf("%s in %s: packaging says %v, got %v", text, s, want[i][j], got)
			}
		}
	}
}
