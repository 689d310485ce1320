package httpapi

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/api"
)

// openAPIDocument returns the contract as JSON. It is written in YAML for people and served as JSON for programs.
func openAPIDocument() ([]byte, error) {
	document, err := yaml.YAMLToJSON(api.OpenAPI)
	if err != nil {
		return nil, fmt.Errorf("convert openapi.yaml to JSON: %w", err)
	}
	return document, nil
}
