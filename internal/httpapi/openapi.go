package httpapi

import (
	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/api"
)

// openAPIDocument returns the contract as the JSON that is served. People read and review YAML; programs fetch JSON.
func openAPIDocument() ([]byte, error) { return yaml.YAMLToJSON(api.OpenAPI) }
