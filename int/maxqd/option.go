package maxqd

// The TCP option that carries maxQD. Its kind is experimental (RFC 4727 §3.1), and the experiment
// has an identifier behind the kind and the length (RFC 6994 §3).
const (
	OptionKind = 254
	OptionExID = 0x4847
	// OptionLen is the length of an Option in bytes.
	OptionLen = 8
	// OfferLen is the length in bytes of the option in SYN and SYN-ACK, which carries no values.
	OfferLen = 4
)

// Option is the TCP option of each segment behind the handshake:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+---------------+-------------------------------+
//	|  Kind = 254   |  Length = 8   |         ExID = 0x4847         |
//	+---------------+---------------+-------------------------------+
//	|             maxQD             |             echo              |
//	+-------------------------------+-------------------------------+
type Option struct {
	// MaxQD is the largest queueing delay of the segment so far, in the fabric's Unit, 65535 for
	// that and anything longer. The sender writes 0.
	MaxQD uint16
	// Echo is the maxQD that the sender received last. Switches leave it.
	Echo uint16
}
