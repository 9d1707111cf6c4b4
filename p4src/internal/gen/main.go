// Command gen compiles Headgate's P4 program with p4c and writes what follows from it: for
// BMv2 the JSON and the P4Info in p4src/build; for Tofino 1 and 2 the P4Info, the BF Runtime
// schema and a summary of the resources in p4src/build/tofino1 and tofino2; for each the
// digests that guard it; the Go constants in p4src/ids; the generated parts of
// docs/reference/tofino-resources.md.
//
//	go run ./p4src/internal/gen [-dir p4src]
//	go run ./p4src/internal/gen [-dir p4src] -target tofino [-cpu-port n] [-device bin]
//
// It needs p4c-bm2-ss on the PATH, or p4c-barefoot and bfas for Tofino. Nothing is written
// when anything fails.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", ".", "folder of the P4 sources")
	flag.StringVar(&o.target, "target", "bmv2", "what to compile for: bmv2 or tofino (both chips)")
	flag.IntVar(&o.cpuPort, "cpu-port", -1, "Tofino: device port of the CPU, instead of the chip's usual one")
	flag.StringVar(&o.device, "device", "", "Tofino: folder that gets the files for the devices, one folder a chip; empty: none")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

type options struct {
	dir, target, device string
	cpuPort             int
}

func run(o options) error {
	var fresh []build
	switch o.target {
	case "bmv2":
		b, err := compile(o.dir)
		if err != nil {
			return err
		}
		fresh = []build{b}
	case "tofino":
		var err error
		if fresh, err = compileTofino(o.dir, o.cpuPort, os.Stdout); err != nil {
			return err
		}
	default:
		return fmt.Errorf("-target %q: want bmv2 or tofino", o.target)
	}
	all, err := withCommitted(o.dir, fresh)
	if err != nil {
		return err
	}
	files, err := generate(o.dir, all)
	if err != nil {
		return err
	}
	for _, b := range fresh {
		for name, data := range b.files {
			files[name] = data
		}
		if files[b.digestFile()], err = b.digestLines(o.dir); err != nil {
			return err
		}
	}
	if err := writeFiles(o.dir, files); err != nil {
		return err
	}
	for _, b := range fresh {
		if o.device != "" {
			if err := writeFiles(filepath.Join(o.device, b.name), b.device); err != nil {
				return err
			}
		}
		report, ok, err := b.fit()
		if err != nil {
			return err
		}
		if ok {
			fmt.Printf("\n%s\n\n%s", b.name, report.Markdown())
		}
	}
	return nil
}

// withCommitted adds the builds in the tree to those that were just made: constants and
// documents follow from all of them.
func withCommitted(dir string, fresh []build) ([]build, error) {
	all := fresh
	for _, t := range targets() {
		if slices.ContainsFunc(fresh, func(b build) bool { return b.name == t.name }) {
			continue
		}
		b, err := readBuild(dir, t)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

func writeFiles(dir string, files map[string][]byte) error {
	for _, name := range sortedKeys(files) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
