package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
)

// event is one line of `go test -json`; see `go doc test2json` and `go help buildjson`.
type event struct {
	Action     string  `json:"Action"`
	Package    string  `json:"Package"`
	ImportPath string  `json:"ImportPath"` // build events carry it in place of Package
	Test       string  `json:"Test"`
	Output     string  `json:"Output"`
	Elapsed    float64 `json:"Elapsed"` // seconds
}

// readEvents calls handle for every event, and plain for every line that is none: what a wrapper or the go command
// itself printed must not get lost.
func readEvents(in io.Reader, handle func(event), plain func(string)) error {
	reader := bufio.NewReader(in) // not a Scanner: a line of output has no greatest length
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				handle(e)
			} else {
				plain(string(line))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
