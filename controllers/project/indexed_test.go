package project

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// indexedReader is the operator's cache with its indexes, but without an API server, so it can hold thousands of projects. It
// counts the objects that it returns.
type indexedReader struct {
	client.Client // for the unused methods

	stores map[reflect.Type]cache.Indexer
	read   int
}

func newReader() *indexedReader { return &indexedReader{stores: map[reflect.Type]cache.Indexer{}} }

// newIndexedReader returns a reader with the controller's indexes.
func newIndexedReader(ctx context.Context) *indexedReader {
	r := newReader()
	if err := indexFields(ctx, r); err != nil {
		panic(err)
	}
	return r
}

func (r *indexedReader) findIndexer(kind reflect.Type) cache.Indexer {
	if r.stores[kind] == nil {
		r.stores[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	return r.stores[kind]
}

// IndexField adds an index as the cache of controller-runtime does: with the namespace, and without.
func (r *indexedReader) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	return r.findIndexer(reflect.TypeOf(object)).AddIndexers(cache.Indexers{field: func(item any) (keys []string, err error) {
		object := item.(client.Object)
		for _, value := range values(object) {
			keys = append(keys, object.GetNamespace()+"/"+value, "/"+value)
		}
		return keys, nil
	}})
}

func (r *indexedReader) addObjects(objects ...client.Object) {
	for _, object := range objects {
		if err := r.findIndexer(reflect.TypeOf(object)).Add(object); err != nil {
			panic(err)
		}
	}
}

// removeKind removes all objects of a kind, with its indexes.
func (r *indexedReader) removeKind(kind client.Object) { delete(r.stores, reflect.TypeOf(kind)) }

// replaceKind replaces all objects of a kind, and returns what notifies an informer of the differences.
func (r *indexedReader) replaceKind(kind client.Object, objects []client.Object, informer *controllertest.FakeInformer) (notify []func()) {
	store := r.findIndexer(reflect.TypeOf(kind))
	before, after := map[string]client.Object{}, map[string]client.Object{}
	for _, item := range store.List() {
		before[client.ObjectKeyFromObject(item.(client.Object)).String()] = item.(client.Object)
	}
	for _, object := range objects {
		after[client.ObjectKeyFromObject(object).String()] = object
	}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if old, now := before[key], after[key]; now == nil || now.GetUID() != old.GetUID() {
			notify = append(notify, func() { informer.Delete(old) })
			delete(before, key)
		}
	}
	items := make([]any, 0, len(objects))
	for _, key := range slices.Sorted(maps.Keys(after)) {
		old, now := before[key], after[key]
		switch {
		case old == nil:
			notify = append(notify, func() { informer.Add(now) })
		case old.GetResourceVersion() != now.GetResourceVersion():
			notify = append(notify, func() { informer.Update(old, now) })
		}
		items = append(items, now)
	}
	if err := store.Replace(items, ""); err != nil {
		panic(err)
	}
	return notify
}

func (r *indexedReader) Get(_ context.Context, key client.ObjectKey, out client.Object, options ...client.GetOption) error {
	item, ok, err := r.findIndexer(reflect.TypeOf(out)).GetByKey(key.String())
	if err != nil || !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	r.read++
	found := item.(runtime.Object)
	if !ptr.Deref((&client.GetOptions{}).ApplyOptions(options).UnsafeDisableDeepCopy, false) {
		found = found.DeepCopyObject()
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(found).Elem())
	return nil
}

func (r *indexedReader) List(_ context.Context, out client.ObjectList, options ...client.ListOption) error {
	kind, _ := reflect.TypeOf(out).Elem().FieldByName("Items")
	o := (&client.ListOptions{}).ApplyOptions(options)
	store := r.findIndexer(reflect.PointerTo(kind.Type.Elem()))
	items, err := store.List(), error(nil)
	if o.FieldSelector != nil {
		requirement := o.FieldSelector.Requirements()[0]
		items, err = store.ByIndex(requirement.Field, o.Namespace+"/"+requirement.Value)
	} else if o.Namespace != "" {
		items, err = store.ByIndex(cache.NamespaceIndex, o.Namespace)
	}
	if err != nil {
		return err
	}
	var objects []runtime.Object
	for _, item := range items {
		object := item.(client.Object)
		if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		found := object.(runtime.Object)
		if !ptr.Deref(o.UnsafeDisableDeepCopy, false) {
			found = found.DeepCopyObject()
		}
		objects = append(objects, found)
	}
	slices.SortFunc(objects, func(a, b runtime.Object) int {
		return strings.Compare(client.ObjectKeyFromObject(a.(client.Object)).String(), client.ObjectKeyFromObject(b.(client.Object)).String())
	})
	if o.Limit > 0 && len(objects) > int(o.Limit) {
		objects = objects[:o.Limit]
	}
	r.read += len(objects)
	return meta.SetList(out, objects)
}

// crowd is a cache with some projects, each in a namespace of its own with an account, a host and children.
type crowd struct {
	*Controller

	reader  *indexedReader
	project *verifyv1.VerificationProject // one of them
	rolling *appsv1.Deployment            // its Deployment
}

func newCrowd(ctx context.Context, size int) *crowd {
	c := &crowd{Controller: New(Options{MaxUnreadyRollouts: 10, Clock: clock.RealClock{}}), reader: newIndexedReader(ctx)}
	c.client = c.reader
	for i := range size {
		name := fmt.Sprintf("p%d", i)
		p := newProject("of-"+name, name)
		p.UID = types.UID(name)
		p.Spec.Telegram.BotUsername = fmt.Sprintf("crowd%d_bot", i)
		host := verifyv1.Hostname(name + ".example.com")
		p.Spec.Expose.Ingress = &verifyv1.IngressSettings{Host: host}
		children := metav1.ObjectMeta{
			Namespace: p.Namespace, Name: render.Name(name), UID: p.UID, Labels: map[string]string{verifyv1.ProjectLabel: name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p, verifyv1.GroupVersion.WithKind(verifyv1.VerificationProjectKind))},
		}
		ingress := &networkingv1.Ingress{ObjectMeta: children}
		ingress.Spec.Rules = []networkingv1.IngressRule{{Host: string(host)}}
		d := pods(rolledOut, 1)
		d.ObjectMeta = children
		c.reader.addObjects(p, ingress, d)
		c.project, c.rolling = p, d
	}
	return c
}

// lockedWork is the work of one reconciliation under a lock, by its purpose.
var lockedWork = map[string]func(context.Context, *crowd) error{
	"claim": func(ctx context.Context, c *crowd) error {
		return c.claimAccount(ctx, &account{name: listAccounts(&c.project.Spec)[0]}, c.project)
	},
	"host": func(ctx context.Context, c *crowd) error {
		request := &hostRequest{answers: true, exposure: exposure{
			namespace: c.project.Namespace, project: c.project.Name, owner: c.project.UID, hosts: collectHosts(c.project, true),
		}}
		_, err := c.hosts.requestHosts(ctx, c.reader, false, request, &c.Permissions)
		return err
	},
	"turn": func(ctx context.Context, c *crowd) error {
		_, err := c.turns.takeTurn(ctx, c.reader, c.rolling, c.MaxUnreadyRollouts, time.Now())
		c.turns.giveBack(c.rolling)
		return err
	},
}

var _ = Describe("Work under a lock that all projects share", func() {
	const few, many = 10, 1000
	for name, work := range lockedWork {
		It("reads no more for a "+name+" among many projects than among few", func(ctx SpecContext) {
			read := func(size int) int {
				c := newCrowd(ctx, size)
				Expect(work(ctx, c)).To(Succeed()) // the first turn reads all Deployments
				c.reader.read = 0
				Expect(work(ctx, c)).To(Succeed())
				return c.reader.read
			}
			Expect(read(many)).To(Equal(read(few)))
		})
	}
})

// BenchmarkLocked measures the work under each lock for one project among 10 and among 1,000.
func BenchmarkLocked(b *testing.B) {
	for name, work := range lockedWork {
		for _, size := range []int{10, 1000} {
			b.Run(fmt.Sprintf("%s/projects=%d", name, size), func(b *testing.B) {
				ctx := b.Context()
				c := newCrowd(ctx, size)
				if err := work(ctx, c); err != nil { // the first turn reads all Deployments
					b.Fatal(err)
				}
				for b.Loop() {
					if err := work(ctx, c); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
