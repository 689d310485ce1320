package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// findWrongTypes returns a sentence with the field for each value that has not the type of its field. None has the value, because a
// user may put a secret into the wrong field.
func findWrongTypes(path *field.Path, value any, want reflect.Type) []error {
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if value == nil { // as if it were not set
		return nil
	}
	if reflect.PointerTo(want).Implements(unmarshaler) {
		encoded, err := json.Marshal(value)
		if err == nil && json.Unmarshal(encoded, reflect.New(want).Interface()) == nil {
			return nil
		}
		return []error{fmt.Errorf("%s: cannot be read as a %s", path, strings.ToLower(want.Name()))}
	}
	switch want.Kind() {
	case reflect.Struct:
		return findWrongFields(path, value, want)
	case reflect.Map:
		object, ok := value.(map[string]any)
		var errs []error
		for _, name := range slices.Sorted(maps.Keys(object)) {
			errs = append(errs, findWrongTypes(path.Key(name), object[name], want.Elem())...)
		}
		return unless(ok, path, value, "a map", errs)
	case reflect.Slice:
		list, ok := value.([]any)
		var errs []error
		for i, child := range list {
			errs = append(errs, findWrongTypes(path.Index(i), child, want.Elem())...)
		}
		return unless(ok, path, value, "a list", errs)
	case reflect.String:
		_, ok := value.(string)
		return unless(ok, path, value, "a text", nil)
	case reflect.Bool:
		_, ok := value.(bool)
		return unless(ok, path, value, "true or false", nil)
	case reflect.Int32, reflect.Int64:
		number, ok := value.(float64)
		ok = ok && number == math.Trunc(number) && !reflect.Zero(want).OverflowInt(int64(number))
		return unless(ok, path, value, "a whole number of ordinary size", nil)
	default:
		return nil
	}
}

// findWrongFields is findWrongTypes for a struct.
func findWrongFields(path *field.Path, value any, want reflect.Type) []error {
	object, ok := value.(map[string]any)
	var errs []error
	for i := range want.NumField() {
		member := want.Field(i)
		name, _, _ := strings.Cut(member.Tag.Get("json"), ",")
		switch {
		case name == "" && member.Anonymous:
			errs = append(errs, findWrongTypes(path, value, member.Type)...)
		case object[name] != nil:
			errs = append(errs, findWrongTypes(path.Child(name), object[name], member.Type)...)
		}
	}
	return unless(ok, path, value, "a map", errs)
}

// unless returns the errors that are in a value of the right type, else that it must be of that type.
func unless(right bool, path *field.Path, value any, want string, errs []error) []error {
	if right {
		return errs
	}
	is, advice := "a map", ""
	switch value.(type) {
	case string:
		is = "a text"
	case bool:
		is = "true or false (yes, no, on and off mean that, too)"
	case float64:
		is = "a number"
	case []any:
		is = "a list"
	}
	if _, isMap := value.(map[string]any); want == "a text" && is != "a list" && !isMap {
		advice = ": put it in quotes"
	}
	return []error{fmt.Errorf("%s: must be %s, and YAML reads %s%s", path, want, is, advice)}
}
