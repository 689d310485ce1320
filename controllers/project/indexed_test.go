package project

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

func newIndexedReader(ctx context.Context) *indexedReader {
	r := &indexedReader{stores: map[reflect.Type]cache.Indexer{}}
	if err := indexFields(ctx, r); err != nil {
		panic(err)
	}
	return r
}

func (r *indexedReader) findIndexer(object client.Object) cache.Indexer {
	kind := reflect.TypeOf(object)
	if r.stores[kind] == nil {
		r.stores[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	return r.stores[kind]
}

// IndexField adds an index as the cache of controller-runtime does: with the namespace, and without.
func (r *indexedReader) IndexField(_ context.Context, object client.Object, field string, values client.IndexerFunc) error {
	return r.findIndexer(object).AddIndexers(cache.Indexers{field: func(item any) (keys []string, err error) {
		object := item.(client.Object)
		for _, value := range values(object) {
			keys = append(keys, object.GetNamespace()+"/"+value, "/"+value)
		}
		return keys, nil
	}})
}

func (r *indexedReader) addObjects(objects ...client.Object) {
	for _, object := range objects {
		if err := r.findIndexer(object).Add(object); err != nil {
			panic(err)
		}
	}
}

func (r *indexedReader) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	item, ok, err := r.findIndexer(out).GetByKey(key.String())
	if err != nil || !ok {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	r.read++
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(item).Elem())
	return nil
}

func (r *indexedReader) List(_ context.Context, out client.ObjectList, options ...client.ListOption) error {
	kinds := map[reflect.Type]client.Object{
		reflect.TypeFor[*verifyv1.VerificationProjectList](): &verifyv1.VerificationProject{},
		reflect.TypeFor[*networkingv1.IngressList]():         &networkingv1.Ingress{},
		reflect.TypeFor[*corev1.ServiceList]():               &corev1.Service{},
		reflect.TypeFor[*appsv1.DeploymentList]():            &appsv1.Deployment{},
	}
	o := (&client.ListOptions{}).ApplyOptions(options)
	store := r.findIndexer(kinds[reflect.TypeOf(out)])
	var items []any
	if o.FieldSelector == nil {
		items = store.List()
	} else {
		requirement := o.FieldSelector.Requirements()[0]
		var err error
		if items, err = store.ByIndex(requirement.Field, o.Namespace+"/"+requirement.Value); err != nil {
			return err
		}
	}
	objects := make([]runtime.Object, 0, len(items))
	for _, item := range items {
		objects = append(objects, item.(runtime.Object))
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
		_, _, err := c.hosts.requestHosts(ctx, c.reader, false, request, &c.Permissions)
		return err
	},
	"turn": func(ctx context.Context, c *crowd) error {
		_, err := c.turns.take(ctx, c.reader, c.rolling, c.MaxUnreadyRollouts, time.Now())
		c.turns.giveBack(c.rolling.UID)
		return err
	},
}

var _ = Describe("Work under a lock that all projects share", func() {
	const few, many = 10, 1000
	for name, work := range lockedWork {
		It("reads no more for a "+name+" among many projects than among few", func(ctx SpecContext) {
			read := func(size int) int {
				c := newCrowd(ctx, size)
				Expect(work(ctx, c)).To(Succeed()) // the first turn counts the namespaces
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
				if err := work(ctx, c); err != nil { // the first turn counts the namespaces
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
