package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/request"
	"github.com/phoneproof/phoneproof/test/chaos/canary"
	"github.com/phoneproof/phoneproof/test/chaos/judge"
	"github.com/phoneproof/phoneproof/test/chaos/ledger"
	"github.com/phoneproof/phoneproof/test/chaos/load"
	"github.com/phoneproof/phoneproof/test/system"
)

// The folders of what is looked through for secrets: in the second, numbers belong.
const (
	shownDir   = "shown"
	objectsDir = "objects"
)

// collect writes down everything that is there to be seen at the end.
func (t *trial) collect(ctx context.Context) error {
	for _, name := range []string{shownDir, objectsDir} {
		if err := os.MkdirAll(filepath.Join(t.dir, name), 0o700); err != nil {
			return err
		}
	}
	all := t.save(shownDir, "refusals.txt", []byte(strings.Join(t.load.Refusals(), "\n")))
	for n, p := range t.roster.places {
		for _, path := range []string{"metrics", "problems"} {
			shown, err := get(ctx, "http://"+p.now().Health+"/"+path)
			all = errors.Join(all, err, t.save(shownDir, fmt.Sprintf("%s-%d.txt", path, n), shown))
		}
	}
	if t.system.Admin != nil {
		all = errors.Join(all, t.saveObjects(ctx))
	}
	return errors.Join(all, t.witness.Conclude(ctx, t.dir))
}

func (t *trial) save(dir, name string, content []byte) error {
	return os.WriteFile(filepath.Join(t.dir, dir, name), content, 0o600)
}

// saveObjects writes down what people with kubectl see.
func (t *trial) saveObjects(ctx context.Context) error {
	for name, list := range map[string]client.ObjectList{
		"events": &corev1.EventList{}, "projects": &verifyv1.VerificationProjectList{}, "requests": &verifyv1.VerificationRequestList{},
	} {
		if err := t.system.Admin.List(ctx, list, client.InNamespace(t.system.Namespace)); err != nil {
			return fmt.Errorf("list %s: %w", name, err)
		}
		content, err := json.MarshalIndent(list, "", " ")
		if err != nil {
			return err
		}
		dir := shownDir
		if name == "requests" {
			dir = objectsDir
		}
		if err := t.save(dir, name+".json", content); err != nil {
			return err
		}
	}
	return nil
}

func get(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// evidence reads the ledgers, and looks through all else for what must not be in it.
func (t *trial) evidence() (*judge.Evidence, error) {
	e, err := judge.Load(t.dir)
	if err != nil {
		return nil, err
	}
	e.End, e.Kubernetes = t.ended, t.store == system.Kubernetes
	e.Times = judge.Times{Attempt: webhookTimeout, Record: request.RecordTimeout, Fresh: request.ClaimFresh}
	canaries := t.canaries(e.Acks)
	for _, pattern := range []string{"system/*.log", shownDir + "/*", objectsDir + "/*"} {
		files, err := filepath.Glob(filepath.Join(t.dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			if !ours(file) {
				continue
			}
			e.Searched++
			e.Traces = append(e.Traces, traces(filepath.Base(file), content)...)
			e.Leaks = append(e.Leaks, canaries.Search(filepath.Base(file), content, filepath.Base(filepath.Dir(file)) != objectsDir)...)
		}
	}
	return e, nil
}

// traces tells where a stranger's words came through: what is measured has none of them, and no line of a log begins with
// one, or has a byte that a terminal obeys.
func traces(name string, content []byte) []string {
	var found []string
	if strings.HasPrefix(name, "metrics") && bytes.Contains(bytes.ToLower(content), []byte(load.Marker)) {
		found = append(found, name+": a word that a stranger made up")
	}
	if strings.HasSuffix(name, ".log") && bytes.Contains(content, []byte("\n"+load.Marker)) {
		found = append(found, name+": a line that a stranger began")
	}
	if bytes.ContainsAny(content, "\x1b\u009b") {
		found = append(found, name+": an escape sequence")
	}
	return found
}

// ours tells whether PhoneProof wrote the file. The store's own log holds what its users send.
func ours(file string) bool {
	name := filepath.Base(file)
	return name != "postgresql.log" && name != "apiserver.log"
}

func (t *trial) canaries(acks []ledger.Ack) *canary.Canaries {
	c := canary.New()
	for n, secret := range t.secrets {
		c.Secret(fmt.Sprintf("secret %d of the project", n), secret)
	}
	for _, a := range acks {
		c.Code(a.Code)
		c.Number(a.Phone)
		c.Number(a.Number)
	}
	return c
}
