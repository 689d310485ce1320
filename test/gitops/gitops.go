package gitops

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/test/repository"
)

// Kstatus returns the status that kstatus computes, for which Helm 4 and Flux wait.
func Kstatus(object *unstructured.Unstructured) (status.Status, error) {
	result, err := status.Compute(object)
	if err != nil {
		return "", fmt.Errorf("compute kstatus: %w", err)
	}
	return result.Status, nil
}

// Checks are the health checks of VerificationProjects that docs/gitops.md shows.
type Checks struct {
	// expressions of Flux, in the order in which it evaluates them.
	expressions []expression
	lua         string
}

type expression struct {
	program cel.Program
	status  status.Status
}

// ReadChecks reads the health checks from docs/gitops.md.
func ReadChecks() (*Checks, error) {
	root, err := repository.Root()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(root, "docs", "gitops.md"))
	if err != nil {
		return nil, fmt.Errorf("read health checks: %w", err)
	}
	var found snippet
	for _, block := range yamlBlocks(string(content)) {
		for document := range strings.SplitSeq(block, "\n---\n") {
			if err := yaml.Unmarshal([]byte(document), &found); err != nil {
				return nil, fmt.Errorf("read health checks: parse a YAML block: %w", err)
			}
		}
	}
	checks := &Checks{lua: found.Data["resource.customizations.health.phoneproof.dev_VerificationProject"]}
	if checks.lua == "" {
		return nil, errors.New("read health checks: docs/gitops.md has no health.lua of a VerificationProject")
	}
	checks.expressions, err = compileChecks(found.HealthCheckExprs)
	return checks, err
}

// snippet is what any of the YAML blocks may hold.
type snippet struct {
	HealthCheckExprs []healthCheck     `json:"healthCheckExprs"`
	Data             map[string]string `json:"data"`
}

type healthCheck struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	InProgress string `json:"inProgress"`
	Failed     string `json:"failed"`
	Current    string `json:"current"`
}

func yamlBlocks(text string) []string {
	var blocks []string
	for {
		_, after, found := strings.Cut(text, "```yaml\n")
		if !found {
			return blocks
		}
		block, rest, _ := strings.Cut(after, "```")
		blocks, text = append(blocks, block), rest
	}
}

// compileChecks compiles the expressions with the environment and in the order of Flux, by RFC 0009 and the package cel of
// github.com/fluxcd/pkg/runtime, which is not a dependency because it requires a dozen modules.
func compileChecks(checks []healthCheck) ([]expression, error) {
	if len(checks) != 1 || checks[0].APIVersion != verifyv1.GroupVersion.String() || checks[0].Kind != verifyv1.VerificationProjectKind {
		return nil, errors.New("read health checks: docs/gitops.md must have healthCheckExprs of exactly one VerificationProject")
	}
	environment, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true), cel.OptionalTypes())
	if err != nil {
		return nil, fmt.Errorf("create CEL environment: %w", err)
	}
	var out []expression
	for _, e := range []struct {
		text   string
		status status.Status
	}{
		{checks[0].InProgress, status.InProgressStatus}, {checks[0].Failed, status.FailedStatus}, {checks[0].Current, status.CurrentStatus},
	} {
		parsed, issues := environment.Parse(e.text) // without type checks, like Flux
		if issues.Err() != nil {
			return nil, fmt.Errorf("parse expression %q: %w", e.text, issues.Err())
		}
		program, err := environment.Program(parsed, cel.EvalOptions(cel.OptOptimize))
		if err != nil {
			return nil, fmt.Errorf("compile expression %q: %w", e.text, err)
		}
		out = append(out, expression{program, e.status})
	}
	return out, nil
}

// Flux returns the status of a VerificationProject by the expressions of docs/gitops.md.
func (c *Checks) Flux(object *unstructured.Unstructured) (status.Status, error) {
	observed, found, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if err == nil && found && observed != object.GetGeneration() {
		return status.InProgressStatus, nil
	}
	return c.Expressions(object)
}

// Expressions is Flux without its check of the observed generation.
func (c *Checks) Expressions(object *unstructured.Unstructured) (status.Status, error) {
	for _, e := range c.expressions {
		result, _, err := e.program.Eval(object.Object)
		if err != nil {
			return "", fmt.Errorf("evaluate expression for %s: %w", e.status, err)
		}
		holds, ok := result.Value().(bool)
		if !ok {
			return "", fmt.Errorf("evaluate expression for %s: the result is not a boolean", e.status)
		}
		if holds {
			return e.status, nil
		}
	}
	return status.InProgressStatus, nil
}

// ArgoCD returns the health of a VerificationProject by the script of docs/gitops.md: Healthy, Progressing, Degraded or
// Suspended.
func (c *Checks) ArgoCD(object *unstructured.Unstructured) (string, error) {
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", luaValue(state, object.Object))
	if err := state.DoString(c.lua); err != nil {
		return "", fmt.Errorf("run health.lua: %w", err)
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", errors.New("run health.lua: the result is not a table")
	}
	return lua.LVAsString(answer.RawGetString("status")), nil
}

// luaValue converts a JSON value as Argo CD does for a script.
func luaValue(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, element := range v {
			table.RawSetString(key, luaValue(state, element))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, element := range v {
			table.Append(luaValue(state, element))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	default:
		return lua.LNil
	}
}
