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

// Cable says how far away the sender at the other end of a port is. The zero Cable has no
// length.
type Cable struct {
	Metres int64 // 0 to 100 000
	// Speed of the signal in per mille of the speed of light; 0 means FibreSpeed.
	Speed int64
}

// FibreSpeed is that of a single-mode fibre, in per mille of the speed of light: DSH §II-C
// counts 1.5 µs for 300 m.
const FibreSpeed = 650

const lightMetresPerSecond = 299_792_458

// Delay returns the propagation delay one way, rounded up.
func (c Cable) Delay() units.Time {
	speed := c.Speed
	if speed <= 0 {
		speed = FibreSpeed
	}
	perSecond := lightMetresPerSecond * speed / 1000
	return units.Time((c.Metres*int64(units.Second) + perSecond - 1) / perSecond)
}

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

// AdaptiveHeadroom returns the headroom for a link whose delay one way was measured, as IEEE
// P802.1Qdt does with PTP. The measurement may be too short by up to jitter.
func AdaptiveHeadroom(rate units.Rate, measured, jitter units.Time, mtu units.Bytes) units.Bytes {
	return Required(rate, max(0, measured)+max(0, jitter), mtu)
}

// StaticPool returns SIH's headroom of a whole switch, Eq. 3: B_h = Np·Nq·Φ.
func StaticPool(ports, queues int, phi units.Bytes) units.Bytes {
	return units.Bytes(ports) * units.Bytes(queues) * phi
}

// InsurancePool returns DSH's insurance of a whole switch, Eq. 9: B_i = Np·Φ.
func InsurancePool(ports int, phi units.Bytes) units.Bytes {
	return units.Bytes(ports) * phi
}

// PauseTime returns how long a PAUSE of a number of quanta lasts at a port, each of 512 bit
// times (IEEE 802.1Q clause 36).
func PauseTime(rate units.Rate, quanta uint16) units.Time {
	return rate.TxTime(units.Bytes(quanta) * 64)
}
