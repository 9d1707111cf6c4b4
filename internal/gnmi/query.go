package gnmi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	gpb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Bounds of a request. A path of the models has fewer than ten elements.
const (
	maxPaths    = 128
	maxElements = 32
)

// query is a path of a request: the leaves that it selects.
type query map[*Leaf][]selection

// selection is one way in which a path selects a leaf.
type selection struct {
	of    [2]string // the keys, "" for any
	depth int       // how many elements of the leaf the path names
}

// selects returns how many elements of a value's path the query names; ok is false if it does not select the value.
func (q query) selects(v Value) (depth int, ok bool) {
	for _, s := range q[v.Leaf] {
		if (s.of[0] == "" || s.of[0] == v.Of[0]) && (s.of[1] == "" || s.of[1] == v.Of[1]) {
			return s.depth, true
		}
	}
	return 0, false
}

// compile reads a path of a request. field names it in errors, which are statuses.
func compile(field string, prefix, path *gpb.Path) (query, error) {
	bad := func(format string, args ...any) (query, error) {
		return nil, status.Errorf(codes.InvalidArgument, "%s: %s", field, strings.ToValidUTF8(fmt.Sprintf(format, args...), "?"))
	}
	switch {
	case prefix.GetOrigin() != "" && path.GetOrigin() != "":
		return bad("origin %q stands in the prefix as well: want one", path.GetOrigin())
	case !slices.Contains([]string{"", "openconfig"}, prefix.GetOrigin()+path.GetOrigin()):
		return bad("origin %q: want openconfig, or none", prefix.GetOrigin()+path.GetOrigin())
	case path.GetTarget() != "":
		return bad("target %q: want it in the prefix", path.GetTarget())
	case old(prefix) || old(path):
		return bad("elements without keys, of gNMI before 0.4: want elem")
	}
	elems := slices.Concat(prefix.GetElem(), path.GetElem())
	if len(elems) > maxElements {
		return bad("%d elements: want at most %d", len(elems), maxElements)
	}
	text, deep := pathText(elems), 0
	bare := make([]*gpb.PathElem, len(elems)) // the path without its keys
	for i, e := range elems {
		bare[i] = &gpb.PathElem{Name: e.GetName()}
		switch {
		case e.GetName() == "":
			return bad("%s: element %d has no name", text, i)
		case e.GetName() == "...":
			if deep++; len(e.GetKey()) > 0 {
				return bad(`%s: "..." with keys: want none`, text)
			}
		}
	}
	if deep > 1 {
		return bad(`%s: %d times "...": want at most one`, text, deep)
	}
	if q := find(elems); len(q) > 0 {
		return q, nil
	}
	if len(find(bare)) > 0 {
		return bad("%s: no list has such keys", text)
	}
	return nil, status.Errorf(codes.Unimplemented, "%s: %s: the models that are served have no such path", field, strings.ToValidUTF8(text, "?"))
}

// find returns the leaves that a path selects.
func find(elems []*gpb.PathElem) query {
	q := query{}
	for _, l := range Leaves {
		if list := match(elems, l.elems, selection{}, 0, nil); len(list) > 0 {
			q[l] = list
		}
	}
	return q
}

// wants returns the leaves that answer queries. A leaf that repeats the key of a list is answered by all leaves
// of the list.
func wants(queries ...query) Wants {
	w := Wants{}
	for _, q := range queries {
		for l := range q {
			w[l] = true
			for _, in := range Leaves {
				if slices.Contains(in.names, l) {
					w[in] = true
				}
			}
		}
	}
	return w
}

// old reports whether a path has only the field element, which gNMI had before elem. Clients send both.
func old(p *gpb.Path) bool {
	return len(p.GetElem()) == 0 && len(p.GetElement()) > 0 //lint:ignore SA1019 it is refused
}

// match appends to list each way in which the elements of a path select the leaf or an element above it. s is
// what the elements before have selected, with that many keys.
func match(path []*gpb.PathElem, leaf []elem, s selection, keys int, list []selection) []selection {
	if len(path) == 0 {
		if slices.ContainsFunc(list, func(o selection) bool { return o.of == s.of }) {
			return list // the one before is found first
		}
		return append(list, s)
	}
	p := path[0]
	if p.GetName() == "..." {
		list = match(path[1:], leaf, s, keys, list)
	}
	if len(leaf) == 0 {
		return list
	}
	e := leaf[0]
	if e.key != "" {
		keys++
	}
	s.depth++
	if p.GetName() == "..." {
		return match(path, leaf[1:], s, keys, list)
	}
	if n := p.GetName(); n != "*" && n != e.name && n != e.module+":"+e.name {
		return list
	}
	for k, v := range p.GetKey() {
		switch {
		case e.key == "" || k != e.key && k != e.module+":"+e.key:
			return list
		case v != "*":
			s.of[keys-1] = v
		}
	}
	return match(path[1:], leaf[1:], s, keys, list)
}

// pathText returns a path as people write it.
func pathText(elems []*gpb.PathElem) string {
	var b strings.Builder
	for _, e := range elems {
		b.WriteString("/" + e.GetName())
		for _, k := range slices.Sorted(maps.Keys(e.GetKey())) {
			fmt.Fprintf(&b, "[%s=%s]", k, e.GetKey()[k])
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}
