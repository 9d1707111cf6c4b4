package yamlnode

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Values returns the value of each key that a function asks for, by path. Paths have names in place of indices,
// such as links[leaf1:3-spine1:1].rate. A key that the document lacks has its default. Keys whose default
// follows from other keys, and keys of sections that the document lacks, are left out.
func (d *Doc) Values(read func(*Doc)) map[string]string {
	d.values = map[string]string{}
	read(d)
	return d.values
}

// show is join for people: it has names in place of indices.
func (m *Map) show(key string) string {
	if m.shown == "" {
		return key
	}
	return m.shown + "." + key
}

// nameIn returns the name of a list's element: its name, number or DSCP, the two ends of a link, otherwise its
// index.
func nameIn(n *yaml.Node, i int) string {
	text := func(key string) string {
		if at := find(n, key); at >= 0 {
			return n.Content[at].Value
		}
		return ""
	}
	for _, name := range []string{text("name"), text("number"), text("dscp"), strings.Trim(text("a")+"-"+text("b"), "-")} {
		if name != "" {
			return name
		}
	}
	return strconv.Itoa(i)
}

// note records the value that a getter returns.
func note[T any](m *Map, key string, v, def T, k kind[T]) {
	if m.d.values == nil {
		return
	}
	var none T
	text, n := fmt.Sprint(v), m.values[key]
	read, err := k.parse(text)
	switch {
	case any(v) == any(none) && (n == nil || any(def) == any(none)): // no value, or the mark for none
		return
	case err != nil && n != nil:
		text = n.Value // a word such as "off" in place of a number
	case err != nil: // a mark for a default that is computed
		return
	case any(read) != any(v):
		text = fmt.Sprintf("%s (%d)", text, any(v)) // the number in brackets is exact
	}
	m.d.values[m.show(key)] = text
}
