package ledger

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// maxLine is longer than any record.
const maxLine = 1 << 20

// Read returns the records of a ledger.
func Read[T any](path string) ([]T, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open ledger: %w", err)
	}
	defer func() { _ = file.Close() }() // only read from
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	var all []T
	for lines.Scan() {
		var record T
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return nil, fmt.Errorf("read ledger %s, line %d: %w", path, len(all)+1, err)
		}
		all = append(all, record)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read ledger %s: %w", path, err)
	}
	return all, nil
}
