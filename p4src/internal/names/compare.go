package names

import (
	"maps"
	"slices"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// absent stands for a side that does not have an object or an aspect of it.
const absent = "–"

// Difference is an object, or an aspect of an object, that is not the same on both targets.
type Difference struct {
	Object string // kind and name
	Aspect string // "key depth", "id", …; empty when one side lacks the object
	V1     string // on v1model; "–" when absent
	Tofino string // on Tofino; "–" when absent
}

// Compare returns the differences, sorted by object and aspect.
func Compare(v1model, tofino *p4configv1.P4Info) []Difference {
	left, right := api(v1model), api(tofino)
	var list []Difference
	for _, name := range union(left, right) {
		a, b := left[name], right[name]
		switch {
		case b == nil:
			list = append(list, Difference{Object: name, V1: "yes", Tofino: absent})
			continue
		case a == nil:
			list = append(list, Difference{Object: name, V1: absent, Tofino: "yes"})
			continue
		}
		for _, aspect := range union(a, b) {
			if a[aspect] != b[aspect] {
				list = append(list, Difference{Object: name, Aspect: aspect, V1: side(a, aspect), Tofino: side(b, aspect)})
			}
		}
	}
	return list
}

func union[M ~map[string]V, V any](a, b M) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func side(o object, aspect string) string {
	if v, ok := o[aspect]; ok {
		return v
	}
	return absent
}
