package lldp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate/controller/topology"
)

// etherType of LLDP (IEEE 802.1AB clause 7).
const etherType = 0x88cc

// nearestBridge is the address that bridges never forward (IEEE 802.1AB clause 7.1).
var nearestBridge = topology.MAC{0x01, 0x80, 0xc2, 0x00, 0x00, 0x0e}

// Types of TLVs (IEEE 802.1AB clause 8), each a type of 7 bits, a length of 9 and a value.
const (
	tlvEnd        = 0
	tlvChassis    = 1 // subtype 7, locally assigned: the switch's name
	tlvPort       = 2 // subtype 7, locally assigned: the port's number
	tlvTTL        = 3 // seconds, 16 bits
	tlvSystemName = 5 // the fabric's name
)

const local = 7

// minFrame is Ethernet's shortest frame without its check sequence.
const minFrame = 60

// probe is the content of a probe: its sender and the sender's port.
type probe struct {
	fabric string // up to 63 bytes, see config
	node   string // up to 63 bytes
	port   uint32
	ttl    time.Duration
}

func (p probe) encode(src topology.MAC) []byte {
	b := make([]byte, 0, 160)
	b = append(b, nearestBridge[:]...)
	b = append(b, src[:]...)
	b = binary.BigEndian.AppendUint16(b, etherType)
	b = appendTLV(b, tlvChassis, append([]byte{local}, p.node...))
	b = appendTLV(b, tlvPort, strconv.AppendUint([]byte{local}, uint64(p.port), 10))
	ttl := min(max((p.ttl+time.Second-1)/time.Second, 1), 65535)
	b = appendTLV(b, tlvTTL, binary.BigEndian.AppendUint16(nil, uint16(ttl)))
	b = appendTLV(b, tlvSystemName, []byte(p.fabric))
	b = appendTLV(b, tlvEnd, nil)
	for len(b) < minFrame {
		b = append(b, 0)
	}
	return b
}

func appendTLV(b []byte, kind int, value []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(kind<<9|len(value)))
	return append(b, value...)
}

var errNotLLDP = errors.New("not an LLDP frame")

// decode reads a frame. It is strict about what probes consist of and skips other TLVs.
func decode(frame []byte) (probe, error) {
	var p probe
	if len(frame) < 14 || binary.BigEndian.Uint16(frame[12:]) != etherType {
		return p, errNotLLDP
	}
	for b := frame[14:]; ; {
		if len(b) < 2 {
			return p, fmt.Errorf("LLDP: the frame ends without an end TLV")
		}
		head := binary.BigEndian.Uint16(b)
		kind, n := int(head>>9), int(head&0x1ff)
		if b = b[2:]; len(b) < n {
			return p, fmt.Errorf("LLDP: TLV %d has %d bytes, %d are left", kind, n, len(b))
		}
		value := b[:n]
		b = b[n:]
		switch kind {
		case tlvEnd:
			if p.node == "" || p.port == 0 {
				return p, errors.New("LLDP: chassis or port id is missing")
			}
			return p, nil
		case tlvChassis:
			if n > 1 && value[0] == local {
				p.node = string(value[1:])
			}
		case tlvPort:
			if n > 1 && value[0] == local {
				port, err := strconv.ParseUint(string(value[1:]), 10, 32)
				if err != nil {
					return p, fmt.Errorf("LLDP: port id %q is not a number", value[1:])
				}
				p.port = uint32(port)
			}
		case tlvTTL:
			if n >= 2 {
				p.ttl = time.Duration(binary.BigEndian.Uint16(value)) * time.Second
			}
		case tlvSystemName:
			p.fabric = string(value)
		}
	}
}
