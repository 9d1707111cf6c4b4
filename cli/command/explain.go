package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/headgate/headgate/internal/keydoc"
)

// Explain prints a key and those directly below it; without a path, it prints the keys at the top. file names
// the file, such as "the fabric file".
func Explain(o Output, keys []keydoc.Key, path, file string) error {
	key, below, ok := keydoc.Find(keys, path)
	if !ok && path != "" {
		parent, name := "", path
		if i := strings.LastIndexByte(path, '.'); i >= 0 {
			parent, name = path[:i], path[i+1:]
		}
		if _, near, _ := keydoc.Find(keys, parent); len(near) > 0 {
			return fmt.Errorf("%q is no key: %s has no %q, want one of %s", path, cmp.Or(parent, file), name, names(near))
		}
		_, top, _ := keydoc.Find(keys, "")
		return fmt.Errorf("%q is no key: want one of %s, or one below them", path, names(top))
	}
	if o.Format != Table {
		list := below
		if ok {
			list = append([]keydoc.Key{key}, below...)
		}
		text, err := json.Marshal(list)
		if err != nil {
			return err
		}
		return o.Raw(text)
	}
	if ok {
		_, _ = fmt.Fprintf(o.Out, "%s: %s", key.Path, key.Allowed)
		if !key.Holds {
			_, _ = fmt.Fprintf(o.Out, "\ndefault: %s", key.Default)
		}
		if key.When != "" {
			_, _ = fmt.Fprintf(o.Out, "\nwhere %s", key.When)
		}
		_, _ = fmt.Fprintf(o.Out, "\n\n%s\n", ansi.Wordwrap(strings.Join(strings.Fields(key.Description), " "), 100, ""))
	}
	if len(below) == 0 {
		return nil
	}
	if ok {
		_, _ = fmt.Fprintln(o.Out)
	}
	return o.Tabs(func(w io.Writer) {
		Row(w, "KEY", "DEFAULT", "ALLOWED")
		for _, k := range below {
			value := k.Default
			if k.Holds {
				value = ""
			}
			Row(w, k.Path, value, k.Allowed)
		}
	})
}

// names lists keys by the last parts of their paths.
func names(keys []keydoc.Key) string {
	var list []string
	for _, k := range keys {
		list = append(list, k.Path[strings.LastIndexByte(k.Path, '.')+1:])
	}
	return strings.Join(list, ", ")
}
