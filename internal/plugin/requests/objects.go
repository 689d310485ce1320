package requests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/plugin"
)

const (
	// chunk is how many objects are read at once.
	chunk = 500
	// projectField selects the requests of a project.
	projectField = "spec.projectRef.name"
	nameField    = "metadata.name"
)

// objects are the requests that are stored as objects.
type objects struct {
	client *plugin.Client
	now    func() time.Time
}

// selectRequests selects all requests of the project.
func (o *objects) selectRequests() []client.ListOption {
	return []client.ListOption{
		client.InNamespace(o.client.Project.Namespace), client.MatchingFields{projectField: o.client.Project.Name},
	}
}

// List reads all objects of the project: the API server does not sort by time.
func (o *objects) List(ctx context.Context, query Query, limit int) ([]Request, error) {
	found, _, err := o.readAll(ctx, query, o.selectRequests())
	if err != nil {
		return nil, err
	}
	return found[:min(len(found), limit)], nil
}

// readAll returns the selected requests, newest first, and the version of the list.
func (o *objects) readAll(ctx context.Context, query Query, selector []client.ListOption) ([]Request, string, error) {
	var (
		found []Request
		list  verifyv1.VerificationRequestList
	)
	for first := true; first || list.Continue != ""; first = false {
		next := list.Continue
		list = verifyv1.VerificationRequestList{}
		if err := o.client.List(ctx, &list, append(slices.Clone(selector), client.Limit(chunk), client.Continue(next))...); err != nil {
			return nil, "", fmt.Errorf("list VerificationRequests: %w", err)
		}
		for i := range list.Items {
			request := convertObject(&list.Items[i], o.now())
			request.Attempts = nil // as the API lists them
			if selects(&query, &request) {
				found = append(found, request)
			}
		}
	}
	slices.SortFunc(found, func(a, b Request) int {
		if byTime := b.CreatedAt.Compare(a.CreatedAt); byTime != 0 {
			return byTime
		}
		return strings.Compare(b.RequestID, a.RequestID)
	})
	return found, list.ResourceVersion, nil
}

// Get reads one object.
func (o *objects) Get(ctx context.Context, id string) (Request, error) {
	object, err := readObject(ctx, o.client, id)
	if err != nil {
		return Request{}, err
	}
	return convertObject(object, o.now()), nil
}

// readObject reads an object that belongs to the project.
func readObject(ctx context.Context, c *plugin.Client, id string) (*verifyv1.VerificationRequest, error) {
	object := &verifyv1.VerificationRequest{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: c.Project.Namespace, Name: id}, object); err != nil {
		return nil, fmt.Errorf("read VerificationRequest: %w", err)
	}
	if object.Spec.ProjectRef.Name != c.Project.Name {
		return nil, fmt.Errorf("request %s belongs to project %s", id, object.Spec.ProjectRef.Name)
	}
	return object, nil
}

// errStaleWatch means that the watch has to begin again.
var errStaleWatch = errors.New("the watch is too old")

// Watch follows the objects of the project.
func (o *objects) Watch(ctx context.Context, query Query, show func(Request) error) error {
	return o.watchObjects(ctx, objectWatch{
		selector: o.selectRequests(), query: query, show: show,
		listed:  func(int) error { return nil },
		deleted: func() error { return nil },
	})
}

// Follow follows one object of the project, with the rights of Watch.
func (o *objects) Follow(ctx context.Context, id string, show func(Request) error) error {
	wasThere := false
	return o.watchObjects(ctx, objectWatch{
		selector: append(o.selectRequests(), client.MatchingFields{projectField: o.client.Project.Name, nameField: id}), show: show,
		listed: func(count int) error {
			if count == 0 {
				return describeAbsence(id, wasThere)
			}
			wasThere = true
			return nil
		},
		deleted: func() error { return describeAbsence(id, true) },
	})
}

// objectWatch is which objects are watched, and what is done with them. An error of its functions ends the watch.
type objectWatch struct {
	selector []client.ListOption
	query    Query
	// listed is called with how many objects there are when the watch begins, and each time that it begins again.
	listed func(count int) error
	// show is called with each object that is new or changed, deleted after each deletion.
	show    func(Request) error
	deleted func() error
}

// watchObjects begins again where the API server ends a watch.
func (o *objects) watchObjects(ctx context.Context, w objectWatch) error {
	seen, show := map[string]string{}, w.show
	w.show = func(request Request) error {
		state := stateOf(&request)
		if !selects(&w.query, &request) || seen[request.RequestID] == state {
			return nil
		}
		seen[request.RequestID] = state
		return show(request)
	}
	for ctx.Err() == nil {
		list, version, err := o.readAll(ctx, w.query, w.selector)
		if err != nil {
			return endOf(ctx, err)
		}
		if err := w.listed(len(list)); err != nil {
			return err
		}
		for _, request := range slices.Backward(list) {
			if err := w.show(request); err != nil {
				return err
			}
		}
		if err := o.followChanges(ctx, version, &w); err != nil && !errors.Is(err, errStaleWatch) {
			return endOf(ctx, err)
		}
	}
	return nil
}

// endOf returns no error if the user ended the command.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the end was asked for
	}
	return err
}

// followChanges reports changes since a version until the API server ends the watch.
func (o *objects) followChanges(ctx context.Context, version string, w *objectWatch) error {
	raw := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}}
	watching, err := o.client.Watch(ctx, &verifyv1.VerificationRequestList{}, append([]client.ListOption{raw}, w.selector...)...)
	if err != nil {
		return fmt.Errorf("watch VerificationRequests: %w", err)
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		switch object := event.Object.(type) {
		case *verifyv1.VerificationRequest:
			var err error
			if event.Type == watch.Deleted {
				err = w.deleted()
			} else {
				err = w.show(convertObject(object, o.now()))
			}
			if err != nil {
				return err
			}
		case *metav1.Status:
			if failed := apierrors.FromObject(object); !apierrors.IsResourceExpired(failed) && !apierrors.IsGone(failed) {
				return fmt.Errorf("watch VerificationRequests: %w", failed)
			}
			return errStaleWatch
		}
	}
	return errStaleWatch
}
