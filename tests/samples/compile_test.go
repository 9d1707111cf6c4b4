package samples

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	compiler = "p4c-bm2-ss"
	folder   = "testdata/p4_16_samples" // of p4c, with the samples and their STF tests
)

// sample is one of p4c's programs for v1model.
type sample struct {
	name   string // of the file, without .p4
	source string // path of the program
	stf    string // path of its STF test, "" without one
	json   string // path of the compiled program, "" if the compiler refuses it
}

// list finds the programs of a checkout of p4c that include v1model.p4.
func list(checkout string) (all []sample, err error) {
	sources, err := filepath.Glob(filepath.Join(checkout, folder, "*.p4"))
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return nil, fmt.Errorf("P4C=%s: there are no programs in %s; want a checkout of github.com/p4lang/p4c", checkout, folder)
	}
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(text, []byte("v1model.p4>")) {
			continue
		}
		base := strings.TrimSuffix(path, ".p4")
		s := sample{name: filepath.Base(base), source: path}
		if _, err := os.Stat(base + ".stf"); err == nil {
			s.stf = base + ".stf"
		}
		all = append(all, s)
	}
	return all, nil
}

var include = regexp.MustCompile(`(?m)^\s*#\s*include\s+"([^"]+)"`)

// digest covers a source and what it includes from its own folder.
func digest(path string, seen *[]string) (string, error) {
	if slices.Contains(*seen, path) {
		return "", nil
	}
	*seen = append(*seen, path)
	text, err := os.ReadFile(path)
	if err != nil {
		return "", nil // of the compiler's own folder, or the compiler will say that it is missing
	}
	sum := sha256.Sum256(text)
	all := hex.EncodeToString(sum[:])
	for _, m := range include.FindAllSubmatch(text, -1) {
		more, err := digest(filepath.Join(filepath.Dir(path), string(m[1])), seen)
		if err != nil {
			return "", err
		}
		all += more
	}
	return all, nil
}

// cache is the folder of compiled programs, outside the repository.
func cache(t *testing.T) string {
	t.Helper()
	base, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "headgate", "p4c-samples")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func compilerVersion() (string, error) {
	out, err := exec.Command(compiler, "--version").Output()
	return strings.TrimSpace(string(out)), err
}

// compile fills in s.json, from the cache if the same compiler had the same source before.
// A program that it refuses is cached as an empty file: some need another option or an
// extern in C++, and are not for simple_switch.
func (s *sample) compile(ctx context.Context, dir, version string) error {
	sources, err := digest(s.source, new([]string))
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(version + sources))
	path := filepath.Join(dir, fmt.Sprintf("%s-%x.json", s.name, sum[:8]))
	info, err := os.Stat(path)
	if err != nil {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
		defer cancel()
		part := path + ".part"
		cmd := exec.CommandContext(ctx, compiler, "-o", part, s.source)
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("%s %s: %w", compiler, s.source, ctx.Err())
			}
			if err := os.WriteFile(part, nil, 0o644); err != nil {
				return err
			}
		}
		if err := os.Rename(part, path); err != nil {
			return err
		}
		if info, err = os.Stat(path); err != nil {
			return err
		}
	}
	if info.Size() > 0 {
		s.json = path
	}
	return nil
}
