package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// constant is a `const` or a numeric `#define` of a P4 source.
type constant struct {
	name    string
	value   uint64
	hex     bool
	comment string
}

// String writes the value in the base that the source uses.
func (c constant) String() string {
	if c.hex {
		return fmt.Sprintf("%#x", c.value)
	}
	return strconv.FormatUint(c.value, 10)
}

// constantsSource writes the constants of size.p4 and constants.p4 as Go constants.
func constantsSource(dir string) ([]byte, error) {
	var w bytes.Buffer
	w.WriteString(generated + "package ids\n")
	known := map[string]uint64{}
	var reasons []constant
	for _, file := range []string{"shared/size.p4", "shared/constants.p4"} {
		data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		list, err := parseConstants(string(data), known)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		fmt.Fprintf(&w, "\n// From %s, where each has its reason.\nconst (\n", file)
		for _, c := range list {
			fmt.Fprintf(&w, "\t%s = %s", goName(c.name), c)
			if c.comment != "" {
				fmt.Fprintf(&w, " // %s", c.comment)
			}
			w.WriteString("\n")
			if strings.HasPrefix(c.name, "DROP_") && c.name != "DROP_NONE" && !strings.HasSuffix(c.name, "_CELLS") {
				reasons = append(reasons, c)
			}
		}
		w.WriteString(")\n")
	}
	w.WriteString("\n// DropReason names index i of counter ingress.drops, as metrics and messages do; \"\" when\n" +
		"// it is not in use.\nfunc DropReason(i int) string {\n\tswitch i {\n")
	for _, c := range reasons {
		fmt.Fprintf(&w, "\tcase %s:\n\t\treturn %q\n", goName(c.name), strings.ToLower(strings.TrimPrefix(c.name, "DROP_")))
	}
	w.WriteString("\t}\n\treturn \"\"\n}\n")
	return format.Source(w.Bytes())
}

// parseConstants finds the constants of a P4 source. known holds the values found so far,
// for later ones to refer to, and is added to.
func parseConstants(source string, known map[string]uint64) ([]constant, error) {
	declaration := regexp.MustCompile(`^const\s+\S+\s+(\w+)\s*=\s*([^;]+);\s*(?://\s*(.*))?$`)
	define := regexp.MustCompile(`^#define\s+(\w+)\s+(\w+)\s*$`)
	var list []constant
	for i, line := range strings.Split(source, "\n") {
		m := declaration.FindStringSubmatch(line)
		if m == nil {
			if m = define.FindStringSubmatch(line); m == nil {
				continue
			}
			m = append(m, "")
		}
		v, err := evaluate(m[2], known)
		if err != nil {
			return nil, fmt.Errorf("line %d: constant %s: %w", i+1, m[1], err)
		}
		known[m[1]] = v
		list = append(list, constant{name: m[1], value: v, hex: strings.HasPrefix(m[2], "0x"), comment: m[3]})
	}
	return list, nil
}

// evaluate computes a product of numbers and known constants, which is all that the
// sources need.
func evaluate(expr string, known map[string]uint64) (uint64, error) {
	product := uint64(1)
	for _, factor := range strings.Split(expr, "*") {
		factor = strings.TrimSpace(factor)
		v, ok := known[factor]
		if !ok {
			var err error
			if v, err = strconv.ParseUint(factor, 0, 64); err != nil {
				return 0, fmt.Errorf("%q is neither a number nor a constant defined before it", factor)
			}
		}
		product *= v
	}
	return product, nil
}
