package notify

import "reflect"

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
		for i := range v.NumField() {
			out.Field(i).Set(walk(v.Field(i), f))
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
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(walk(it.Key(), f), walk(it.Value(), f))
		}
	default:
		out.Set(v)
	}
	return out
}
