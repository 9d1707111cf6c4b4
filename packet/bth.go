package packet

import (
	"encoding/binary"
	"errors"
)

// Opcode is the opcode of a BTH (§9.2.1, table 38). Its upper three bits are the transport type.
type Opcode uint8

// The opcodes that Headgate's hosts speak, of the reliable connection, and CNP (annex
// A17.9.3).
const (
	SendFirst   Opcode = 0x00
	SendMiddle  Opcode = 0x01
	SendLast    Opcode = 0x02
	SendOnly    Opcode = 0x04
	Acknowledge Opcode = 0x11
	CNP         Opcode = 0x81
)

// EndsMessage reports whether the packet is the last of a message.
func (o Opcode) EndsMessage() bool { return o == SendLast || o == SendOnly }

// IsSend reports whether the packet carries data of a message.
func (o Opcode) IsSend() bool {
	return o == SendFirst || o == SendMiddle || o == SendLast || o == SendOnly
}

// Lengths of the transport's headers and trailer in bytes.
const (
	BTHLen  = 12
	AETHLen = 4
	ICRCLen = 4
)

// MaxQP and MaxPSN bound the 24-bit fields.
const (
	MaxQP  = 1<<24 - 1
	MaxPSN = 1<<24 - 1
)

// Errors of transport headers, to be tested with errors.Is.
var (
	ErrShortBTH   = errors.New("BTH: shorter than 12 bytes")
	ErrBTHVersion = errors.New("BTH: header version is not 0")
	ErrShortAETH  = errors.New("AETH: shorter than 4 bytes")
)

// BTH is the base transport header (§9.2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+-+-+---+-------+-------------------------------+
//	|    Opcode     |S|M|Pad| TVer  |             P_Key             |
//	+-+-+-----------+-+-+---+-------+-------------------------------+
//	|F|B|     0     |                    DestQP                     |
//	+-+-+-----------+-----------------------------------------------+
//	|A|      0      |                      PSN                      |
//	+-+-------------+-----------------------------------------------+
type BTH struct {
	Opcode     Opcode
	Solicited  bool
	MigReq     bool
	Pad        uint8 // bytes of padding after the payload, 0 to 3
	PKey       uint16
	FECN, BECN bool // a switch marked the packet; the other direction was marked
	DestQP     uint32
	AckReq     bool
	PSN        uint32
}

// DefaultPKey is the default partition, full membership (§10.9.1.2).
const DefaultPKey = 0xffff

// Append appends the header's wire form; DestQP and PSN are cut to 24 bits.
func (h *BTH) Append(b []byte) []byte {
	flags := bit(h.Solicited, 7) | bit(h.MigReq, 6) | h.Pad&3<<4
	ecn := bit(h.FECN, 7) | bit(h.BECN, 6)
	b = append(b, byte(h.Opcode), flags, byte(h.PKey>>8), byte(h.PKey))
	b = binary.BigEndian.AppendUint32(b, uint32(ecn)<<24|h.DestQP&MaxQP)
	return binary.BigEndian.AppendUint32(b, uint32(bit(h.AckReq, 7))<<24|h.PSN&MaxPSN)
}

// Decode reads the header from the first bytes of b. Reserved bits are ignored, as §9.2
// asks of receivers.
func (h *BTH) Decode(b []byte) error {
	if len(b) < BTHLen {
		return ErrShortBTH
	}
	if b[1]&0xf != 0 {
		return ErrBTHVersion
	}
	h.Opcode = Opcode(b[0])
	h.Solicited, h.MigReq, h.Pad = b[1]&0x80 != 0, b[1]&0x40 != 0, b[1]>>4&3
	h.PKey = binary.BigEndian.Uint16(b[2:])
	h.FECN, h.BECN = b[4]&0x80 != 0, b[4]&0x40 != 0
	h.DestQP = binary.BigEndian.Uint32(b[4:]) & MaxQP
	h.AckReq = b[8]&0x80 != 0
	h.PSN = binary.BigEndian.Uint32(b[8:]) & MaxPSN
	return nil
}

// Syndrome is the kind of an acknowledgement (§9.7.5.1, table 43).
type Syndrome uint8

// The syndromes that Headgate's hosts send: an ACK without credits, and a NAK.
const (
	ACK         Syndrome = 0x1f
	NAKSequence Syndrome = 0x60
)

// IsACK reports whether the syndrome is an ACK, with or without credits.
func (s Syndrome) IsACK() bool { return s>>5 == 0 }

// AETH is the ACK extended transport header (§9.5.2): syndrome, and the messages
// completed so far, modulo 2^24.
type AETH struct {
	Syndrome Syndrome
	MSN      uint32
}

// Append appends the header's wire form; MSN is cut to 24 bits.
func (h *AETH) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(h.Syndrome)<<24|h.MSN&0xffffff)
}

// Decode reads the header from the first bytes of b.
func (h *AETH) Decode(b []byte) error {
	if len(b) < AETHLen {
		return ErrShortAETH
	}
	v := binary.BigEndian.Uint32(b)
	h.Syndrome, h.MSN = Syndrome(v>>24), v&0xffffff
	return nil
}

func bit(v bool, at uint) byte {
	if v {
		return 1 << at
	}
	return 0
}
