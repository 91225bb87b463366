package watch

import (
	"path/filepath"
	"reflect"
	"slices"

	"diagnose/matcher"
	"diagnose/tailer"
)

// maxSources is how many generations of a log are known by name; a server can
// outlive thousands of rotations.
const maxSources = 128

// sources numbers the generations that were read, in their order. A number is
// a position's Source; it is never given again.
type sources struct {
	next int
	refs map[int]tailer.SourceRef
	gens map[uint64]int
	last int
}

// add gives a generation its number.
func (s *sources) add(ref tailer.SourceRef) int {
	if s.refs == nil {
		s.refs, s.gens = map[int]tailer.SourceRef{}, map[uint64]int{}
	}
	i := s.next
	s.next++
	s.refs[i], s.last = ref, i
	if ref.Gen != 0 {
		s.gens[ref.Gen] = i
	}
	return i
}

func (s *sources) find(gen uint64) (int, bool) {
	i, ok := s.gens[gen]
	return i, ok
}

// ref is the zero SourceRef for a generation that was forgotten.
func (s *sources) ref(i int) tailer.SourceRef { return s.refs[i] }

// trim forgets the names of old generations but for those in use.
func (s *sources) trim(used map[int]bool) {
	if len(s.refs) <= maxSources {
		return
	}
	for i, ref := range s.refs {
		if i < s.next-maxSources/2 && !used[i] {
			delete(s.refs, i)
			delete(s.gens, ref.Gen)
		}
	}
}

// localize numbers the sources of an incident's positions anew, from 0, and
// gives their names. Those that were forgotten go by the path's name.
func (s *stream) localize(in *matcher.Incident) []string {
	var used []int
	eachAt(in, func(at *matcher.At) {
		if i, ok := slices.BinarySearch(used, at.Source); !ok {
			used = slices.Insert(used, i, at.Source)
		}
	})
	type file struct {
		name          string
		device, inode uint64
	}
	number := map[file]int{}
	to := map[int]int{}
	names := []string{}
	for _, i := range used {
		ref := s.sources.ref(i)
		f := file{ref.Name, ref.Device, ref.Inode}
		if f.name == "" {
			f.name = s.path
		}
		n, ok := number[f]
		if !ok {
			n = len(names)
			number[f] = n
			names = append(names, filepath.Base(f.name))
		}
		to[i] = n
	}
	eachAt(in, func(at *matcher.At) { at.Source = to[at.Source] })
	return names
}

var typeAt = reflect.TypeFor[matcher.At]()

// eachAt calls f once for every position of an incident.
func eachAt(in *matcher.Incident, f func(*matcher.At)) {
	seen := map[*matcher.At]bool{}
	walkAt(reflect.ValueOf(in).Elem(), func(at *matcher.At) {
		if !seen[at] {
			seen[at] = true
			f(at)
		}
	})
}

func walkAt(v reflect.Value, f func(*matcher.At)) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == typeAt {
			f(v.Addr().Interface().(*matcher.At))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				walkAt(v.Field(i), f)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			walkAt(v.Elem(), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkAt(v.Index(i), f)
		}
	case reflect.Map:
		// A map's values cannot be changed in place.
		for _, k := range v.MapKeys() {
			c := reflect.New(v.Type().Elem()).Elem()
			c.Set(v.MapIndex(k))
			walkAt(c, f)
			v.SetMapIndex(k, c)
		}
	}
}

// ShiftSources renumbers the sources of a record's incident, to be shown in one
// document with others.
func ShiftSources(in matcher.Incident, by int) matcher.Incident {
	eachAt(&in, func(at *matcher.At) { at.Source += by })
	return in
}
