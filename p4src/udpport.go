package p4src

import (
	"bytes"
	"fmt"

	"github.com/headgate/headgate/p4src/ids"
)

// WithUDPPort returns JSON for another UDP port of packets with a maxQD shim than
// ids.UDPPortMaxQD, 1 … 65535 but not ids.UDPPortRoCE. The number is a constant of the parser,
// where P4 has value sets for what an operator sets, but BMv2's P4Runtime server has none. So the
// compiled program is changed in the two places where the number stands: the parser branches on it, and Foreign judges
// what came on it.
func WithUDPPort(port uint16) ([]byte, error) {
	switch port {
	case ids.UDPPortMaxQD:
		return JSON(), nil
	case 0, ids.UDPPortRoCE:
		return nil, fmt.Errorf("UDP port %d: want 1 to 65535 but not %d, which is RoCEv2's", port, ids.UDPPortRoCE)
	}
	return bytes.ReplaceAll(JSON(), constant(ids.UDPPortMaxQD), constant(port)), nil
}

// constant returns a constant of 16 bits as p4c writes it.
func constant(v uint16) []byte { return fmt.Appendf(nil, `"0x%04x"`, v) }
