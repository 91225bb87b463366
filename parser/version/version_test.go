package version

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text         string
		ok           bool
		known, exact bool
		base         string
	}{
		{"0.24.0", true, true, true, "0.24.0"},
		{"v0.24.0", true, true, true, "0.24.0"},
		{" 0.33.0\r", true, true, true, "0.33.0"},
		{"0.24.0+cu129", true, true, true, "0.24.0"},
		{"0.6.6.post1", true, true, true, "0.6.6"},
		{"0.8.5.post1", true, true, true, "0.8.5"},
		{"0.22.1rc1.dev69+gf69ede495", true, true, false, "0.22.1"},
		{"0.20.1rc1.dev16+g7a1eb8ac2", true, true, false, "0.20.1"},
		{"0.11.1rc2.dev45+g1234abcd.d20251001.cu128", true, true, false, "0.11.1"},
		{"2.9.0.dev20250804+cu128", true, true, false, "2.9.0"},
		{"2.11.0+cu130", true, true, true, "2.11.0"},
		{"0.1.0", true, true, true, "0.1.0"},
		{"0.10.0.dev3", true, true, false, "0.10.0"},
		// Builds that do not know what they are.
		{"0.1.dev1+g1234567", true, false, false, "0.1"},
		{"0.1.dev14456+gdeadbeef.d20251130", true, false, false, "0.1"},
		{"0.1.0.dev1", true, false, false, "0.1.0"},
		{"0.0.0", true, false, false, "0.0.0"},
		{"dev", true, false, false, ""},
		// No versions.
		{"", false, false, false, ""},
		{"unknown", false, false, false, ""},
		{"v", false, false, false, ""},
		{"0.24.0, serving", false, false, false, ""},
		{"0.24.x", false, false, false, ""},
		{"99999999999999999999.0", false, false, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			v, ok := Parse(tt.text)
			if ok != tt.ok {
				t.Fatalf("Parse ok: want %v, got %v", tt.ok, ok)
			}
			if v.Known() != tt.known || v.Exact() != tt.exact || v.Base() != tt.base {
				t.Errorf("want known %v exact %v base %q, got %v %v %q",
					tt.known, tt.exact, tt.base, v.Known(), v.Exact(), v.Base())
			}
		})
	}
}

func TestContains(t *testing.T) {
	tests := []struct {
		set, version string
		want         bool
	}{
		{"<0.29", "0.28.1", true},
		{"<0.29", "0.29.0", false},
		{"==0.29.*", "0.29.0", true},
		{"==0.29.*", "0.29.3.post1", true},
		{"==0.29.*", "0.30.0", false},
		{"==0.2.*", "0.29.0", false},
		{">=0.30,<=0.33.0", "0.30.0", true},
		{">=0.30, <=0.33.0", "0.33.0", true},
		{">=0.30,<=0.33.0", "0.33.1", false},
		{"!=0.29.*", "0.28.0", true},
		{"~=0.29.1", "0.29.4", true},
		{"~=0.29.1", "0.30.0", false},
		{"<0.29", "0.9.2", true},
		{">=0.9", "0.10.0", true},
		{"<=0.33.0", "0.33.0+cu129", true},
		// A build is held by the release it leads to. PEP 440 says false,
		// and true where the library includes pre-releases, to these two.
		{">=0.9.0", "0.9.0rc1", true},
		{"<0.11.1", "0.11.1rc2", false},
		{"==0.29.*", "0.29.0rc1.dev4+gabc", true},
		{">=0.30", "0.29.1.dev7", false},
		{"==0.22.1", "0.22.1rc1.dev69+gf69ede495", true},
		{"==2.9.0", "2.9.0.dev20250804+cu128", true},
		// A post release is its own release.
		{"==0.6.6", "0.6.6.post1", false},
		{">=0.6.6", "0.6.6.post1", true},
		{"<0.7", "0.6.6.post1", true},
		// Unknown is not old.
		{"<0.29", "dev", false},
		{"<0.29", "0.1.dev1+g1234567", false},
		{">=0", "0.1.dev1+g1234567", false},
		{"!=0.29.*", "dev", false},
		{">=0", "0.0.0", false},
	}
	for _, tt := range tests {
		t.Run(tt.set+" "+tt.version, func(t *testing.T) {
			set, err := ParseSet(tt.set)
			if err != nil {
				t.Fatal(err)
			}
			v, ok := Parse(tt.version)
			if !ok {
				t.Fatalf("cannot read %q", tt.version)
			}
			if got := set.Contains(v); got != tt.want {
				t.Errorf("want %v, got %v", tt.want, got)
			}
		})
	}
	if v, _ := Parse("0.24.0"); (Set{}).Contains(v) {
		t.Error("the zero set contains a version")
	}
}

func TestParseSetErrors(t *testing.T) {
	tests := []struct{ set, want string }{
		{"", `not a set of versions: "": clause "" needs one of ~= == != <= >= < >`},
		{"*", `not a set of versions: "*": clause "*" needs one of ~= == != <= >= < >`},
		{"0.29", `not a set of versions: "0.29": clause "0.29" needs one of ~= == != <= >= < >`},
		{"=0.29", `not a set of versions: "=0.29": clause "=0.29" needs one of ~= == != <= >= < >`},
		{"===0.29", `not a set of versions: "===0.29": clause "===0.29" needs one of ~= == != <= >= < >`},
		{">=0.29,", `not a set of versions: ">=0.29,": clause "" needs one of ~= == != <= >= < >`},
		{">=0.29 <0.30", `not a set of versions: ">=0.29 <0.30": clause ">=0.29 <0.30" cannot be read`},
		{"<0.29||>0.30", `not a set of versions: "<0.29||>0.30": clause "<0.29||>0.30" cannot be read`},
		{">=0.29.*", `not a set of versions: ">=0.29.*": clause ">=0.29.*" cannot be read`},
		{"~=1", `not a set of versions: "~=1": clause "~=1" cannot be read`},
		{"<", `not a set of versions: "<": clause "<" cannot be read`},
	}
	for _, tt := range tests {
		_, err := ParseSet(tt.set)
		if !errors.Is(err, ErrSet) || err.Error() != tt.want {
			t.Errorf("ParseSet(%q)\nwant %s\ngot  %v", tt.set, tt.want, err)
		}
	}
}

// inOrder is sorted as PEP 440 sorts.
var inOrder = []string{
	"0.1.dev1+g1234567", "0.6.6", "0.6.6.post1", "0.8.5", "0.9.2", "0.11.1rc2.dev45+g1234abcd",
	"0.11.1rc2", "0.11.1", "0.22.1rc1.dev69+gf69ede495", "0.22.1rc1", "0.22.1", "0.22.1+cu129",
	"0.22.1.post1", "0.24.0.dev1", "0.24.0a1", "0.24.0", "0.29", "0.29.0.1", "0.33.0", "1!0.1",
}

func TestCompare(t *testing.T) {
	var versions []Version
	for _, s := range append([]string{"dev"}, inOrder...) {
		v, ok := Parse(s)
		if !ok {
			t.Fatalf("cannot read %q", s)
		}
		versions = append(versions, v)
	}
	for i, a := range versions {
		for j, b := range versions {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := Compare(a, b); got != want {
				t.Errorf("Compare(%s, %s): want %d, got %d", a, b, want, got)
			}
		}
	}
}

func TestCompareEqual(t *testing.T) {
	for _, pair := range [][2]string{{"0.29", "0.29.0"}, {"v0.24.0", "0.24"}, {"1.0c1", "1.0rc1"}, {"1.0-1", "1.0.post1"}} {
		a, _ := Parse(pair[0])
		b, _ := Parse(pair[1])
		if Compare(a, b) != 0 || Compare(b, a) != 0 {
			t.Errorf("%s and %s differ", a, b)
		}
	}
}

func TestCompareIsAnOrder(t *testing.T) {
	version := rapid.StringMatching(`[0-3](\.[0-3]){0,3}((a|rc)[0-2])?(\.post[0-2])?(\.dev[0-2])?(\+(g[ab]|[0-2])(\.[0-2])?)?`)
	rapid.Check(t, func(t *rapid.T) {
		var v [3]Version
		for i := range v {
			s := version.Draw(t, "version")
			var ok bool
			if v[i], ok = Parse(s); !ok {
				t.Fatalf("cannot read %q", s)
			}
		}
		if Compare(v[0], v[1]) != -Compare(v[1], v[0]) {
			t.Fatalf("%s and %s: not antisymmetric", v[0], v[1])
		}
		if Compare(v[0], v[1]) <= 0 && Compare(v[1], v[2]) <= 0 && Compare(v[0], v[2]) > 0 {
			t.Fatalf("%s, %s, %s: not transitive", v[0], v[1], v[2])
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range append([]string{"dev", "", "v", "0.1.dev1", "1!2.0+a-b_c"}, inOrder...) {
		f.Add(s, ">=0.30,<=0.33.0")
	}
	f.Add("0.29.0", "==0.29.*")
	f.Add("0.29.0", "~=1!0.0a.*")
	f.Fuzz(func(t *testing.T, s, set string) {
		v, ok := Parse(s)
		if !ok && (v.Known() || v.Base() != "") {
			t.Errorf("%q is no version, yet known", s)
		}
		if v.Exact() && !v.Known() {
			t.Errorf("%q is exact but not known", s)
		}
		if ok && Compare(v, v) != 0 {
			t.Errorf("%q differs from itself", s)
		}
		if r, err := ParseSet(set); err == nil && r.Contains(v) && !v.Known() {
			t.Errorf("%q contains the unknown %q", set, s)
		}
	})
}
