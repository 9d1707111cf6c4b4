package main

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const idsSourceFile = "shared/ids.p4"

var idDefine = regexp.MustCompile(`(?m)^#define\s+(ID_\w+)\s+(\w+)$`)

// definedIDs reads the ids of idsSourceFile, by name.
func definedIDs(dir string) (map[string]uint32, error) {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(idsSourceFile)))
	if err != nil {
		return nil, err
	}
	ids := map[string]uint32{}
	for _, m := range idDefine.FindAllStringSubmatch(string(data), -1) {
		v, err := evaluate(m[2], nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", idsSourceFile, m[1], err)
		}
		ids[m[1]] = uint32(v)
	}
	return ids, nil
}

// idFixer returns withFixedIDs for the sources and the v1model build in dir.
func idFixer(dir string) (func([]byte) ([]byte, error), error) {
	ids, err := definedIDs(dir)
	if err != nil {
		return nil, err
	}
	b, err := readBuild(dir, targets()[0])
	if err != nil {
		return nil, err
	}
	v1model, err := b.p4info()
	if err != nil {
		return nil, err
	}
	return func(p4info []byte) ([]byte, error) { return withFixedIDs(p4info, v1model, ids) }, nil
}

// withFixedIDs gives the externs of a P4Info for Tofino the ids of shared/ids.p4. The backend ignores @id on
// externs and derives an id from the name. P4Runtime servers for the chip find externs by name in the BF
// Runtime schema, where they have yet another id. An object that v1model has too gets its id there. Any other
// object gets the id whose name consists of its kind and its own name: ID_REGISTER_DEPTH_0.
func withFixedIDs(p4info []byte, v1model *p4configv1.P4Info, ids map[string]uint32) ([]byte, error) {
	var info p4configv1.P4Info
	if err := prototext.Unmarshal(p4info, &info); err != nil {
		return nil, err
	}
	known := map[string]uint32{}
	for _, p := range externs(v1model) {
		known[p.GetName()] = p.GetId()
	}
	replace := map[string]string{}
	for kind, p := range externs(&info) {
		id, ok := known[p.GetName()]
		if !ok {
			name := "ID_" + kind + "_" + strings.ToUpper(p.GetAlias())
			if id, ok = ids[name]; !ok {
				return nil, fmt.Errorf("%s has no id: shared/ids.p4 has no %s", p.GetName(), name)
			}
		}
		replace[fmt.Sprint(p.GetId())] = fmt.Sprint(id)
	}
	use := regexp.MustCompile(`(?m)^( *(?:id|implementation_id|direct_resource_ids): )(\d+)$`)
	return use.ReplaceAllFunc(p4info, func(line []byte) []byte {
		m := use.FindSubmatch(line)
		if id, ok := replace[string(m[2])]; ok {
			return []byte(string(m[1]) + id)
		}
		return line
	}), nil
}

// externs visits the objects of P4Runtime that are externs on Tofino, with their kinds as in the names of ids.p4.
func externs(info *p4configv1.P4Info) iter.Seq2[string, *p4configv1.Preamble] {
	return func(yield func(string, *p4configv1.Preamble) bool) {
		for _, k := range [][2]string{{"action_profiles", "SELECTOR"}, {"counters", "COUNTER"}, {"direct_counters", "DIRECT_COUNTER"}, {"digests", "DIGEST"}, {"registers", "REGISTER"}} {
			for _, p := range preambles(info, protoreflect.Name(k[0])) {
				if !yield(k[1], p) {
					return
				}
			}
		}
	}
}
