package stf

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/headgate/headgate/softswitch/engine"
)

// bySuffix returns the one of names that equals name, or else the only one that ends in it.
func bySuffix(kind, name string, names []string) (string, error) {
	found := ""
	for _, n := range names {
		if n == name {
			return n, nil
		}
	}
	for _, n := range names {
		if strings.HasSuffix(n, name) {
			if found != "" && found != n {
				return "", fmt.Errorf("%s %q is ambiguous between %q and %q", kind, name, found, n)
			}
			found = n
		}
	}
	if found == "" {
		return "", fmt.Errorf("there is no %s %q", kind, name)
	}
	return found, nil
}

var stackIndex = regexp.MustCompile(`^(.*)\$([0-9]+)(.*)$`)

// keyField returns the index of the key field that a match names, in the ways that bmv2stf.py
// allows.
func keyField(name string, key []engine.KeyField) (int, error) {
	if m := stackIndex.FindStringSubmatch(name); m != nil {
		name = m[1] + "[" + m[2] + "]" + m[3]
	}
	for _, try := range []string{name, name + "$", name + ".$valid$", strings.TrimSuffix(name, "valid") + "$valid$"} {
		for i, k := range key {
			if k.Name == try {
				return i, nil
			}
		}
	}
	for i := len(key) - 1; i >= 0; i-- {
		n := key[i].Name
		if strings.HasSuffix(n, "."+name) || strings.HasSuffix(n, "."+name+"$") || name == "valid" && strings.HasSuffix(n, "$valid$") {
			return i, nil
		}
	}
	return 0, fmt.Errorf("there is no key field %q", name)
}
