package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/p4src/internal/fit"
)

const (
	tofinoMain      = "headgate_tna.p4"
	tofinoCompiler  = "p4c-barefoot"
	tofinoAssembler = "bfas"
)

var errNoTofino = errors.New(tofinoCompiler + " and " + tofinoAssembler +
	" are not both on the PATH (build p4lang/p4c with its Tofino backend, -DENABLE_TOFINO=ON; see docs/targets/tofino.md)")

// compileTofino compiles the program for the named chips, for all when none is named.
// cpuPort is the device port of the CPU, or negative for the chip's usual one; progress is
// told of each chip.
func compileTofino(dir string, cpuPort int, progress io.Writer, only ...string) ([]build, error) {
	fix, err := idFixer(dir)
	if err != nil {
		return nil, err
	}
	compiler, err := exec.LookPath(tofinoCompiler)
	if err != nil {
		return nil, errNoTofino
	}
	assembler, err := exec.LookPath(tofinoAssembler)
	if err != nil {
		return nil, errNoTofino
	}
	version, err := compilerVersion(compiler)
	if err != nil {
		return nil, err
	}
	sources, err := sourceDigests(dir, tofinoMain)
	if err != nil {
		return nil, err
	}
	var builds []build
	for _, c := range chips() {
		if len(only) > 0 && !slices.Contains(only, c.name) {
			continue
		}
		fmt.Fprintf(progress, "%s: compiling %s, which takes a minute or two\n", c.name, tofinoMain)
		b, err := c.compile(dir, compiler, assembler, cpuPort)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		b.compiler, b.sources = version, sources
		name := path.Join(b.folder, p4infoFile)
		if b.files[name], err = fix(b.files[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		b.device[p4infoFile] = b.files[name]
		builds = append(builds, b)
	}
	return builds, nil
}

// compile runs the compiler and the assembler in dir, so that the artefacts name sources by
// relative paths. Any warning is an error.
func (c target) compile(dir, compiler, assembler string, cpuPort int) (build, error) {
	tmp, err := os.MkdirTemp("", "headgate-"+c.name+"-")
	if err != nil {
		return build{}, err
	}
	defer os.RemoveAll(tmp)
	p4infoOut, bfrtOut := filepath.Join(tmp, p4infoFile), filepath.Join(tmp, bfrtFile)

	// Disabled warnings: constants that only v1model uses; annotations for P4Info; fields of
	// metadata that a parser leaves at zero.
	args := []string{"--target", c.chip, "--arch", c.arch, "--std", "p4-16", "-g",
		"--Wdisable=unused", "--Wdisable=unknown", "--Wdisable=uninitialized-out-param",
		fmt.Sprintf("-D__TARGET_TOFINO__=%d", c.number),
		"--p4runtime-force-std-externs", "--p4runtime-files", p4infoOut, "--bf-rt-schema", bfrtOut,
		"-o", tmp}
	if cpuPort >= 0 {
		args = append(args, fmt.Sprintf("-DCPU_PORT=%d", cpuPort))
	}
	output, err := runTool(dir, compiler, append(args, tofinoMain)...)
	if err != nil {
		return build{}, err
	}
	if unknown := unknownWarnings(output); unknown != "" {
		return build{}, fmt.Errorf("%s warns:\n%s", tofinoCompiler, unknown)
	}
	pipe := filepath.Join(tmp, "pipe")
	assembly := filepath.Join(pipe, strings.TrimSuffix(tofinoMain, ".p4")+".bfa")
	if _, err := runTool(dir, assembler, "--target", c.chip, "--no-warn", "--table-handle-offset0", "-o", pipe, assembly); err != nil {
		return build{}, err
	}
	return c.collect(tmp, pipe, assembly)
}

// collect reads the tools' output: artefacts for the tree, files for a device.
func (c target) collect(tmp, pipe, assembly string) (build, error) {
	report, err := fit.Read(c.name, pipe, assembly)
	if err != nil {
		return build{}, err
	}
	summary, err := report.JSON()
	if err != nil {
		return build{}, err
	}
	b := build{target: c, files: map[string][]byte{}, device: map[string][]byte{}}
	b.files[path.Join(b.folder, resourcesFile)] = summary
	for _, name := range []string{p4infoFile, bfrtFile} {
		data, err := os.ReadFile(filepath.Join(tmp, name))
		if err != nil {
			return build{}, err
		}
		if name == p4infoFile {
			data = withoutExterns(withoutInitialDefaults(data))
		}
		b.device[name] = data
		if name == bfrtFile {
			if data, err = withoutSnapshots(data); err != nil {
				return build{}, err
			}
		}
		b.files[path.Join(b.folder, name)] = data
	}
	for _, name := range []string{"context.json", c.chip + ".bin"} {
		data, err := os.ReadFile(filepath.Join(pipe, name))
		if errors.Is(err, fs.ErrNotExist) {
			return build{}, fmt.Errorf("%s made no %s", tofinoAssembler, name)
		}
		if err != nil {
			return build{}, err
		}
		b.device["pipe/"+name] = data
	}
	b.device["headgate.conf"], err = c.conf()
	return b, err
}

// conf is the file that lists the parts of the program for a switch's software, by names relative to the file.
// Stratum's bf_pipeline_builder and the driver's own switch daemon read its keys. The daemon also needs a list
// of chips, which depends on the board.
func (c target) conf() ([]byte, error) {
	type list []map[string]any
	data, err := json.MarshalIndent(map[string]any{"p4_devices": list{{
		"device-id": 0,
		"p4_programs": list{{
			"program-name": "headgate",
			"bfrt-config":  bfrtFile,
			"p4_pipelines": list{{
				"p4_pipeline_name": "pipe",
				"context":          "pipe/context.json",
				"config":           "pipe/" + c.chip + ".bin",
				"pipe_scope":       []int{0, 1, 2, 3},
				"path":             ".",
			}},
		}},
	}}}, "", " ")
	return append(data, '\n'), err
}

// runTool runs a tool in dir and returns its output; the error has it too.
func runTool(dir, exe string, args ...string) (string, error) {
	cmd := exec.Command(exe, args...)
	cmd.Dir = dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", filepath.Base(exe), err, output.String())
	}
	return output.String(), nil
}

// harmless matches warnings that no flag turns off: about the low-pass filter and a hash,
// which P4Runtime has no messages for, the parser's shortest packet, and a checksum whose successor counts more fields.
var harmless = regexp.MustCompile(`No known conversion to standard P4Info for '(Lpf|DynHash)' extern type|min_parse_depth_accept_loop will be unrolled|checksum\.get\(\) will deprecate`)

// unknownWarnings returns the warnings of the compiler that are not known to be harmless.
func unknownWarnings(output string) string {
	var unknown []string
	for _, line := range strings.Split(output, "\n") {
		if strings.Contains(line, "warning:") && !harmless.MatchString(line) {
			unknown = append(unknown, line)
		}
	}
	return strings.Join(unknown, "\n")
}
