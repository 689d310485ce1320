package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// coreTypes are the fields whose content is defined by Kubernetes, where an
// empty text can have a meaning.
var coreTypes = []string{
	"spec.server.nodeSelector", "spec.server.tolerations", "spec.server.affinity", "spec.server.topologySpreadConstraints",
	"spec.expose.service.annotations", "spec.expose.ingress.annotations", "spec.networkPolicy",
}

// DecodeProject decodes one VerificationProject from YAML or JSON, like an API
// server with strict validation: it returns an error for unknown fields, repeated
// keys, values of the wrong type and fields that are set to an empty text. It
// drops a status, as the API server does.
//
// It neither sets defaults nor validates: call Default, then Validate.
func DecodeProject(data []byte) (*VerificationProject, error) {
	var project VerificationProject
	if err := decodeStrict(data, VerificationProjectKind, &project); err != nil {
		return nil, fmt.Errorf("decode VerificationProject: %w", err)
	}
	project.Status = VerificationProjectStatus{}
	return &project, nil
}

// DecodeRequest decodes one VerificationRequest; see DecodeProject.
func DecodeRequest(data []byte) (*VerificationRequest, error) {
	var request VerificationRequest
	if err := decodeStrict(data, VerificationRequestKind, &request); err != nil {
		return nil, fmt.Errorf("decode VerificationRequest: %w", err)
	}
	request.Status = VerificationRequestStatus{}
	return &request, nil
}

func decodeStrict(data []byte, kind string, into any) error {
	asJSON, err := toJSON(data, kind)
	if err != nil {
		return err
	}
	var object map[string]any
	if json.Unmarshal(asJSON, &object) != nil {
		return errors.New("the document must be a map with apiVersion, kind, metadata and spec")
	}
	if object["apiVersion"] != GroupVersion.String() || object["kind"] != kind {
		return fmt.Errorf("apiVersion and kind must be %s and %s", GroupVersion, kind)
	}
	strict, err := kjson.UnmarshalStrict(asJSON, into)
	if err != nil {
		return describeWrongType(err)
	}
	errs := strict
	for _, e := range findEmptyTexts(field.NewPath("spec"), object["spec"]) {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// describeWrongType returns an error that names the field of a value which its type cannot take, and not the value, because a user may
// put a secret into the wrong field.
func describeWrongType(err error) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok { // of a type that decodes itself
		return errors.New("a time must be like 2027-01-31T10:00:00Z, in a request like 2027-01-31T10:00:00.000000Z, and a quantity like 256Mi")
	}
	have, _, _ := strings.Cut(wrong.Value, " ") // the number itself may follow
	want := map[reflect.Kind]string{
		reflect.String: "a text", reflect.Bool: "true or false", reflect.Slice: "a list", reflect.Struct: "a map", reflect.Map: "a map",
	}[wrong.Type.Kind()]
	if want == "" {
		want = "a whole number of ordinary size"
	}
	advice := ""
	if want == "a text" && (have == "number" || have == "bool") {
		advice = ": put it in quotes"
	}
	return fmt.Errorf("%s: must be %s, and YAML reads %s%s", wrong.Field, want, map[string]string{
		"number": "a number", "string": "a text", "array": "a list", "object": "a map",
		"bool": "true or false (yes, no, on and off mean that, too)",
	}[have], advice)
}

// toJSON returns data as JSON. JSON is returned unchanged, because YAML would
// fold some characters that JSON keeps.
func toJSON(data []byte, kind string) ([]byte, error) {
	if json.Valid(data) {
		return data, nil
	}
	document, err := findDocument(data, kind)
	if err != nil {
		return nil, err
	}
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, fmt.Errorf("parse YAML: %w", err)
	}
	return asJSON, nil
}

// documentMarker matches the start of a document. Text before it keeps its lines, so that errors have the right line number.
var documentMarker = regexp.MustCompile(`(?m)^---(?:[ \t\r]|$)`)

// findDocument returns the YAML document to decode: the only one, or the only one of that kind among others, such as the
// Secrets that it refers to. The YAML package would silently take the first.
func findDocument(data []byte, kind string) ([]byte, error) {
	var all, wanted [][]byte
	for _, text := range documentMarker.Split(string(data), -1) {
		document := []byte(text)
		var content any
		err := yaml.Unmarshal(document, &content)
		if err == nil && content == nil {
			continue
		}
		all = append(all, document)
		if object, _ := content.(map[string]any); object["kind"] == kind {
			wanted = append(wanted, document)
		}
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("no YAML document")
	case len(all) == 1:
		return all[0], nil
	case len(wanted) == 0:
		return nil, fmt.Errorf("no %s among %d YAML documents", kind, len(all))
	case len(wanted) > 1:
		return nil, fmt.Errorf("more than one %s; one per file", kind)
	default:
		return wanted[0], nil
	}
}

// emptyTextsField is the field whose texts may be empty: the pairs of a request's metadata are the client's own.
const emptyTextsField = "spec.metadata"

// findEmptyTexts returns an error for each field that is set to an empty text. In
// a decoded object it would look like an unset field, which the API server treats
// differently.
func findEmptyTexts(path *field.Path, value any) field.ErrorList {
	if slices.Contains(coreTypes, path.String()) || path.String() == emptyTextsField {
		return nil
	}
	var errs field.ErrorList
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			errs = append(errs, findEmptyTexts(path.Child(name), v[name])...)
		}
	case []any:
		for i, child := range v {
			errs = append(errs, findEmptyTexts(path.Index(i), child)...)
		}
	case string:
		if v == "" {
			errs = append(errs, field.Invalid(path, v, "must not be empty; remove the field to leave it unset"))
		}
	}
	return errs
}
