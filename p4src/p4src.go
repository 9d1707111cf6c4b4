// Package p4src carries the compiled P4 program: what a switch runs and what a controller
// pushes. The P4 sources beside it are compiled with `make p4`; tests in internal/gen fail
// when sources and artefacts do not belong together.
package p4src

import (
	"bytes"
	"compress/gzip"
	_ "embed" // for the artefacts
	"io"
	"sync"
)

//go:generate go run ./internal/gen

// packed is build/headgate.json, a thirtieth of its size.
//
//go:embed build/headgate.json.gz
var packed []byte

// JSON returns the program as p4c compiled it for BMv2, always the same bytes. They must not be
// changed; see WithUDPPort.
var JSON = sync.OnceValue(func() []byte {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err) // what was linked in is what the generator's test holds
	}
	program, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return program
})

// P4Info is the program's control-plane API as a text protobuf (p4.config.v1.P4Info). It
// must not be changed.
//
//go:embed build/headgate.p4info.txtpb
var P4Info []byte
