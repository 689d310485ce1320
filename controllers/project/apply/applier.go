package apply

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// FieldOwner is the owner of every field that the operator sets on a child.
const FieldOwner = client.FieldOwner("phoneproof-operator")

// Options are what an Applier works with.
type Options struct {
	// Client writes to the API server, and reads from the cache, unstructured objects too. The cache must keep managedFields;
	// it may hold only objects that have verifyv1.ProjectLabel.
	Client client.Client
	// Live reads from the API server. It is asked only where cache and API server disagree.
	Live client.Reader
	// HTTPRoutes tells whether the cluster has the Gateway API's HTTPRoute now.
	HTTPRoutes func() bool
}

// Applier applies the children of projects. It keeps no state, so it may be used by many workers at once.
type Applier struct {
	Options
}

// New returns an Applier.
func New(o Options) *Applier { return &Applier{Options: o} }

// Request says what to apply.
type Request struct {
	// Project is the controller of the children.
	Project *verifyv1.VerificationProject
	// Observed is what Observe returned for it.
	Observed *Observed
	// Wanted is what render returned for it; Apply uses it up.
	Wanted render.Children
	// HoldDeployment leaves a Deployment that exists as it is, even if it differs, and all that its pods need.
	HoldDeployment bool
}

// Result says what came of a Request.
type Result struct {
	// Applied and Deleted are the children that were changed; empty where all was as it should be.
	Applied, Deleted []Ref
	// Conflicts are the children whose name another owner's object has. They are not applied.
	Conflicts []Ref
	// Rejections are the children that the API server refuses as they are: trying again helps only once the project, or what
	// the cluster allows, has changed.
	Rejections []Rejection
	// Waiting are the children that are not applied because what they are about is in conflict, and those no longer wanted
	// that stay until a rollout is complete.
	Waiting []Ref
}

// Ref names a child in its project's namespace.
type Ref struct{ Kind, Name string }

// String returns the reference in the words of messages: Deployment phoneproof-shop.
func (r Ref) String() string { return r.Kind + " " + r.Name }

// Rejection says why the API server refuses a child.
type Rejection struct {
	Ref

	// Field is the path inside the child; empty where the refusal is about no single field, such as a quota's.
	Field string
	// Message is what the API server says, in at most 256 characters.
	Message string
}

// Apply makes the children what is wanted, each one whatever became of the others. The error joins what may go away by
// itself: it is to be tried again.
func (a *Applier) Apply(ctx context.Context, r Request) (Result, error) {
	children, err := a.children(r.Wanted)
	if err != nil {
		return Result{}, err
	}
	run := run{Applier: a, Request: r, wanted: map[Ref]bool{}, settled: map[Ref]bool{}}
	for _, child := range children {
		run.wanted[child.Ref] = true
	}
	// An autoscaler that is not wanted any more goes first: it would set the number of pods once more.
	run.prune(ctx, func(ref Ref) bool { return ref.Kind == kindAutoscaler })
	for _, child := range children {
		run.apply(ctx, child)
	}
	run.prune(ctx, func(ref Ref) bool { return ref.Kind != kindAutoscaler || r.Wanted.HorizontalPodAutoscaler != nil })
	return run.result, errors.Join(run.errs...)
}

// run is one Apply under way.
type run struct {
	*Applier
	Request

	wanted  map[Ref]bool
	settled map[Ref]bool // found as wanted, or as near to it as the server lets it be
	result  Result
	errs    []error
}
