package matcher

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSameBytesSameDiagnosis reads each fixture several times: nothing in a
// diagnosis may hang on the order of a map, on a clock or on chance.
func TestSameBytesSameDiagnosis(t *testing.T) {
	cat := embedded(t)
	logs, err := filepath.Glob("../fixtures/*/*.log")
	if err != nil || len(logs) < 50 {
		t.Fatalf("%d fixtures, %v", len(logs), err)
	}
	for _, name := range logs {
		log, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		opt := Options{Set: map[string]string{"gpu-memory-utilization": "0.9", "max-num-seqs": "64", "enforce-eager": "True"}}
		var first []byte
		for range 4 {
			incidents, observations := diagnoseText(t, cat, log, opt)
			got, err := json.Marshal([][]Incident{incidents, observations})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			} else if diff := cmp.Diff(string(first), string(got)); diff != "" {
				t.Errorf("%s:\n%s", name, diff)
				break
			}
		}
	}
}
