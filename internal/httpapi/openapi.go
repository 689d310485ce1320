package httpapi

import (
	"fmt"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/phoneproof/phoneproof/api"
)

// openAPIDocument returns the contract as JSON. It is written in YAML for people and served as JSON for programs. The conversion
// needs more memory than a server at rest can spare, and few servers are ever asked for it, so the first call converts.
var openAPIDocument = sync.OnceValues(convertOpenAPI)

func convertOpenAPI() ([]byte, error) {
	document, err := yaml.YAMLToJSON(api.OpenAPI)
	if err != nil {
		return nil, fmt.Errorf("convert openapi.yaml to JSON: %w", err)
	}
	return document, nil
}
