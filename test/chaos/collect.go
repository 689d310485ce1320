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

// The folders that are searched for secrets: the second may contain numbers.
const (
	shownDir   = "shown"
	objectsDir = "objects"
)

// saveFinalState saves everything that is visible at the end.
func (t *trial) saveFinalState(ctx context.Context) error {
	for _, name := range []string{shownDir, objectsDir} {
		if err := os.MkdirAll(filepath.Join(t.dir, name), 0o700); err != nil {
			return err
		}
	}
	all := t.saveFile(shownDir, "refusals.txt", []byte(strings.Join(t.load.Refusals(), "\n")))
	for n, p := range t.roster.places {
		for _, path := range []string{"metrics", "problems"} {
			shown, err := downloadURL(ctx, "http://"+p.current().Health+"/"+path)
			all = errors.Join(all, err, t.saveFile(shownDir, fmt.Sprintf("%s-%d.txt", path, n), shown))
		}
	}
	if t.system.Admin != nil {
		all = errors.Join(all, t.saveObjects(ctx))
	}
	return errors.Join(all, t.witness.Conclude(ctx, t.dir))
}

func (t *trial) saveFile(dir, name string, content []byte) error {
	return os.WriteFile(filepath.Join(t.dir, dir, name), content, 0o600)
}

// saveObjects saves what users of kubectl can see.
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
		if err := t.saveFile(dir, name+".json", content); err != nil {
			return err
		}
	}
	return nil
}

func downloadURL(ctx context.Context, url string) ([]byte, error) {
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

// loadEvidence reads the ledgers, and searches everything else for values that must not be in it.
func (t *trial) loadEvidence() (*judge.Evidence, error) {
	e, err := judge.Load(t.dir)
	if err != nil {
		return nil, err
	}
	e.End, e.Kubernetes = t.ended, t.store == system.Kubernetes
	e.Times = judge.Times{Attempt: webhookTimeout, Record: request.RecordTimeout, Fresh: request.ClaimFresh}
	canaries := t.newCanaries(e.Acks)
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
			if !isOwnFile(file) {
				continue
			}
			e.Searched++
			e.Traces = append(e.Traces, findTraces(filepath.Base(file), content)...)
			e.Leaks = append(e.Leaks, canaries.Search(filepath.Base(file), content, filepath.Base(filepath.Dir(file)) != objectsDir)...)
		}
	}
	return e, nil
}

// findTraces returns where a stranger's words appear: they must not be in metrics or begin a line of a log, and no file
// may have a terminal's escape byte.
func findTraces(name string, content []byte) []string {
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

// isOwnFile reports whether PhoneProof wrote the file. The store's own log contains what its users send.
func isOwnFile(file string) bool {
	name := filepath.Base(file)
	return name != "postgresql.log" && name != "apiserver.log"
}

func (t *trial) newCanaries(acks []ledger.Ack) *canary.Canaries {
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
