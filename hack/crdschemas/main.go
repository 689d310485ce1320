// Crdschemas writes the schemas of CustomResourceDefinitions as JSON Schema, one file per kind and version, in the form that
// kubeconform reads: named KIND-GROUP-VERSION.json in lower case, and without other fields in objects with fixed fields.
//
//	crdschemas OUTPUT-FOLDER CRD-FILE...
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "crdschemas:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: crdschemas OUTPUT-FOLDER CRD-FILE [CRD-FILE]")
	}
	if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // a folder for all to read
		return fmt.Errorf("create output folder: %w", err)
	}
	for _, file := range args[1:] {
		if err := exportSchemas(args[0], file); err != nil {
			return fmt.Errorf("export %s: %w", file, err)
		}
	}
	return nil
}

// exportSchemas writes the schemas of one CustomResourceDefinition.
func exportSchemas(folder, file string) error {
	content, err := os.ReadFile(file) //nolint:gosec // the file that was named is the one to read
	if err != nil {
		return err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &crd); err != nil {
		return err
	}
	if len(crd.Spec.Versions) == 0 {
		return errors.New("the CustomResourceDefinition has no versions")
	}
	for _, version := range crd.Spec.Versions {
		name := strings.ToLower(fmt.Sprintf("%s-%s-%s.json", crd.Spec.Names.Kind, crd.Spec.Group, version.Name))
		schema, err := closedSchema(version.Schema.OpenAPIV3Schema)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), schema, 0o644); err != nil { //nolint:gosec // as above
			return err
		}
	}
	return nil
}

// closedSchema returns a JSON Schema that refuses the fields that the API server would prune or refuse: unknown ones.
func closedSchema(schema *apiextensionsv1.JSONSchemaProps) ([]byte, error) {
	content, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(content, &tree); err != nil {
		return nil, err
	}
	closeObjects(tree)
	// The API server has a schema of its own for metadata; the schema of a CRD leaves it open.
	if metadata, ok := tree["properties"].(map[string]any)["metadata"].(map[string]any); ok {
		delete(metadata, "additionalProperties")
	}
	return json.MarshalIndent(tree, "", "  ")
}

func closeObjects(node any) {
	switch node := node.(type) {
	case map[string]any:
		if properties, ok := node["properties"].(map[string]any); ok && properties != nil {
			if _, open := node["additionalProperties"]; !open && node["x-kubernetes-preserve-unknown-fields"] != true {
				node["additionalProperties"] = false
			}
		}
		if node["x-kubernetes-int-or-string"] == true {
			// JSON Schema applies pattern and maxLength to strings only, as the API server does.
			node["type"] = []any{"integer", "string"}
		}
		for _, child := range node {
			closeObjects(child)
		}
	case []any:
		for _, child := range node {
			closeObjects(child)
		}
	}
}
