package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

const exampleConfig = "../../packaging/config.yaml"

// switchedOn takes the "#" from every setting of the example: the lines with a
// "#" that is not followed by one space and a word.
func switchedOn(text string) string {
	lines := strings.Split(text, "\n")
	off := regexp.MustCompile(`^#(?:\S|  )`)
	for i, l := range lines {
		if off.MatchString(l) {
			lines[i] = l[1:]
		}
	}
	return strings.Join(lines, "\n")
}

// TestExampleConfig loads what is shipped, as it is and with everything switched
// on, and holds it against the program's own keys.
func TestExampleConfig(t *testing.T) {
	c, err := loadConfig(exampleConfig)
	if err != nil {
		t.Fatal(err)
	}
	if c.StateDir == "" || len(c.Paths) == 0 || len(c.Notify.Sinks) != 0 {
		t.Errorf("as shipped it follows and notifies nobody: %+v", c)
	}
	data, err := os.ReadFile(exampleConfig)
	if err != nil {
		t.Fatal(err)
	}
	text := switchedOn(string(data))
	catalog := t.TempDir()
	text = strings.Replace(text, "/etc/diagnose/catalog", catalog, 1)
	on := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(on, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err = loadConfig(on)
	if err != nil {
		t.Fatal(err)
	}
	unset(t, reflect.ValueOf(c), "", map[reflect.Type]bool{})
}

// unset finds keys that the example never sets: for lists it is enough that one
// of their entries has the key, and a type is shown in full once.
func unset(t *testing.T, v reflect.Value, path string, seen map[reflect.Type]bool) {
	t.Helper()
	if seen[v.Type()] {
		return
	}
	seen[v.Type()] = true
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Tag.Get("yaml"), v.Field(i)
		at := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]():
			unset(t, f, at, seen)
		case f.Kind() == reflect.Pointer && !f.IsNil():
			unset(t, f.Elem(), at, seen)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			unset(t, union(f), at+"[]", seen)
		case f.IsZero() && name != "allow_http":
			t.Errorf("%s is never set", at)
		}
	}
}

// union merges the entries of a list of structs: each field from the first entry
// that has it.
func union(list reflect.Value) reflect.Value {
	out := reflect.New(list.Type().Elem()).Elem()
	for i := range list.Len() {
		mergeInto(out, list.Index(i))
	}
	return out
}

func mergeInto(into, from reflect.Value) {
	for i := range into.NumField() {
		a, b := into.Field(i), from.Field(i)
		switch {
		case a.IsZero():
			a.Set(b)
		case a.Kind() == reflect.Pointer && !b.IsNil():
			mergeInto(a.Elem(), b.Elem())
		}
	}
}

// TestExampleConfigShowsDefaults: what is off is what the program does anyway.
func TestExampleConfigShowsDefaults(t *testing.T) {
	data, err := os.ReadFile(exampleConfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"gather: 3s", "settle: 5s", "close_after: 1m", "historic: 1h", "held_after: 168h",
		"max_notices: 1000", "max_age: 72h", "roll_up: 10m", "keep: 24h", "format: text", "level: info",
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is the default and not in the example", want)
		}
	}
}
