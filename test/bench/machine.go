package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/pgserver"
	"github.com/phoneproof/phoneproof/test/repository"
)

// machine describes the machine that the figures depend on.
type machine struct {
	Commit     string  `json:"commit"`
	CPUs       int     `json:"cpus"`
	CPU        string  `json:"cpu"`
	MemoryGiB  float64 `json:"memoryGiB"`
	Kernel     string  `json:"kernel"`
	Go         string  `json:"go"`
	PostgreSQL string  `json:"postgreSQL"`
	Kubernetes string  `json:"kubernetes"`
	// SyncMicroseconds is the median time of a synced write of 8 KiB, which every commit waits for.
	SyncMicroseconds float64 `json:"syncMicroseconds"`
}

// describeMachine describes the machine; what cannot be found out is left empty.
func describeMachine(ctx context.Context, dir string) machine {
	m := machine{
		CPUs: runtime.NumCPU(), Go: runtime.Version(), CPU: readField("/proc/cpuinfo", "model name"),
		Commit: commandOutput(ctx, "git", "describe", "--always", "--dirty"), Kernel: commandOutput(ctx, "uname", "-sr"),
		SyncMicroseconds: measureSync(dir),
	}
	if kib, err := strconv.ParseFloat(strings.TrimSuffix(readField("/proc/meminfo", "MemTotal"), " kB"), 64); err == nil {
		m.MemoryGiB = float64(int(kib/(1<<20)*10)) / 10
	}
	if bin, err := pgserver.Bin(); err == nil {
		m.PostgreSQL = commandOutput(ctx, filepath.Join(bin, "postgres"), "--version")
	}
	if root, err := repository.Root(); err == nil {
		m.Kubernetes = commandOutput(ctx, filepath.Join(root, "bin", "kube", "kube-apiserver"), "--version")
	}
	return m
}

// String returns the machine in one line.
func (m machine) String() string {
	return fmt.Sprintf("%s, %d CPUs (%s), %.1f GiB, %s, %s, %s, %s; a synced write of 8 KiB takes %s µs",
		m.Commit, m.CPUs, m.CPU, m.MemoryGiB, m.Kernel, m.Go, m.PostgreSQL, m.Kubernetes, formatFigure(m.SyncMicroseconds))
}

// readField returns the value of the first line of a file with the name before its colon.
func readField(file, name string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func commandOutput(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// measureSync returns the median time in microseconds of a synced write of 8 KiB; zero if it fails.
func measureSync(dir string) float64 {
	file, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0
	}
	defer func() { _ = file.Close() }() // the file is temporary
	var took load.Histogram
	page := make([]byte, 8<<10)
	for range 200 {
		began := time.Now()
		if _, err := file.Write(page); err != nil {
			return 0
		}
		if err := file.Sync(); err != nil {
			return 0
		}
		took.Record(time.Since(began))
	}
	return float64(took.Quantile(0.5).Nanoseconds()) / 1e3
}
