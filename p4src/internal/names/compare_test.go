package names

import (
	"maps"
	"slices"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// compare returns the differences, sorted by object and aspect.
func compare(v1model, tofino *p4configv1.P4Info) []Difference {
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

// unexplained compares the differences of a chip with the known ones. It returns differences without a reason,
// and known differences that no longer exist.
func unexplained(chip string, found []Difference, known []Reason) (unlisted, gone []Difference) {
	var listed []Difference
	for _, r := range known {
		if len(r.Chips) == 0 || slices.Contains(r.Chips, chip) {
			listed = append(listed, r.Differences...)
		}
	}
	for _, d := range found {
		if !slices.Contains(listed, d) {
			unlisted = append(unlisted, d)
		}
	}
	for _, d := range listed {
		if !slices.Contains(found, d) {
			gone = append(gone, d)
		}
	}
	return unlisted, gone
}
