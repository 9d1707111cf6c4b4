package emulation

import (
	"encoding/binary"
	"slices"

	"github.com/headgate/headgate/hosts/agent"
)

// tracer records which wires each traced flow's packets come by, in order. It is how a run
// knows a flow's path: from the packets, not from what the controller meant. The loop's
// goroutine owns it.
type tracer map[traceKey]*[]int

// traceKey is the sending end of a flow.
type traceKey struct {
	src  [4]byte
	port uint16
}

// Offsets in an untagged Ethernet frame with an IPv4 header without options.
const (
	offEtherType = 12
	offProtocol  = 23
	offSrcAddr   = 26
	offSrcPort   = 34
	traceBytes   = 36
)

func keyOf(k agent.FlowKey) traceKey { return traceKey{k.Src.As4(), k.SrcPort} }

// start forgets what is known of a flow and traces it from now on.
func (t tracer) start(k agent.FlowKey) { t[keyOf(k)] = new([]int) }

// path returns the wires that the flow's packets were seen on since start.
func (t tracer) path(k agent.FlowKey) []int {
	if p := t[keyOf(k)]; p != nil {
		return *p
	}
	return nil
}

// saw takes a frame at the end of a wire.
func (t tracer) saw(wire int, frame []byte) {
	if len(t) == 0 || len(frame) < traceBytes || binary.BigEndian.Uint16(frame[offEtherType:]) != 0x0800 || frame[offProtocol] != 17 {
		return
	}
	key := traceKey{[4]byte(frame[offSrcAddr:]), binary.BigEndian.Uint16(frame[offSrcPort:])}
	if p := t[key]; p != nil && !slices.Contains(*p, wire) {
		*p = append(*p, wire)
	}
}
