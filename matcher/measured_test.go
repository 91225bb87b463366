package matcher

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"diagnose/parser"
)

// diagnoseText runs a whole log through parser and tracker.
func diagnoseText(t *testing.T, cat *Catalog, log []byte, opt Options) (incidents, observations []Incident) {
	t.Helper()
	tr := NewTracker(cat, opt)
	p := parser.New(tr.Add)
	offset := int64(0)
	for n, line := range bytes.Split(bytes.TrimSuffix(log, []byte("\n")), []byte("\n")) {
		p.Line(parser.Line{At: parser.Pos{Line: int64(n + 1), Offset: offset}, Data: line})
		offset += int64(len(line)) + 1
	}
	p.Flush()
	return tr.Incidents()
}

func embedded(t *testing.T) *Catalog {
	t.Helper()
	cat, err := EmbeddedCatalog()
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

// The measured model of one H200 with 8 heads a rank: what is free when the
// call begins, and what it needs. It agrees with all outcomes of the
// measurements (0.25 GiB is fitted on them).
const (
	h200Total    = 150_109_880_320.0
	callPerToken = 410_368.0
	fitted       = 0.25 * (1 << 30)
)

func serves(tokens, utilisation float64) bool {
	return (1-utilisation)*h200Total-fitted >= callPerToken*tokens
}

// TestAdviceLiesOnTheMeasuredSide takes each run that died in the measurements
// and asks that every step of the answer lies on the side that was measured to
// serve: 32768 tokens at 0.88 and 0.90, 8192 at 0.95 served; 20480 at 0.95,
// 16384 at 0.97, 32768 at 0.92 and 0.95 did not.
func TestAdviceLiesOnTheMeasuredSide(t *testing.T) {
	base, err := os.ReadFile("../fixtures/vllm-h200/v0240-dsa-32768-0.92.log")
	if err != nil {
		t.Fatal(err)
	}
	cat := embedded(t)
	for _, row := range []struct {
		name                     string
		tokens                   int
		utilisation              float64
		tried, free, unallocated string
		allocated, process       string
	}{
		{"32768 at 0.92", 32768, 0.92, "8.00 GiB", "6.42 GiB", "109.53 MiB", "132.54 GiB", "133.37 GiB"},
		{"32768 at 0.95", 32768, 0.95, "8.00 GiB", "2.23 GiB", "109.53 MiB", "136.73 GiB", "137.56 GiB"},
		{"32768 at 0.95 with graphs", 32768, 0.95, "8.00 GiB", "1.33 GiB", "109.53 MiB", "137.63 GiB", "138.46 GiB"},
		{"32768 at 0.97, a smaller tensor", 32768, 0.97, "2.00 GiB", "1.45 GiB", "109.53 MiB", "137.51 GiB", "138.34 GiB"},
		{"16384 at 0.97", 16384, 0.97, "4.00 GiB", "1.79 GiB", "109.53 MiB", "137.17 GiB", "138.00 GiB"},
		{"20480 at 0.95", 20480, 0.95, "5.00 GiB", "4.01 GiB", "109.53 MiB", "134.95 GiB", "135.78 GiB"},
		{"26624 at 0.92, the second step", 26624, 0.92, "6.50 GiB", "829.44 MiB", "6.58 GiB", "131.68 GiB", "138.98 GiB"},
		{"32768 at 0.95, the least free rank of two", 32768, 0.95, "8.00 GiB", "755.12 MiB", "150.48 MiB", "138.20 GiB", "139.05 GiB"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if serves(float64(row.tokens), row.utilisation) && row.tokens != 26624 {
				t.Fatalf("the model says that this run serves; it died")
			}
			log := rewriteRun(base, row.tokens, row.utilisation, row.tried, row.free, row.unallocated, row.allocated, row.process)
			incidents, _ := diagnoseText(t, cat, log, Options{})
			if len(incidents) != 1 {
				t.Fatalf("%d incidents", len(incidents))
			}
			in := incidents[0]
			if in.Verdict.Mechanism == nil || *in.Verdict.Mechanism != "flashmla-sparse-mixed-batch" {
				t.Fatalf("verdict %+v", in.Verdict)
			}
			checkSteps(t, in, row.tokens, row.utilisation)
		})
	}
}

func checkSteps(t *testing.T, in Incident, tokens int, utilisation float64) {
	t.Helper()
	seenUtil, seenTokens := false, false
	for _, r := range in.Remedies {
		u, b := utilisation, float64(tokens)
		if v, ok := r.Set["--gpu-memory-utilization"]; ok {
			u = number(t, v)
			seenUtil = true
			if u >= utilisation {
				t.Errorf("step %d raises the utilisation to %v", r.Rank, u)
			}
		}
		if v, ok := r.Set["--max-num-batched-tokens"]; ok {
			b = number(t, v)
			seenTokens = true
		}
		_, pinned := r.Set["--kv-cache-memory-bytes"]
		if len(r.Set) == 0 || pinned && b == float64(tokens) {
			continue // text only, or a smaller pin, checked by its own arithmetic
		}
		if !serves(b, u) {
			t.Errorf("step %d advises %v tokens at %v, which was measured not to serve (%v)", r.Rank, b, u, r.Set)
		}
	}
	if !seenUtil || !seenTokens {
		t.Errorf("no computed step for the utilisation (%v) or the token budget (%v)", seenUtil, seenTokens)
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// rewriteRun gives the base run other figures, as that run printed them.
func rewriteRun(base []byte, tokens int, u float64, tried, free, unallocated, allocated, process string) []byte {
	s := string(base)
	s = strings.ReplaceAll(s, "'max_num_batched_tokens': 32768", fmt.Sprintf("'max_num_batched_tokens': %d, 'gpu_memory_utilization': %v", tokens, u))
	s = strings.ReplaceAll(s, "max_num_batched_tokens=32768", fmt.Sprintf("max_num_batched_tokens=%d", tokens))
	s = strings.ReplaceAll(s, "total_num_scheduled_tokens=32768", fmt.Sprintf("total_num_scheduled_tokens=%d", tokens))
	kv := u*139.80 - 3.98 - 2.24
	s = strings.ReplaceAll(s, "Available KV cache memory: 122.4 GiB", fmt.Sprintf("Available KV cache memory: %.2f GiB", kv))
	oom := fmt.Sprintf("Tried to allocate %s. GPU 0 has a total capacity of 139.80 GiB of which %s is free. Including non-PyTorch memory, this process has %s memory in use. Of the allocated memory %s is allocated by PyTorch, and %s is reserved by PyTorch but unallocated.", tried, free, process, allocated, unallocated)
	return []byte(regexp.MustCompile(`Tried to allocate .*? but unallocated\.`).ReplaceAllString(s, oom))
}
