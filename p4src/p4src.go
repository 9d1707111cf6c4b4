// Package p4src carries the compiled P4 program: what a switch runs and what a controller
// pushes. The P4 sources beside it are compiled with `make p4`; tests in internal/gen fail
// when sources and artefacts do not belong together.
package p4src

import _ "embed" // for the artefacts

//go:generate go run ./internal/gen

// JSON is the program as p4c compiled it for BMv2. It must not be changed; see WithUDPPort.
//
//go:embed build/headgate.json
var JSON []byte

// P4Info is the program's control-plane API as a text protobuf (p4.config.v1.P4Info). It
// must not be changed.
//
//go:embed build/headgate.p4info.txtpb
var P4Info []byte
