// Package confine reads the files that a configuration names. The author of a configuration may have no
// account on the machine, so a name must lead to a regular file of bounded size below given folders, after
// symbolic links are resolved.
package confine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Bounds of files, in bytes.
const (
	MaxSecret  = 1 << 20  // certificates, keys, tokens, policies
	MaxProgram = 64 << 20 // p4c's output for a chip
)

// Dirs are the folders that may be read. No folder means everywhere, for names from the command line
// of the process.
type Dirs []string

// New returns folders with absolute names.
func New(dirs ...string) (Dirs, error) {
	var list Dirs
	for _, d := range dirs {
		abs, err := filepath.Abs(d)
		if err != nil {
			return nil, err
		}
		list = append(list, abs)
	}
	return list, nil
}

// Read returns a file's content and its file information. A relative name is searched in each folder
// in turn. The file must be regular and have at most that many bytes.
func (d Dirs) Read(name string, most int64) ([]byte, fs.FileInfo, error) {
	f, err := d.open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case !info.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is no regular file", name)
	case info.Size() > most:
		return nil, nil, fmt.Errorf("%s has %d bytes, at most %d are allowed", name, info.Size(), most)
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s has grown beyond %d bytes, which are allowed", name, most)
	}
	return text, info, err
}

// Secret returns the content of a certificate, key or token file.
func (d Dirs) Secret(name string) ([]byte, error) {
	text, _, err := d.Read(name, MaxSecret)
	return text, err
}

// open does not block on a pipe without a writer.
func (d Dirs) open(name string) (*os.File, error) {
	const flags = os.O_RDONLY | syscall.O_NONBLOCK
	if len(d) == 0 {
		return os.OpenFile(name, flags, 0)
	}
	var missing error
	for _, dir := range d {
		inner := name
		if filepath.IsAbs(name) {
			var err error
			if inner, err = filepath.Rel(dir, name); err != nil {
				continue
			}
		}
		if !filepath.IsLocal(inner) {
			continue
		}
		f, err := openIn(dir, inner, flags)
		if err == nil {
			return f, nil
		}
		if missing == nil || errors.Is(missing, fs.ErrNotExist) {
			missing = err
		}
	}
	if missing == nil {
		missing = fmt.Errorf("%s is not in %s (controller.files)", name, strings.Join(d, ", "))
	}
	return nil, missing
}

func openIn(dir, name string, flags int) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(name, flags, 0)
}
