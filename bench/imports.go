package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"cairn"
	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/observation"
)

// imports measures importing transcripts. Reading the same files without storing anything is
// the comparison.
func (b *bench) imports(ctx context.Context) error {
	generated, err := b.generatedTranscripts()
	if err != nil {
		return err
	}
	if err := b.importFrom(ctx, "generated transcripts", generated); err != nil {
		return err
	}
	corpus, err := b.realTranscripts()
	if err != nil || corpus == "" {
		return err
	}
	return b.importFrom(ctx, "real transcripts", corpus)
}

// pass is one way of reading a folder of transcripts.
type pass struct {
	name string
	run  func() error
	wall sample
	cpu  sample
}

func (p *pass) measure() error {
	cpu, began := ownCPU(), time.Now()
	err := p.run()
	p.wall, p.cpu = append(p.wall, time.Since(began)), append(p.cpu, ownCPU()-cpu)
	return err
}

func (b *bench) importFrom(ctx context.Context, what, dir string) error {
	files, err := harnesses.TranscriptFiles(ctx, dir)
	if err != nil {
		return err
	}
	data := filepath.Join(b.dir, "import")
	var first, again cairn.ImportReport
	passes := []*pass{
		{name: "encoding/json into any, kept nowhere", run: func() error { return eachFile(files, decodeAny) }},
		{name: "harness.ReadTranscript, kept nowhere", run: func() error {
			return eachFile(files, func(f *os.File) error {
				_, err := harnesses.ReadTranscript(ctx, f, harness.TranscriptOptions{Path: f.Name()}, func(observation.Event) error { return nil })
				return err
			})
		}},
		{name: "cairn import", run: func() (err error) {
			if err := os.RemoveAll(data); err != nil {
				return err
			}
			first, err = importFolder(ctx, data, dir)
			return err
		}},
		{name: "the same import again", run: func() (err error) {
			again, err = importFolder(ctx, data, dir)
			return err
		}},
	}
	var measurements []func() error
	for _, p := range passes {
		measurements = append(measurements, p.measure)
	}
	b.say("  importing %s", what)
	if err := inTurn(max(b.rounds-2, 1), measurements...); err != nil {
		return err
	}
	megabytes := float64(first.Bytes) / 1e6
	t := newTable("import", fmt.Sprintf("%s: %.0f MB in %d files, %d rounds in turn", what, megabytes, len(files), len(passes[0].wall)),
		"MB/s", "s", "cpu s", "MB per cpu s")
	for i, p := range passes {
		wall, cpu := p.wall.median().Seconds(), p.cpu.median().Seconds()
		r := t.add(p.name, megabytes/wall, wall, cpu, megabytes/cpu)
		if i == 2 {
			r.target("≥ 40 MB/s", megabytes/wall >= 40)
		}
	}
	t.note("%s lines, %s rows added (%.0f rows/s), %s the second time; a row in every %.1f kB of transcript",
		grouped(first.Lines), grouped(first.Added), float64(first.Added)/passes[2].wall.median().Seconds(),
		grouped(again.Added), float64(first.Bytes)/1000/float64(max(first.Added, 1)))
	return b.publish(t)
}

// importFolder imports transcripts as `cairn import` does.
func importFolder(ctx context.Context, data, dir string) (cairn.ImportReport, error) {
	c, err := cairn.Open(cairn.Config{Home: filepath.Dir(data), Dir: data})
	if err != nil {
		return cairn.ImportReport{}, err
	}
	r, err := c.Import(ctx, cairn.ImportArgs{Paths: []string{dir}})
	return r, errors.Join(err, c.Close())
}

func eachFile(paths []string, read func(*os.File) error) error {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		if err := errors.Join(read(f), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// decodeAny decodes every line completely. It skips lines that are not JSON.
func decodeAny(f *os.File) error {
	lines := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var v any
			if json.Unmarshal(line, &v) != nil {
				v = nil
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
