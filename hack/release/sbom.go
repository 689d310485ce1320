package main

import (
	"bytes"
	"fmt"
	"os"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
)

// writeSBOM writes what a Go binary consists of, as the linker recorded it in the binary, in the JSON of CycloneDX. It has no
// serial number, time or checksum of a tool, which the command cyclonedx-gomod would add: they differ with each run or machine.
func writeSBOM(out, version, binary string) error {
	generator, err := bin.NewGenerator(binary, bin.WithLogger(zerolog.Nop()), bin.WithIncludeStdlib(true), bin.WithVersionOverride(version))
	if err != nil {
		return fmt.Errorf("read %s: %w", binary, err)
	}
	bom, err := generator.Generate()
	if err != nil {
		return fmt.Errorf("describe %s: %w", binary, err)
	}
	var encoded bytes.Buffer
	if err := cdx.NewBOMEncoder(&encoded, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("encode description of %s: %w", binary, err)
	}
	return os.WriteFile(out, encoded.Bytes(), 0o644)
}
