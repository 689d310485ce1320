package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/phoneproof/phoneproof/test/bench/load"
	"github.com/phoneproof/phoneproof/test/pgserver"
)

// insertScript stores a row like a request's, in our own table with its indexes, for a project without a process.
const insertScript = `INSERT INTO phoneproof_requests
	(project, id, phone, method, created_at, expires_at, key_name, body_hash, phase, version, work, since)
VALUES ('bench/other', 'vr' || md5(random()::text), '+4915112345678', 'WHATSAPP', now(), now() + interval '10 minutes', 'backend', '',
	'PENDING', 1, 1, now() + interval '10 minutes');
`

var tpsPattern = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)

// runPgbench commits single rows with all clients, as often as possible or at a rate. The latency is only measured at a
// rate and, as ours, counts from when a transaction was due.
func (b *bench) runPgbench(
	ctx context.Context, server *pgserver.Server, perSecond float64,
) (rate float64, latency *load.Histogram, err error) {
	dir, err := os.MkdirTemp(b.dir, "pgbench-")
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	script := filepath.Join(dir, "insert.sql")
	if err := os.WriteFile(script, []byte(insertScript), 0o600); err != nil {
		return 0, nil, err
	}
	args := []string{
		"-n", "-M", "prepared", "-f", script, "-c", strconv.Itoa(clients), "-j", "2", "-T", strconv.Itoa(int(b.length.Seconds())),
		"-U", "postgres", "-h", "127.0.0.1", "-p", strconv.Itoa(server.Port),
	}
	if perSecond > 0 {
		args = append(args, "-R", strconv.FormatFloat(perSecond, 'f', 1, 64), "-l")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(server.Bin, "pgbench"), append(args, "postgres")...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, nil, fmt.Errorf("run pgbench: %w: %s", err, out)
	}
	found := tpsPattern.FindSubmatch(out)
	if found == nil {
		return 0, nil, fmt.Errorf("output of pgbench has no rate: %s", out)
	}
	if rate, err = strconv.ParseFloat(string(found[1]), 64); err != nil {
		return 0, nil, err
	}
	latency, err = readPgbenchLog(dir)
	return rate, latency, err
}

// readPgbenchLog reads pgbench's log of transactions; the third field is the time in microseconds.
func readPgbenchLog(dir string) (*load.Histogram, error) {
	files, err := filepath.Glob(filepath.Join(dir, "pgbench_log.*"))
	if err != nil {
		return nil, err
	}
	all := &load.Histogram{}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		for lines := bufio.NewScanner(file); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) < 6 {
				continue
			}
			if microseconds, err := strconv.ParseInt(fields[2], 10, 64); err == nil {
				all.Record(time.Duration(microseconds) * time.Microsecond)
			}
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
