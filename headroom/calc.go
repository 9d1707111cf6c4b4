package headroom

import (
	"fmt"

	"github.com/headgate/headgate/units"
)

// Sizes that the calculators know.
const (
	// Processing is how much a port may still send between the arrival of a PFC frame and
	// its effect: 60 quanta of 512 bit times (IEEE 802.1Qbb; DSH §II-C part 3).
	Processing units.Bytes = 3840
	// FrameWire is what one PFC frame takes on the wire: 64 B, preamble and gap.
	FrameWire units.Bytes = 64 + 20
	// Classes is the number of PFC classes (IEEE 802.1Q).
	Classes = 8
)

// Eq1 returns the worst-case headroom of DSH's Eq. 1 for one ingress queue,
// Φ = 2(C·Dprop + L_MTU) + 3840 B: what arrives after a PAUSE has been decided on.
func Eq1(rate units.Rate, delay units.Time, mtu units.Bytes) units.Bytes {
	return 2*(rate.In(delay)+mtu) + Processing
}

// Required returns the headroom that makes a queue lossless in a switch whose PAUSE is
// decided by the packet that no longer fits: Eq. 1, that packet itself (which is already in
// the headroom), and up to one PFC frame of each class on the wire, which Eq. 1 takes to be
// sent in no time. The DSH paper's evaluation has room for it, 60 000 B against 56 840 B.
func Required(rate units.Rate, delay units.Time, mtu units.Bytes) units.Bytes {
	return Eq1(rate, delay, mtu) + mtu + Classes*FrameWire
}

// requiredText shows the arithmetic of Required.
func requiredText(rate units.Rate, delay units.Time, mtu units.Bytes) string {
	return fmt.Sprintf("%d B = 2·(%v · %v = %d B + MTU %d B) + %d B processing (Eq. 1: %d B) + the pausing packet %d B + %d PFC frames %d B",
		Required(rate, delay, mtu), rate, delay, rate.In(delay), mtu, Processing, Eq1(rate, delay, mtu), mtu, Classes, Classes*FrameWire)
}
