package telegram

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sent is a call that the Bot API got.
type sent struct {
	host   string
	token  string
	method string
	body   []byte
}

// fakeAPI plays the Bot API as tdlib/telegram-bot-api does it, in the caller's goroutine: as a Transport, so that it works
// in a bubble, or as a Handler. Its zero value has no updates and no webhook.
type fakeAPI struct {
	mu      sync.Mutex
	calls   []sent
	queue   []json.RawMessage
	ids     []int64
	webhook string
	// fail returns a golden answer and its status to give in place of the real one; "" for none.
	fail func(method string, body []byte) string
	// held ends the poll that is being held.
	held chan struct{}
}

func (f *fakeAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	f.ServeHTTP(recorder, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return recorder.Result(), nil
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		panic("not a call of the Bot API")
	}
	f.mu.Lock()
	f.calls = append(f.calls, sent{r.URL.Host, token, method, body})
	fail := f.fail
	f.mu.Unlock()
	if fail != nil {
		if name := fail(method, body); name != "" {
			f.answerGolden(w, name)
			return
		}
	}
	switch method {
	case "getUpdates":
		f.getUpdates(w, r, body)
	case "getWebhookInfo":
		f.mu.Lock()
		defer f.mu.Unlock()
		fmt.Fprintf(w, `{"ok":true,"result":{"url":%q,"has_custom_certificate":false,"pending_update_count":%d}}`, f.webhook, len(f.queue))
	case "deleteWebhook":
		f.mu.Lock()
		defer f.mu.Unlock()
		f.webhook = ""
		fmt.Fprint(w, `{"ok":true,"result":true,"description":"Webhook was deleted"}`)
	default:
		fmt.Fprint(w, `{"ok":true,"result":true}`)
	}
}

func (f *fakeAPI) answerGolden(w http.ResponseWriter, name string) {
	b, err := os.ReadFile("testdata/answers/" + name + ".json")
	if err != nil {
		panic(err)
	}
	if parts := strings.Split(name, "_"); parts[0] == "error" {
		status, err := strconv.Atoi(parts[1])
		if err != nil {
			panic(err)
		}
		w.WriteHeader(status)
	}
	w.Write(b) //nolint:errcheck // a recorder's
}

// getUpdates forgets what is before the offset and holds the poll until there is something.
func (f *fakeAPI) getUpdates(w http.ResponseWriter, r *http.Request, body []byte) {
	var in getUpdates
	if err := json.Unmarshal(body, &in); err != nil {
		panic(err)
	}
	f.mu.Lock()
	if f.webhook != "" {
		f.mu.Unlock()
		f.answerGolden(w, "error_409_webhook")
		return
	}
	for len(f.ids) > 0 && f.ids[0] < in.Offset {
		f.ids, f.queue = f.ids[1:], f.queue[1:]
	}
	n := min(len(f.queue), in.Limit)
	batch := f.queue[:n:n]
	over := f.hold(n == 0)
	f.mu.Unlock()
	if n == 0 {
		timer := time.NewTimer(time.Duration(in.Timeout) * time.Second)
		defer timer.Stop()
		select {
		case <-r.Context().Done():
		case <-timer.C:
		case <-over:
			f.answerGolden(w, "error_409_poller")
			return
		}
		batch = []json.RawMessage{}
	}
	b, err := json.Marshal(struct {
		OK     bool              `json:"ok"`
		Result []json.RawMessage `json:"result"`
	}{true, batch})
	if err != nil {
		panic(err)
	}
	w.Write(b) //nolint:errcheck // a recorder's
}

// hold ends the poll that was held before with a 409, if this one is to be held, and returns what will end this one.
func (f *fakeAPI) hold(this bool) chan struct{} {
	if !this {
		return nil
	}
	if f.held != nil {
		close(f.held)
	}
	over := make(chan struct{})
	f.held = over
	return over
}

// arrive puts an update into the queue.
func (f *fakeAPI) arrive(id int64, update []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids, f.queue = append(f.ids, id), append(f.queue, update)
}

// hook sets the webhook.
func (f *fakeAPI) hook(url string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.webhook = url
}

func (f *fakeAPI) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue)
}

// failing sets what answers instead of the real thing.
func (f *fakeAPI) failing(fail func(method string, body []byte) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

// got returns the bodies of the calls of a method.
func (f *fakeAPI) got(method string) [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all [][]byte
	for _, c := range f.calls {
		if c.method == method {
			all = append(all, c.body)
		}
	}
	return all
}

func (f *fakeAPI) all() []sent {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// always fails every call of a method.
func always(method, answer string) func(string, []byte) string {
	return func(m string, _ []byte) string {
		if m == method {
			return answer
		}
		return ""
	}
}
