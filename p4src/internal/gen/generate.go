package main

import (
	"fmt"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
)

// Names of the files that follow from all builds, relative to p4src.
const (
	idsFile       = "ids/p4info.go"
	tofinoIDsFile = "ids/tofino.go"
	constantsFile = "ids/constants.go"
)

// generate returns, by name, every file that follows from sources and builds: what needs no
// compiler. builds has one build of each target.
func generate(dir string, builds []build) (map[string][]byte, error) {
	infos := map[string]*p4configv1.P4Info{}
	for _, b := range builds {
		info, err := b.p4info()
		if err != nil {
			return nil, err
		}
		infos[b.name] = info
	}
	files := map[string][]byte{}
	var err error
	if files[constantsFile], err = constantsSource(dir); err != nil {
		return nil, err
	}
	if files[idsFile], err = idsSource(infos["bmv2"]); err != nil {
		return nil, fmt.Errorf("%s: %w", idsFile, err)
	}
	var onChips []*p4configv1.P4Info
	for _, c := range chips() {
		onChips = append(onChips, infos[c.name])
	}
	if files[tofinoIDsFile], err = tofinoIDsSource(onlyIn(onChips, infos["bmv2"])); err != nil {
		return nil, fmt.Errorf("%s: %w", tofinoIDsFile, err)
	}
	if files[docsFile], err = docsSource(dir, builds); err != nil {
		return nil, err
	}
	return files, nil
}
