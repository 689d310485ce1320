package system

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/test/program"
)

const (
	// readyTimeout bounds the start of a replica on a loaded machine, including the creation of its tables.
	readyTimeout = 2 * time.Minute
	probeEvery   = 25 * time.Millisecond
	probeWait    = 10 * time.Second
)

// Replica is a serve process of a project.
type Replica struct {
	*Process

	// Name is unique in the system, even among replicas that have ended. Its log file has that name.
	Name string
	// API, Health and Profiles are its addresses, as host:port. Profiles serves net/http/pprof.
	API      string
	Health   string
	Profiles string
	LogFile  string
}

// StartReplica starts a replica and does not wait for it; see AwaitReady. Later flags win over earlier ones.
func (p *Project) StartReplica(flags ...string) (*Replica, error) {
	var addresses [3]string
	for i := range addresses {
		var err error
		if addresses[i], err = p.system.reserveAddress(); err != nil {
			return nil, fmt.Errorf("start replica of %s: %w", p.Name(), err)
		}
	}
	p.mu.Lock()
	p.started++
	name := fmt.Sprintf("%s-%d", p.Namespace, p.started)
	log, err := p.system.openLog(name)
	p.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("start replica of %s: %w", p.Name(), err)
	}
	r := &Replica{Name: name, API: addresses[0], Health: addresses[1], Profiles: addresses[2], LogFile: log.Name()}
	variables := append(slices.Clone(p.system.options.Environment), program.ProfileAddress+"="+r.Profiles)
	r.Process, err = StartProcess(log, variables, p.system.options.Program, slices.Concat([]string{
		"serve", "--bind-address", r.API, "--health-bind-address", r.Health, "--drain-delay=200ms", "--secrets-dir", p.SecretsDir,
	}, p.serveFlags(), p.system.options.Flags, flags)...)
	if err != nil {
		return nil, fmt.Errorf("start replica of %s: %w", p.Name(), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replicas = append(p.replicas, r)
	return r, nil
}

// serveFlags returns the flags that select what a replica serves, and where the messengers are.
func (p *Project) serveFlags() []string {
	o := p.system.options
	flags := []string{"--whatsapp-url=" + orUnreachable(o.Graph), "--telegram-url=" + orUnreachable(o.Telegram)}
	flags = append(flags, "--telegram-gateway-url="+orUnreachable(o.Gateway))
	if p.system.Plane != nil {
		return append(flags, "--project="+p.Name(), "--kubeconfig="+p.kubeconfig)
	}
	return append(flags, "--project-file="+p.file, "--store="+string(o.Store))
}

func orUnreachable(url string) string {
	if url == "" {
		return unreachableURL
	}
	return url
}

// Replicas returns the running replicas of the project, the oldest first.
func (p *Project) Replicas() []*Replica {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.replicas = slices.DeleteFunc(p.replicas, func(r *Replica) bool { return !r.Running() })
	return slices.Clone(p.replicas)
}

// AwaitReady waits until the replica is ready to serve.
func (r *Replica) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for !r.Ready(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until replica is ready, see %s: %w", r.LogFile, ctx.Err())
		case <-r.exited:
			return fmt.Errorf("wait until replica is ready, see %s: it exited", r.LogFile)
		case <-tick.C:
		}
	}
	return nil
}

// Ready reports whether the replica's readiness probe succeeds.
func (r *Replica) Ready(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Health+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // only its status matters
	return response.StatusCode == http.StatusOK
}

// Residence is resident memory, in bytes.
type Residence struct {
	Resident int64
	// Own is the memory that no other process shares and that the kernel cannot take back.
	Own int64
	// Files are mapped pages of files, above all the program's own. All processes of a machine with that file share them.
	Files int64
}

// Memory returns the resident memory of the process.
func (r *Replica) Memory() (Residence, error) {
	var m Residence
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.PID))
	if err != nil {
		return m, fmt.Errorf("read memory of %s: %w", r.Name, err)
	}
	found := map[string]*int64{"VmRSS:": &m.Resident, "RssAnon:": &m.Own, "RssFile:": &m.Files}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || found[fields[0]] == nil {
			continue
		}
		kib, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return m, fmt.Errorf("read memory of %s: %w", r.Name, err)
		}
		*found[fields[0]] = kib << 10
		delete(found, fields[0])
	}
	if len(found) > 0 {
		return m, fmt.Errorf("read memory of %s: status of process %d is incomplete", r.Name, r.PID)
	}
	return m, nil
}
