package apply

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// FieldOwner owns every field that the operator sets on a child.
const FieldOwner = client.FieldOwner("phoneproof-operator")

// Options configure an Applier.
type Options struct {
	// Client writes to the API server, and reads from the cache, unstructured objects too. The cache must keep managedFields;
	// it may hold only objects that have verifyv1.ProjectLabel.
	Client client.Client
	// Live reads from the API server, and is used only if the cache and the API server disagree.
	Live client.Reader
	// HTTPRoutes reports whether the cluster has the Gateway API's HTTPRoute now.
	HTTPRoutes func() bool
}

// Applier applies the children of projects. It keeps no state, so many workers may use it at once.
type Applier struct {
	Options
}

// New returns an Applier.
func New(o Options) *Applier { return &Applier{Options: o} }

// Request is the input of Apply.
type Request struct {
	// Project is the controller of the children.
	Project *verifyv1.VerificationProject
	// Observed is the result of Observe for the project.
	Observed *Observed
	// Wanted is the result of render for the project; Apply modifies it.
	Wanted render.Children
	// HoldDeployment leaves an existing Deployment unchanged, even if it differs, and everything that its pods need.
	HoldDeployment bool
}

// Result is the outcome of a Request.
type Result struct {
	// Applied and Deleted are the children that were changed; empty if nothing differed.
	Applied, Deleted []Ref
	// Conflicts are the children whose name is taken by an object of another owner. They are not applied.
	Conflicts []Ref
	// Rejections are the children that the API server refuses: a retry helps only after the project, or what the cluster allows,
	// has changed.
	Rejections []Rejection
	// Waiting are the children that are not applied because what they depend on is in conflict, and unwanted ones that stay until
	// a rollout is complete.
	Waiting []Ref
}

// Ref names a child in its project's namespace.
type Ref struct{ Kind, Name string }

// String returns the reference as in messages: Deployment phoneproof-shop.
func (r Ref) String() string { return r.Kind + " " + r.Name }

// Rejection is why the API server refuses a child.
type Rejection struct {
	Ref

	// Field is the path inside the child; empty if the refusal is about no single field, such as a quota's.
	Field string
	// Message is the API server's message, at most 256 bytes.
	Message string
}

// Apply makes each child what is wanted, even if others fail. The error joins the failures that a retry may resolve.
func (a *Applier) Apply(ctx context.Context, r Request) (Result, error) {
	children, err := a.listChildren(r.Wanted)
	if err != nil {
		return Result{}, fmt.Errorf("list children: %w", err)
	}
	run := run{Applier: a, Request: r, wanted: map[Ref]bool{}, settled: map[Ref]bool{}}
	for _, child := range children {
		run.wanted[child.Ref] = true
	}
	// An unwanted autoscaler is deleted first: it could still set the number of pods.
	run.pruneChildren(ctx, func(ref Ref) bool { return ref.Kind == kindAutoscaler })
	for _, child := range children {
		run.applyChild(ctx, child)
	}
	run.pruneChildren(ctx, func(ref Ref) bool { return ref.Kind != kindAutoscaler || r.Wanted.HorizontalPodAutoscaler != nil })
	return run.result, errors.Join(run.errs...)
}

// run is the state of one Apply.
type run struct {
	*Applier
	Request

	wanted  map[Ref]bool
	settled map[Ref]bool // found as wanted, or as close to it as the server allows
	result  Result
	errs    []error
}
