package notify

import (
	"reflect"
	"slices"
	"strings"
)

// maxList bounds every list of an incident that is sent: a diagnosis for people
// has fewer entries, and a payload must not grow with a log.
const maxList = 256

// mapStrings returns a deep copy of v with f applied to every string in it, map
// keys included, and lists cut at maxList.
func mapStrings[T any](v T, f func(string) string) T {
	return walk(reflect.ValueOf(v), f).Interface().(T)
}

func walk(v reflect.Value, f func(string) string) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.String:
		out.SetString(f(v.String()))
	case reflect.Pointer:
		if v.IsNil() {
			return out
		}
		out.Set(reflect.New(v.Type().Elem()))
		out.Elem().Set(walk(v.Elem(), f))
	case reflect.Struct:
		out.Set(v)
		for i := range v.NumField() {
			// Unexported fields are not sent; they are kept as they are.
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(walk(v.Field(i), f))
			}
		}
	case reflect.Slice:
		if v.IsNil() {
			return out
		}
		n := min(v.Len(), maxList)
		out.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			out.Index(i).Set(walk(v.Index(i), f))
		}
	case reflect.Map:
		if v.IsNil() {
			return out
		}
		out.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		// In order, because f may depend on what came before.
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys[:min(len(keys), maxList)] {
			out.SetMapIndex(walk(k, f), walk(v.MapIndex(k), f))
		}
	default:
		out.Set(v)
	}
	return out
}
