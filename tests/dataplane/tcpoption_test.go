package dataplane

import (
	"encoding/binary"
	"errors"

	"github.com/headgate/headgate/int/maxqd"
)

// errOption is the error for bytes that are not the option.
var errOption = errors.New("maxQD TCP option: want kind 254, length 8, ExID 0x4847, and 4 bytes of values")

// tcpOption is the maxQD option of TCP with its wire form. The product implements it in P4
// (p4src/v1model/maxqd_tcp.p4) and in eBPF (hosts/tcp/kernel).
type tcpOption maxqd.Option

// Decode reads an option from the first bytes of b. The error is errOption.
func (o *tcpOption) Decode(b []byte) error {
	if !isOption(b, maxqd.OptionLen) {
		return errOption
	}
	o.MaxQD = binary.BigEndian.Uint16(b[4:])
	o.Echo = binary.BigEndian.Uint16(b[6:])
	return nil
}

// Append appends the option's wire form to b.
func (o tcpOption) Append(b []byte) []byte {
	b = append(b, maxqd.OptionKind, maxqd.OptionLen, maxqd.OptionExID>>8, maxqd.OptionExID&0xff)
	b = binary.BigEndian.AppendUint16(b, o.MaxQD)
	return binary.BigEndian.AppendUint16(b, o.Echo)
}

// appendOffer appends the wire form of the option in SYN and SYN-ACK to b.
func appendOffer(b []byte) []byte {
	return append(b, maxqd.OptionKind, maxqd.OfferLen, maxqd.OptionExID>>8, maxqd.OptionExID&0xff)
}

// offered reports whether the options of a SYN or SYN-ACK include the maxQD option.
func offered(options []byte) bool { return findAny(options, maxqd.OfferLen) >= 0 }

// findOption returns the position of the first maxQD option in options, which are all bytes of a TCP header
// behind the first 20. The result is -1 if there is none, or if a malformed option precedes it.
func findOption(options []byte) int { return findAny(options, maxqd.OptionLen) }

func findAny(options []byte, length byte) int {
	for at := 0; at < len(options); {
		b := options[at:]
		switch {
		case b[0] == 0: // end of options
			return -1
		case b[0] == 1: // no operation
			at++
		case len(b) < 2 || b[1] < 2 || int(b[1]) > len(b):
			return -1
		case isOption(b, length):
			return at
		default:
			at += int(b[1])
		}
	}
	return -1
}

func isOption(b []byte, length byte) bool {
	return len(b) >= int(length) && b[0] == maxqd.OptionKind && b[1] == length &&
		binary.BigEndian.Uint16(b[2:]) == maxqd.OptionExID
}

// stampOption does the work of a hop's egress. If own is larger than the option's maxQD, it replaces it, and the
// checksum, which is complete, is updated (RFC 1624 equation 3). The result reports whether the header changed. A
// header without the option, a malformed one, or one whose maxQD is at an odd byte, as in no aligned option, does
// not change.
func stampOption(header []byte, own uint16) bool {
	const fixed = 20
	if len(header) < fixed {
		return false
	}
	length := int(header[12]>>4) * 4
	if length < fixed || length > len(header) {
		return false
	}
	at := findOption(header[fixed:length])
	if at < 0 || at%2 != 0 {
		return false
	}
	field := header[fixed+at+4:]
	old := binary.BigEndian.Uint16(field)
	if own <= old {
		return false
	}
	binary.BigEndian.PutUint16(field, own)
	sum := uint32(^binary.BigEndian.Uint16(header[16:])) + uint32(^old) + uint32(own)
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(header[16:], ^uint16(sum))
	return true
}
