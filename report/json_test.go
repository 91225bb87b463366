package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"diagnose/matcher"
	"diagnose/report"
)

func schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(report.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("diagnose-v1.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("diagnose-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(s *jsonschema.Schema, data []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

func TestDocumentsAreValid(t *testing.T) {
	s := schema(t)
	for name, d := range map[string]matcher.Document{
		"seed": seedDocument(), "unknown": unknownDocument(), "several": severalDocument(), "quiet": quietDocument(), "empty": {},
	} {
		data := render(t, report.JSON, d)
		if err := validate(s, []byte(data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.HasSuffix(data, "}\n") || !strings.HasPrefix(data, "{\n  \"schema\": \"diagnose/v1\",\n") {
			t.Errorf("%s: not indented by two, or not ended by a line feed", name)
		}
		if again := render(t, report.JSON, d); again != data {
			t.Errorf("%s: not the same bytes again", name)
		}
	}
}

// TestSchemaRefuses: the schema does not accept everything.
func TestSchemaRefuses(t *testing.T) {
	s := schema(t)
	for name, edit := range map[string]func(*matcher.Incident){
		"id":          func(i *matcher.Incident) { i.ID = "xyz" },
		"status":      func(i *matcher.Incident) { i.Status = "old" },
		"phase":       func(i *matcher.Incident) { i.Phase = "" },
		"class":       func(i *matcher.Incident) { i.Verdict.Class = "oom" },
		"family":      func(i *matcher.Incident) { i.Verdict.Family = "workspace" },
		"confidence":  func(i *matcher.Incident) { i.Verdict.Confidence = "certain" },
		"kind":        func(i *matcher.Incident) { i.Root.Kind = "crash" },
		"grade":       func(i *matcher.Incident) { i.Evidence[0].Grade = "sure" },
		"basis":       func(i *matcher.Incident) { i.Engine.Flags["x"] = matcher.Flag{Basis: "guess"} },
		"upgrade":     func(i *matcher.Incident) { i.Remedies[0].UpgradeTo = ptr(">=0.29") },
		"set":         func(i *matcher.Incident) { i.Remedies[0].Set = map[string]string{"max-num-seqs": "1"} },
		"time":        func(i *matcher.Incident) { i.Time.First = ptr("11-30 02:34:03") },
		"line zero":   func(i *matcher.Incident) { i.Root.At.Line = ptr(int64(0)) },
		"consequence": func(i *matcher.Incident) { i.Consequences[0].Kind = "noise" },
	} {
		d := seedDocument()
		edit(&d.Incidents[0])
		if err := validate(s, []byte(render(t, report.JSON, d))); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestSchemaNamesEveryField: the schema allows more fields than it names, so
// that v1 can grow; that it names all there are is seen here.
func TestSchemaNamesEveryField(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(report.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	compareFields(t, "document", root, root, reflect.TypeFor[matcher.Document]())
}

func compareFields(t *testing.T, path string, root, s map[string]any, typ reflect.Type) {
	t.Helper()
	s = resolve(root, s)
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch typ.Kind() {
	case reflect.Slice:
		items, ok := s["items"].(map[string]any)
		if !ok {
			t.Errorf("%s: the schema has no list", path)
			return
		}
		compareFields(t, path+"[]", root, items, typ.Elem())
	case reflect.Map:
		values, ok := s["additionalProperties"].(map[string]any)
		if !ok {
			t.Errorf("%s: the schema has no map", path)
			return
		}
		compareFields(t, path+"{}", root, values, typ.Elem())
	case reflect.Struct:
		props, _ := s["properties"].(map[string]any)
		var fields, named, required []string
		for i := range typ.NumField() {
			f := typ.Field(i)
			if !f.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields = append(fields, name)
			if p, ok := props[name].(map[string]any); ok {
				compareFields(t, path+"."+name, root, p, f.Type)
			}
		}
		for name := range props {
			named = append(named, name)
		}
		for _, name := range s["required"].([]any) {
			required = append(required, fmt.Sprint(name))
		}
		slices.Sort(fields)
		slices.Sort(named)
		slices.Sort(required)
		if diff := cmp.Diff(fields, named); diff != "" {
			t.Errorf("%s: properties (-type +schema):\n%s", path, diff)
		}
		if diff := cmp.Diff(fields, required); diff != "" {
			t.Errorf("%s: required (-type +schema):\n%s", path, diff)
		}
	}
}

// resolve follows a reference, and the one branch of "this or null".
func resolve(root, s map[string]any) map[string]any {
	if either, ok := s["anyOf"].([]any); ok {
		s = either[0].(map[string]any)
	}
	if ref, ok := s["$ref"].(string); ok {
		s = root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	return s
}

// TestSchemaClasses: each class of the schema has the family that the matcher
// gives it, and none but "unknown" has none.
func TestSchemaClasses(t *testing.T) {
	var s struct {
		Defs map[string]struct {
			Enum []string `json:"enum"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(report.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Defs["class"].Enum {
		family := matcher.FamilyOf(c)
		if !slices.Contains(s.Defs["family"].Enum, family) || (family == "unknown") != (c == "unknown") {
			t.Errorf("class %q has family %q", c, family)
		}
		i := matcher.Incident{Verdict: matcher.Verdict{Family: family, Class: c}}
		if h := report.Headline(i, ""); strings.Contains(h, "_") {
			t.Errorf("class %q has no words: %q", c, h)
		}
	}
}

// TestNoNullLists: an incident of nothing but zero values still has its lists.
func TestNoNullLists(t *testing.T) {
	d := matcher.Document{
		Inputs: []matcher.Input{{}},
		Incidents: []matcher.Incident{{
			OOM: []matcher.OOM{{}}, Budget: []matcher.Budget{{}}, Evidence: []matcher.Evidence{{}},
			RuledOut: []matcher.RuledOut{{}}, Contributing: []matcher.Contributing{{}}, Remedies: []matcher.Remedy{{}},
			Restarted: &matcher.Restarted{}, Followup: &matcher.Followup{},
		}},
	}
	got := render(t, report.JSON, d)
	for _, key := range []string{
		"skipped", "observations", "ranks", "other_processes", "precision", "consequences", "set", "unset", "refs", "flags",
		"do_not", "verify", "missing", "references", "changes_made", "changes_missing", "budget_now", "withdrawn",
	} {
		if strings.Contains(got, `"`+key+`": null`) || !strings.Contains(got, `"`+key+`": `) {
			t.Errorf("%s is null or absent", key)
		}
	}
	for _, key := range []string{"host", "kv_cache", "tried_bytes", "total_bytes", "mechanism", "upgrade_to"} {
		if !strings.Contains(got, `"`+key+`": null`) {
			t.Errorf("%s is not null", key)
		}
	}
	if d.Inputs[0].Skipped != nil || d.Incidents[0].Evidence[0].At != nil || d.Incidents[0].Remedies[0].Set != nil {
		t.Error("the document was changed")
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	d := seedDocument()
	for _, name := range []string{"api-key", "api_key", "hf-token", "ssl-keyfile-password", "client-secret"} {
		d.Incidents[0].Engine.Flags[name] = matcher.Flag{Value: "hunter2", Basis: "arguments"}
	}
	for name, f := range map[string]form{"text": text(report.Options{Verbose: true}), "markdown": markdown, "html": html, "json": report.JSON} {
		if strings.Contains(render(t, f, d), "hunter2") {
			t.Errorf("%s prints a secret", name)
		}
	}
	if got := render(t, report.JSON, d); !strings.Contains(got, `"value": "32768"`) {
		t.Error("a token budget is taken for a secret")
	}
	if d.Incidents[0].Engine.Flags["api-key"].Value != "hunter2" {
		t.Error("the document was changed")
	}
}

func TestNotANumber(t *testing.T) {
	d := quietDocument()
	var zero float64
	d.Observations[0].KVCache.UsagePct = ptr(zero / zero)
	if err := report.JSON(&bytes.Buffer{}, d); err == nil || !strings.HasPrefix(err.Error(), "encode document: ") {
		t.Errorf("error %v", err)
	}
}
