package transport

// PSNBits is the width of a packet sequence number on the wire.
const PSNBits = 24

const (
	psnMask = 1<<PSNBits - 1
	psnHalf = 1 << (PSNBits - 1)
)

// PSN returns the packet sequence number that packet i of a flow carries.
func PSN(i uint64) uint32 { return uint32(i & psnMask) }

// Unwrap returns the packet number nearest to near whose PSN is psn. It is right as long
// as fewer than 2^23 packets are outstanding, InfiniBand's own limit (§9.7.2), and never
// goes below zero: ok is false for a number before the flow's first packet.
func Unwrap(near uint64, psn uint32) (i uint64, ok bool) {
	forward := (psn - uint32(near)) & psnMask
	if forward < psnHalf {
		return near + uint64(forward), true
	}
	back := uint64(psnMask + 1 - forward)
	if back > near {
		return 0, false
	}
	return near - back, true
}
