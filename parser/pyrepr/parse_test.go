package pyrepr

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// show writes a value so that its structure can be seen: strings quoted as Go
// does, everything else by kind.
func show(v Value) string {
	list := func(items []Value) string {
		parts := make([]string, len(items))
		for i, item := range items {
			parts[i] = show(item)
		}
		return strings.Join(parts, " ")
	}
	var entries []string
	for _, e := range v.Entries {
		if e.Key.Source == "" {
			entries = append(entries, show(e.Value))
			continue
		}
		entries = append(entries, show(e.Key)+":"+show(e.Value))
	}
	switch v.Kind {
	case String:
		return strconv.Quote(v.Text())
	case List:
		return "[" + list(v.Items) + "]"
	case Tuple:
		return "(" + list(v.Items) + ")"
	case Set:
		return "set{" + list(v.Items) + "}"
	case Dict:
		return "{" + strings.Join(entries, " ") + "}"
	case Call:
		return v.Name + "(" + strings.Join(entries, " ") + ")"
	case Raw:
		return "`" + v.Text() + "`"
	}
	return v.Text()
}

func TestParse(t *testing.T) {
	tests := []struct {
		text, want, rest string
		ok               bool
	}{
		{"None", "None", "", true},
		{"True, rest", "True", ", rest", true},
		{"null", "null", "", true},
		{"-12", "-12", "", true},
		{"0.95", "0.95", "", true},
		{"1e-06", "1e-06", "", true},
		{"0x7f00", "0x7f00", "", true},
		{"-inf", "-inf", "", true},
		{"'it\\'s \"x\"'", `"it's \"x\""`, "", true},
		{`"it's"`, `"it's"`, "", true},
		{`'a\n\t\\\x41\u00e9\U0001f600\101\q'`, `"a\n\t\\Aé😀A\\q"`, "", true},
		{`"\ud83d\ude00\/"`, `"😀/"`, "", true},
		{"[]", "[]", "", true},
		{"[1, 'a', None,]", `[1 "a" None]`, "", true},
		{"(1,)", "(1)", "", true},
		{"{}", "{}", "", true},
		{"set()", "set{}", "", true},
		{"{1, 2}", "set{1 2}", "", true},
		{"{'a': {'b': [1, (2, 3)]}, 'c': True}", `{"a":{"b":[1 (2 3)]} "c":True}`, "", true},
		{`{"a":1,"b":[true,null]}`, `{"a":1 "b":[true null]}`, "", true},
		// What is no literal stays as it is.
		{"torch.bfloat16, max_seq_len=1", "`torch.bfloat16`", ", max_seq_len=1", true},
		{"/models/x-7b", "`/models/x-7b`", "", true},
		{"turboquant_3bit_nc", "`turboquant_3bit_nc`", "", true},
		{"3bit", "`3bit`", "", true},
		{"<object at 0x7f3a00>", "`<object at 0x7f3a00>`", "", true},
		{"{'mode': <CompilationMode.NONE: 0>, 'x': 1}", "{\"mode\":`<CompilationMode.NONE: 0>` \"x\":1}", "", true},
		{"[<Type.BACKED: 'a>b'>, <function f.<locals>.g at 0x1>]", "[`<Type.BACKED: 'a>b'>` `<function f.<locals>.g at 0x1>`]", "", true},
		{"device(type='cuda', index=0)", "device(`type`:\"cuda\" `index`:0)", "", true},
		{"PosixPath('/x')", `PosixPath("/x")`, "", true},
		{"Tensor(shape=torch.Size([2, 3]), device=cuda:0,dtype=torch.int64)", "Tensor(`shape`:torch.Size([2 3]) `device`:`cuda:0` `dtype`:`torch.int64`)", "", true},
		{"array([1 2 3], dtype=int32)", "array([`1 2 3`] `dtype`:`int32`)", "", true},
		{"b'ab, c'", "`b'ab, c'`", "", true},
		{"1+2j", "`1+2j`", "", true},
		{"[lambda x: (x, 1), 2]", "[`lambda x: (x, 1)` 2]", "", true},
		{"[don't, won't]", "[`don't` `won't`]", "", true},
		{"<|im_end|>", "`<|im_end|>`", "", true},
		// The dialect of the dumps.
		{"{chatcmpl-1f:2: 2768, cmpl-2: 1}", "{`chatcmpl-1f:2`:2768 `cmpl-2`:1}", "", true},
		{"{9f1d-0: 300}", "{`9f1d-0`:300}", "", true},
		{"NewRequestData(req_id=cmpl-9f,block_ids=([26, 13],),lora=None)", "NewRequestData(`req_id`:`cmpl-9f` `block_ids`:([26 13]) `lora`:None)", "", true},
		{"{EngineCore_DP0: 1}", "{`EngineCore_DP0`:1}", "", true},
		{"{'EngineCore_DP0': None, 'VLLM_DP_Coordinator': -9}", `{"EngineCore_DP0":None "VLLM_DP_Coordinator":-9}`, "", true},
		// Cut text gives what stands before the cut.
		{"", "``", "", false},
		{"   ", "``", "", false},
		{"{'a': 1, 'b", `{"a":1}`, "", false},
		{"{'a': 1, 'b':", `{"a":1}`, "", false},
		{"{'a': 1, 'b': [2, 3", `{"a":1 "b":[2 3]}`, "", false},
		{"{'a': 'unfin", `{"a":"unfin"}`, "", false},
		{"F(x=1, y=<object at", "F(`x`:1 `y`:`<object at`)", "", false},
		{"[1, 2) tail", "[1 2]", ") tail", false},
		{"{'a': 1]", `{"a":1}`, "]", false},
		{")", "``", ")", false},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			v, rest, ok := Parse(tt.text)
			if got := show(v); got != tt.want || rest != tt.rest || ok != tt.ok {
				t.Errorf("want %s, rest %q, ok %v\ngot  %s, rest %q, ok %v", tt.want, tt.rest, tt.ok, got, rest, ok)
			}
		})
	}
}

func TestAccessors(t *testing.T) {
	v, _, _ := Parse("F(a=1, b='x', c=0.5, d=True, e=0xff, f=99999999999999999999, g=nan, a=2)")
	get := func(name string) Value {
		value, ok := v.Get(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		return value
	}
	if n, ok := get("a").Int(); n != 2 || !ok {
		t.Errorf("a: %d %v, want the last one", n, ok)
	}
	if s, ok := get("b").Str(); s != "x" || !ok {
		t.Errorf("b: %q %v", s, ok)
	}
	if f, ok := get("c").Float(); f != 0.5 || !ok {
		t.Errorf("c: %v %v", f, ok)
	}
	if f, ok := get("a").Float(); f != 2 || !ok {
		t.Errorf("a as a float: %v %v", f, ok)
	}
	if b, ok := get("d").Bool(); !b || !ok {
		t.Errorf("d: %v %v", b, ok)
	}
	if n, ok := get("e").Int(); n != 255 || !ok {
		t.Errorf("e: %d %v", n, ok)
	}
	if n, ok := get("f").Int(); ok {
		t.Errorf("f: %d, want none", n)
	}
	if f, ok := get("f").Float(); f < 9e19 || !ok {
		t.Errorf("f as a float: %v %v", f, ok)
	}
	if f, ok := get("g").Float(); f == f || !ok {
		t.Errorf("g: %v %v", f, ok)
	}
	if _, ok := get("b").Int(); ok {
		t.Error("a string is an integer")
	}
	if _, ok := v.Get("z"); ok {
		t.Error("there is a z")
	}
	if got := get("b").Kind.String() + " " + get("d").Kind.String() + " " + Kind(99).String(); got != "string bool kind 99" {
		t.Errorf("kinds: %s", got)
	}
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"True": "True", "'fp8'": "fp8", "0.95": "0.95", "None": "None", "torch.bfloat16": "torch.bfloat16",
		"[1, 2]": "[1, 2]", "{'a': 1}": "{'a': 1}", "'/models/it\\'s'": "/models/it's",
	} {
		v, _, _ := Parse(text)
		if got := v.Text(); got != want {
			t.Errorf("%s: want %s, got %s", text, want, got)
		}
	}
}

// Neither nesting nor length can make it slow, deep or large.
func TestBounds(t *testing.T) {
	for name, text := range map[string]string{
		"nested":        strings.Repeat("[", 1<<20),
		"nested dicts":  strings.Repeat("{'a': ", 1<<17),
		"nested raw":    strings.Repeat("a[", 1<<19),
		"many":          "[" + strings.Repeat("1,", 1<<19),
		"lone quotes":   "[" + strings.Repeat(" '\\", 1<<18),
		"angles":        strings.Repeat("<'", 1<<19),
		"long":          "'" + strings.Repeat("x", 1<<22) + "'",
		"broken nested": strings.Repeat("[1 ", 1<<18) + strings.Repeat("]", 1<<18),
	} {
		// A list of what is no value is a list of one Raw.
		if _, _, ok := Parse(text); ok && name != "broken nested" {
			t.Errorf("%s: read whole", name)
		}
		ParseKV("a=" + text)
		Field("a="+text+", b=1, c=2", "b")
	}
}

func TestParseDict(t *testing.T) {
	tests := []struct {
		name, text string
		want       map[string]string
		order      string
		complete   bool
	}{
		{
			"arguments",
			"{'model': '/models/glm', 'max_model_len': 131072, 'enforce_eager': True, 'gpu_memory_utilization': 0.95, 'compilation_config': {'mode': 0}}",
			map[string]string{"model": "/models/glm", "max_model_len": "131072", "enforce_eager": "True", "gpu_memory_utilization": "0.95", "compilation_config": "{'mode': 0}"},
			"model max_model_len enforce_eager gpu_memory_utilization compilation_config", true,
		},
		{
			"namespace of old releases",
			"Namespace(host=None, port=8000, model='m', swap_space=4)",
			map[string]string{"host": "None", "port": "8000", "model": "m", "swap_space": "4"},
			"host port model swap_space", true,
		},
		{"cut", "{'model': 'm', 'max_mo", map[string]string{"model": "m"}, "model", false},
		{"repeated", "{'a': 1, 'b': 2, 'a': 3}", map[string]string{"a": "3", "b": "2"}, "a b", true},
		{"number keys", "{1: 'x', None: 2}", map[string]string{"1": "x", "None": "2"}, "1 None", true},
		{"empty", "{}", map[string]string{}, "", true},
		{"no dictionary", "[1]", map[string]string{}, "", false},
		{"nothing", "", map[string]string{}, "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			values, order, complete := ParseDict(tt.text)
			got := map[string]string{}
			for k, v := range values {
				got[k] = v.Text()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if strings.Join(order, " ") != tt.order || complete != tt.complete {
				t.Errorf("want %s %v, got %v %v", tt.order, tt.complete, order, complete)
			}
		})
	}
}

// config is the shape of VllmConfig.__str__ in vLLM 0.25.
const config = `model='/models/llama', speculative_config=SpeculativeConfig(method='mtp', model='/models/llama', num_spec_tokens=3), tokenizer='/models/llama', revision=None, trust_remote_code=False, dtype=torch.bfloat16, max_seq_len=16384, download_dir=None, quantization=None, enforce_eager=True, kv_cache_dtype=fp8, device_config=cuda, structured_outputs_config=StructuredOutputsConfig(backend='auto', reasoning_parser=''), seed=0, served_model_name=/models/llama, compilation_config={'mode': <CompilationMode.NONE: 0>, 'splitting_ops': ['a=b, c=d'], 'sizes': []}, kernel_config=KernelConfig(x=Y(z=['native']), backend='auto')`

func TestParseKV(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{
			"configuration", config,
			`model='/models/llama' | speculative_config=SpeculativeConfig(method='mtp', model='/models/llama', num_spec_tokens=3) | tokenizer='/models/llama' | revision=None | trust_remote_code=False | dtype=torch.bfloat16 | max_seq_len=16384 | download_dir=None | quantization=None | enforce_eager=True | kv_cache_dtype=fp8 | device_config=cuda | structured_outputs_config=StructuredOutputsConfig(backend='auto', reasoning_parser='') | seed=0 | served_model_name=/models/llama | compilation_config={'mode': <CompilationMode.NONE: 0>, 'splitting_ops': ['a=b, c=d'], 'sizes': []} | kernel_config=KernelConfig(x=Y(z=['native']), backend='auto')`,
		},
		{"behind its line's words", "Initializing a V1 LLM engine (v0.24.0) with config: model='m', dtype=torch.half, ", "model='m' | dtype=torch.half"},
		{"two spaces", "kv_cache_dtype=auto,  device_config=cuda", "kv_cache_dtype=auto | device_config=cuda"},
		{"JSON", `seed=0, compilation_config={"level":3,"custom_ops":["none"]}, use_cached_outputs=True, `, `seed=0 | compilation_config={"level":3,"custom_ops":["none"]} | use_cached_outputs=True`},
		{"hostile text in quotes", "model='x, dtype=torch.half, max_seq_len=9', max_seq_len=8192", "model='x, dtype=torch.half, max_seq_len=9' | max_seq_len=8192"},
		{"repeated: the first", "dtype=a, dtype=b", "dtype=a"},
		{"a comma in a value", "served_model_name=a, b and c, seed=0", "served_model_name=a, b and c | seed=0"},
		{"an equals sign in a value", "served_model_name=/m/a=b, seed=0", "served_model_name=/m/a=b | seed=0"},
		{"cut in a nested value", "seed=0, kernel_config=KernelConfig(a=1, moe_backend='au", "seed=0 | kernel_config=KernelConfig(a=1, moe_backend='au"},
		{"a bracket that nothing closes", "dtype=half, download_dir=/tmp/(x, load_format=auto, seed=0", "dtype=half | download_dir=/tmp/(x | load_format=auto | seed=0"},
		{"an apostrophe", "download_dir=/tmp/it's, load_format=auto", "download_dir=/tmp/it's | load_format=auto"},
		{"empty value", "a=, b=1", "a= | b=1"},
		{"nothing", "no pairs here", ""},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			values, order := ParseKV(tt.text)
			var got []string
			for _, k := range order {
				got = append(got, k+"="+values[k])
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " | ")); diff != "" {
				t.Error(diff)
			}
			if len(values) != len(order) {
				t.Errorf("%d values in an order of %d", len(values), len(order))
			}
		})
	}
}

func TestField(t *testing.T) {
	dump := `SchedulerOutput(scheduled_new_reqs=[NewRequestData(req_id=cmpl-9,prompt_token_ids_len=300,sampling_params=SamplingParams(n=1, stop=[], prompt_logprobs=5, extra_args=None),block_ids=([26, 13],),num_computed_tokens=7,lora_request=None)], scheduled_cached_reqs=CachedRequestData(req_ids=[],resumed_req_ids=set(),num_computed_tokens=[]), num_scheduled_tokens={cmpl-9: 32768}, total_num_scheduled_tokens=32768, preempted_req_ids=[], has_structured_output_requests=false, kv_connector_metadata=null, x=<object at 0x7f>, num_spec_tokens_to_schedule=0)`
	stats := `SchedulerStats(num_running_reqs=1, num_waiting_reqs=0, kv_cache_usage=0.00022880539499037233, prefix_cache_stats=PrefixCacheStats(reset=False, requests=1), spec_decoding_stats=None)`
	tests := []struct{ name, text, field, want string }{
		{"top level", dump, "total_num_scheduled_tokens", "32768"},
		{"nested", dump, "prompt_logprobs", "5"},
		{"a dictionary", dump, "num_scheduled_tokens", "{cmpl-9: 32768}"},
		{"the last", dump, "num_spec_tokens_to_schedule", "0"},
		{"JSON's constants", dump, "has_structured_output_requests", "false"},
		{"an object", dump, "x", "<object at 0x7f>"},
		{"unquoted text", dump, "req_id", "cmpl-9"},
		{"a fraction", stats, "kv_cache_usage", "0.00022880539499037233"},
		{"running", stats, "num_running_reqs", "1"},
		{"inner of stats", stats, "requests", "1"},
		{"part of a name", stats, "cache_usage", ""},
		{"not there", stats, "num_skipped_waiting_reqs", ""},
		{"quoted value", "f(model='a, b', n=1)", "model", "a, b"},
		{"in single quotes", "f(req_ids=['total_num_scheduled_tokens=9, '], total_num_scheduled_tokens=1)", "total_num_scheduled_tokens", "1"},
		{"in double quotes", `f(stop=["it's total_num_scheduled_tokens=9"], total_num_scheduled_tokens=1)`, "total_num_scheduled_tokens", "1"},
		{"behind an escaped quote", `f(stop=['\', total_num_scheduled_tokens=9, '], total_num_scheduled_tokens=1)`, "total_num_scheduled_tokens", "1"},
		{"only in quotes", "f(stop=['total_num_scheduled_tokens=9'])", "total_num_scheduled_tokens", ""},
		{"in a bytes literal", "f(a=b'n=9', n=1)", "n", "1"},
		// A client chose the id, and the dump does not escape it.
		{"an id that ends its quotes", "f(req_ids=['x', total_num_scheduled_tokens=9, 'y'], total_num_scheduled_tokens=1)", "total_num_scheduled_tokens", "1"},
		{"an id as a key", "f(num={x, total_num_scheduled_tokens=9: 3}, total_num_scheduled_tokens=1)", "total_num_scheduled_tokens", "1"},
		{"cut within the value", "SchedulerStats(num_running_reqs=1", "num_running_reqs", ""},
		{"cut behind the value", "SchedulerStats(num_running_reqs=12,", "num_running_reqs", "12"},
		{"cut within quotes", "f(a='num_running_reqs=1, ", "num_running_reqs", ""},
		{"no value", "f(a=, b=1)", "a", ""},
		{"no name", "f(a=1)", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Field(tt.text, tt.field)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("want %q, got %q (%v)", tt.want, got, ok)
			}
		})
	}
}

func TestFieldOfALargeDump(t *testing.T) {
	dump := "SchedulerOutput(scheduled_new_reqs=[NewRequestData(block_ids=([" + strings.Repeat("123456, ", 1<<17) +
		"1],),num_computed_tokens=0)], total_num_scheduled_tokens=2768, x=1)"
	if got, ok := Field(dump, "total_num_scheduled_tokens"); got != "2768" || !ok {
		t.Errorf("got %q %v", got, ok)
	}
}

// A prefix of a text gives the same entries, as far as it goes.
func TestPrefixes(t *testing.T) {
	whole, _ := ParseKV(config)
	for i := range config {
		part, _ := ParseKV(config[:i])
		for name, value := range part {
			if !strings.HasPrefix(whole[name], value) {
				t.Fatalf("%d bytes: %s=%q, whole %q", i, name, value, whole[name])
			}
		}
	}
}

// Any literal that Python could print is read whole, and as itself.
func TestParseReadsItsOwnSource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := literal(3).Draw(t, "literal")
		v, rest, ok := Parse(text)
		if !ok || rest != "" || v.Source != text {
			t.Fatalf("%s: read %q, rest %q, ok %v", text, v.Source, rest, ok)
		}
		again, _, _ := Parse(v.Source)
		if show(again) != show(v) {
			t.Fatalf("%s: read %s, then %s", text, show(v), show(again))
		}
		if cut := rapid.IntRange(0, len(text)).Draw(t, "cut"); cut < len(text) {
			Parse(text[:cut]) // must not panic
		}
	})
}

// literal draws a Python literal of a depth.
func literal(depth int) *rapid.Generator[string] {
	scalars := []*rapid.Generator[string]{
		rapid.SampledFrom([]string{"None", "True", "False", "8", "-1", "131072", "0.95", "1e-06", "-2.5e+20", "''", `"it's"`}),
		rapid.Map(rapid.StringMatching(`[a-z ,=(){}:\[\]<>-]{0,12}`), func(s string) string { return "'" + s + "'" }),
		rapid.SampledFrom([]string{`'a\\b'`, `'\'"'`, `'\n\t\x1b'`, `'\u00e9'`, `'\U0001f600'`, `'é'`}),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	items := rapid.SliceOfN(literal(depth-1), 0, 3)
	key := rapid.OneOf(scalars...)
	return rapid.OneOf(append(scalars,
		rapid.Map(items, func(s []string) string { return "[" + strings.Join(s, ", ") + "]" }),
		rapid.Map(items, func(s []string) string {
			if len(s) == 1 {
				return "(" + s[0] + ",)"
			}
			return "(" + strings.Join(s, ", ") + ")"
		}),
		rapid.Custom(func(t *rapid.T) string {
			var pairs []string
			for _, v := range items.Draw(t, "values") {
				pairs = append(pairs, key.Draw(t, "key")+": "+v)
			}
			return "{" + strings.Join(pairs, ", ") + "}"
		}),
		rapid.Map(rapid.SliceOfN(key, 1, 3), func(s []string) string { return "{" + strings.Join(s, ", ") + "}" }),
	)...)
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		config, "{chatcmpl-1: 2, 'a': <x: 'y'>}", "set()", "[1 2 3]", "b'x'", "F(x=1, <", "'\\u12", "{'a'", "-0x", "1e", "a=b, c=(",
		"SchedulerOutput(total_num_scheduled_tokens=32768, x={a: 1})",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, rest, ok := Parse(s)
		if !strings.HasSuffix(s, rest) {
			t.Errorf("the rest %q is no end of %q", rest, s)
		}
		if ok && v.Source == "" {
			t.Errorf("%q is read as nothing", s)
		}
		if !strings.Contains(s, v.Source) {
			t.Errorf("%q stands nowhere in %q", v.Source, s)
		}
		v.Int()
		v.Float()
		ParseDict(s)
		values, order := ParseKV(s)
		if len(values) != len(order) {
			t.Errorf("%d values in an order of %d", len(values), len(order))
		}
		if got, ok := Field(s, "a"); ok && got != "" && !strings.Contains(s, "a=") {
			t.Errorf("%q is read from nowhere", got)
		}
	})
}

func BenchmarkField(b *testing.B) {
	dump := "SchedulerOutput(a=[" + strings.Repeat("123456, ", 1<<17) + "1], total_num_scheduled_tokens=2768, x=1)"
	b.SetBytes(int64(len(dump)))
	for b.Loop() {
		Field(dump, "total_num_scheduled_tokens")
	}
}
