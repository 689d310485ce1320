package witness

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/verification"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
)

// Etcd is the witness of a Kubernetes store: every revision of every object, from etcd's own log. A watch of the API
// server would lose what was committed in the moment before that was killed.
type Etcd struct {
	url       string
	namespace string
	admin     client.Client
	changes   *ledger.Writer
	stop      context.CancelFunc
	done      chan struct{}

	mu       sync.Mutex
	open     map[string]ledger.Change
	revision int64
	err      error
}

// WatchEtcd begins to write the changes of a namespace's requests into a folder, with etcd's address and a client that
// may list them.
func WatchEtcd(ctx context.Context, url, namespace, dir string, admin client.Client) (*Etcd, error) {
	changes, err := ledger.Create(filepath.Join(dir, ledger.StoreFile))
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	w := &Etcd{
		url: url, namespace: namespace, admin: admin, changes: changes, stop: stop, done: make(chan struct{}),
		open: map[string]ledger.Change{},
	}
	events, err := w.watch(watching)
	if err != nil {
		stop()
		return nil, errors.Join(fmt.Errorf("watch etcd: %w", err), changes.Close())
	}
	go func() { // ends with Conclude, or ctx
		defer close(w.done)
		err := w.follow(events)
		w.mu.Lock()
		defer w.mu.Unlock()
		if watching.Err() == nil {
			w.err = fmt.Errorf("watch etcd: %w", err)
		}
	}()
	return w, nil
}

// prefix is that of the requests' keys in etcd.
func (w *Etcd) prefix() string {
	return "/registry/" + verifyv1.GroupVersion.Group + "/verificationrequests/" + w.namespace + "/"
}

// watch asks for all that happens from now on. The answer is a stream of JSON, which etcd speaks beside gRPC.
func (w *Etcd) watch(ctx context.Context) (io.ReadCloser, error) {
	from := w.prefix()
	to := from[:len(from)-1] + "0" // the byte after the slash
	body := fmt.Sprintf(`{"create_request":{"key":%q,"range_end":%q,"prev_kv":true}}`,
		base64.StdEncoding.EncodeToString([]byte(from)), base64.StdEncoding.EncodeToString([]byte(to)))
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v3/watch", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, errors.New(response.Status)
	}
	return response.Body, nil
}

// keyValue is a key with its value, as etcd writes them.
type keyValue struct {
	Key         []byte `json:"key"`
	Value       []byte `json:"value"`
	Version     string `json:"version"`
	ModRevision string `json:"mod_revision"`
}

type message struct {
	Result struct {
		Canceled bool   `json:"canceled"`
		Reason   string `json:"cancel_reason"`
		Events   []struct {
			Type   string   `json:"type"`
			Now    keyValue `json:"kv"`
			Before keyValue `json:"prev_kv"`
		} `json:"events"`
	} `json:"result"`
}

func (w *Etcd) follow(events io.ReadCloser) error {
	defer func() { _ = events.Close() }()
	stream := json.NewDecoder(events)
	for {
		var m message
		if err := stream.Decode(&m); err != nil {
			return err
		}
		if m.Result.Canceled {
			return errors.New(m.Result.Reason)
		}
		for _, e := range m.Result.Events {
			op, value := ledger.Updated, e.Now.Value
			switch {
			case e.Type == "DELETE":
				op, value = ledger.Deleted, e.Before.Value
			case e.Now.Version == "1":
				op = ledger.Created
			}
			if err := w.note(op, value, e.Now.ModRevision); err != nil {
				return err
			}
		}
	}
}

func (w *Etcd) note(op string, value []byte, at string) error {
	var object verifyv1.VerificationRequest
	if err := json.NewDecoder(bytes.NewReader(value)).Decode(&object); err != nil {
		return fmt.Errorf("read an object: %w", err)
	}
	revision, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return fmt.Errorf("read a revision: %w", err)
	}
	c := changeOf(&object)
	c.Op, c.At = op, time.Now()
	if err := w.changes.Note(c); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revision = revision
	if open(c, c.At.Add(time.Hour)) {
		w.open[c.ID] = c
	} else {
		delete(w.open, c.ID)
	}
	return nil
}

// changeOf is an object's state. Its phase is spelled as the API answers it.
func changeOf(o *verifyv1.VerificationRequest) ledger.Change {
	c := ledger.Change{
		Facts: ledger.Facts{
			Phone: o.Spec.PhoneNumber, Actual: o.Status.ActualPhoneNumber, Method: strings.ToUpper(string(o.Spec.Method)),
			Assurance: string(o.Status.Assurance),
		},
		ID: o.Name, Phase: strings.ToUpper(string(o.Status.Phase)),
	}
	if c.Phase == "" { // what etcd has of an object whose status nobody has written; the schema's default is not in it
		c.Phase = string(verification.Pending)
	}
	if o.Status.VerifiedAt != nil {
		c.Verified = o.Status.VerifiedAt.Time
	}
	if o.Spec.Init != nil {
		c.Expires = o.Spec.Init.ExpiresAt.Time
	}
	if d := o.Status.Delivery; d != nil {
		c.Attempts, c.Code, c.Delivered, c.Exhausted = int(d.Attempts), int(d.LastStatusCode), d.DeliveredAt != nil, d.ExhaustedAt != nil
		c.Reason = d.LastReason
		if d.LastAttemptAt != nil {
			c.Tried = d.LastAttemptAt.Time
		}
		if d.NextAttemptAt != nil {
			c.Next = d.NextAttemptAt.Time
		}
	}
	return c
}

// Open implements Witness.
func (w *Etcd) Open(context.Context) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	count, now := 0, time.Now()
	for _, c := range w.open {
		if open(c, now) {
			count++
		}
	}
	return count, w.err
}

// listed is how many objects one page of the final list has.
const listed = 500

// Conclude implements Witness.
func (w *Etcd) Conclude(ctx context.Context, dir string) error {
	final, err := ledger.Create(filepath.Join(dir, ledger.FinalFile))
	if err != nil {
		return err
	}
	page := client.ListOptions{Namespace: w.namespace, Limit: listed}
	var list *verifyv1.VerificationRequestList
	for {
		list = &verifyv1.VerificationRequestList{}
		if err := w.admin.List(ctx, list, &page); err != nil {
			return errors.Join(fmt.Errorf("list the requests: %w", err), final.Close())
		}
		for i := range list.Items {
			c := changeOf(&list.Items[i])
			c.Op, c.At = ledger.Updated, time.Now()
			if err := final.Note(c); err != nil {
				return err
			}
		}
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
	}
	return errors.Join(final.Close(), w.catchUp(ctx, list.ResourceVersion), w.end())
}

// catchUp returns when the log was followed up to all that the list may have. Nothing changes any more, so a look at
// what is left open in eight seconds is enough where the list's revision is that of another kind's write.
func (w *Etcd) catchUp(ctx context.Context, revision string) error {
	want, err := strconv.ParseInt(revision, 10, 64)
	if err != nil {
		return fmt.Errorf("read the list's revision: %w", err)
	}
	deadline := time.NewTimer(8 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		w.mu.Lock()
		reached := w.revision >= want
		w.mu.Unlock()
		if reached {
			return nil
		}
		select {
		case <-deadline.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (w *Etcd) end() error {
	w.stop()
	<-w.done
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.err, w.changes.Close())
}
