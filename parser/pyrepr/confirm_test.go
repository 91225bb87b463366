package pyrepr

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// normal is the form in which both sides give a value: a kind, and a text or
// elements. Python sorts nothing, and neither do we.
func normal(v Value) any {
	list := func(items []Value) []any {
		out := []any{}
		for _, item := range items {
			out = append(out, normal(item))
		}
		return out
	}
	switch v.Kind {
	case String:
		return []any{"str", v.Text()}
	case Int:
		n, _ := v.Int()
		return []any{"int", strconv.FormatInt(n, 10)}
	case Float:
		f, _ := v.Float()
		return []any{"float", strconv.FormatFloat(f, 'e', 17, 64)}
	case Bool, None:
		return []any{"constant", v.Source}
	case List:
		return []any{"list", list(v.Items)}
	case Tuple:
		return []any{"tuple", list(v.Items)}
	case Set: // as many elements; their order is Python's own affair
		return []any{"set"}
	case Dict:
		pairs := []any{}
		seen := map[string]int{}
		for _, e := range v.Entries {
			key, value := normal(e.Key), normal(e.Value)
			// True and 1 and 1.0 are one key in Python: such are not drawn.
			id, _ := json.Marshal(key)
			if i, ok := seen[string(id)]; ok {
				pairs[i] = []any{key, value}
				continue
			}
			seen[string(id)] = len(pairs)
			pairs = append(pairs, []any{key, value})
		}
		return []any{"dict", pairs}
	}
	return []any{v.Kind.String(), v.Source}
}

const script = `
import ast, json, sys
def normal(v):
    if v is None or v is True or v is False: return ["constant", repr(v)]
    if isinstance(v, str): return ["str", v]
    if isinstance(v, int): return ["int", str(v)]
    if isinstance(v, float): return ["float", "%.17e" % v]
    if isinstance(v, list): return ["list", [normal(x) for x in v]]
    if isinstance(v, tuple): return ["tuple", [normal(x) for x in v]]
    if isinstance(v, set): return ["set"]
    if isinstance(v, dict): return ["dict", [[normal(k), normal(x)] for k, x in v.items()]]
    return ["?", repr(v)]
print(json.dumps([normal(ast.literal_eval(s)) for s in json.load(sys.stdin)]))
`

// What Python can read, we read as Python does. Without python3 the test is
// skipped; DIAGNOSE_REQUIRE_PYTHON=1 turns the skip into a failure.
func TestConfirm(t *testing.T) {
	path, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("DIAGNOSE_REQUIRE_PYTHON") == "1" {
			t.Fatalf("python3: %v", err)
		}
		t.Skipf("python3: %v", err)
	}
	texts := []string{
		"{'model': '/models/glm', 'max_model_len': 131072, 'gpu_memory_utilization': 0.95, 'enforce_eager': True, 'x': None}",
		`'a\n\t\\\x41\u00e9\U0001f600\101\q\'"'`, `"it's"`, "'é😀'", "[(1,), (1, 2), [], {}]", "{1: {2: {3: 'x'}}}",
		"1e-06", "-1.5e+300", "0x7f", "{'a': 1, 'b': 2, 'a': 3}", "('(', ')', '[', '{', ',', ':')", "1_000",
	}
	draw := literal(3)
	for seed := range 300 {
		texts = append(texts, draw.Example(seed))
	}
	in, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-c", script)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(in)), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []json.RawMessage
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		v, rest, ok := Parse(text)
		if !ok || rest != "" {
			t.Errorf("%s: not read whole", text)
			continue
		}
		if got, want := canonical(t, normal(v)), canonical(t, want[i]); got != want {
			t.Errorf("%s\npython: %s\ngot:    %s", text, want, got)
		}
	}
}

// canonical writes JSON with one spelling of each character and float.
func canonical(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var again any
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	raw, err = json.Marshal(again)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
