package dataplane

import (
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/tests/dataplane/target"
	"github.com/headgate/headgate/tests/lag"
	"github.com/headgate/headgate/units"
)

// testSPFCPeriod lets SPFC's Timeout Clock run: a port is a victim if C·TC/K of its bytes depart within a period,
// and no longer one after a period without. testBufferTrace and TestBufferDecisions compare the effect of the
// states on packets with headroom.MMU.
func testSPFCPeriod(r *rig) {
	const period = time.Second
	b := newBufferRig(r)
	c := bufferConfig(headroom.SPFC)
	c.MMU.SPFC.Period, c.MMU.SPFC.K = units.FromDuration(period), 5
	for i := range c.MMU.Ports {
		c.MMU.Ports[i].Rate = 80 * units.Kbps // IRC is 2000 B
	}
	b.run(c)
	pass := func(n int) {
		b.Helper()
		for range n {
			b.send(3, bufferFrame(r, 3, slowPort, 5))
		}
		b.receive(slowPort, n)
	}
	if invalid := lag.Repeat(b, 10, func() string {
		begun := b.rig.now()
		pass(8)
		victim := b.poll(3).Buffer.Victim
		took := b.rig.now() - begun
		switch {
		case victim:
			return ""
		case took < period:
			b.Fatalf("8 packets departed within %v, and port 3 is not a victim's", took)
		}
		return fmt.Sprintf("8 packets took %v, more than the period of %v", took, period)
	}); invalid != "" {
		b.Fatal(invalid)
	}
	if b.poll(4).Buffer.Victim {
		b.Error("port 4 is a victim's, and nothing departed")
	}
	b.sleep(2*period + period/10)
	if b.poll(3).Buffer.Victim {
		b.Error("a period has passed without a departure, and port 3 is a victim's")
	}
	pass(1)
	if b.poll(3).Buffer.Victim {
		b.Error("one packet departed, and port 3 is a victim's")
	}
}

// testSPFCLends has victims fill the memory, on the switch and in headroom.MMU. Two burst ports are paused, and then send
// as much as their headroom allows. When their peers are silent, the victim takes the rest of the shared pool and what the
// paused queues lend, and no packet more. It sends until its headroom is full, too. By then the buffer is full to the last
// byte and no packet is lost; the next one is.
func testSPFCLends(r *rig) {
	b := newBufferRig(r)
	b.rate = 4
	const class, pool, phi = 5, 30, 13 // packets
	c := bufferConfig(headroom.SPFC)
	c.MMU.Private, c.MMU.LossyPrivate, c.MMU.ResumeGap, c.MMU.Alpha = 0, 0, 0, 0
	c.MMU.Lossless, c.MMU.Headroom, c.MMU.Buffer = 1<<class, phi*bufferBytes, (pool+3*phi)*bufferBytes
	c.MMU.SPFC.Period = 64 * units.Second
	for i := range c.MMU.Ports {
		c.MMU.Ports[i].Rate = 80 * units.Kbps // IRC is 20 packets; a peer is silent 600 ms after a PAUSE
	}
	if invalid := lag.Repeat(b, 20, func() string {
		t := newBufferTrace(b, c)
		err := t.lend(class, pool, phi)
		if err == nil {
			err = t.counters()
		}
		switch {
		case err == nil:
			return ""
		case !t.late:
			b.Fatal(err)
		}
		t.abandon()
		return err.Error()
	}); invalid != "" {
		b.Fatal(invalid)
	}
	b.quiet()
}

func (t *bufferTrace) lend(class uint8, pool, phi int) error {
	const victim, burst, other = 0, 1, 2
	send := func(n int, ports ...int) error {
		for i := range n {
			if err := t.arrive(ports[i%len(ports)], class); err != nil {
				return err
			}
		}
		return nil
	}
	departs := func(n int) error {
		for range n {
			if err := t.depart(); err != nil {
				return err
			}
		}
		return nil
	}
	t.shape(slowPort, target.Shape{PacketsPerSecond: 1000, FrameBytes: bufferBytes, Depth: 1000})
	for range 20 {
		if err := errors.Join(send(1, victim), departs(1)); err != nil {
			return err
		}
	}
	if !t.mmu.Victim(t.now, victim) {
		return errors.New("port 0 is no victim's")
	}
	t.sleep(t.gap())
	t.next = t.rig.now() + t.gap()
	t.slow()
	// Each burst port has a third of the pool, and is paused by the packet after that.
	if err := t.inTime(func() error { return send(2*(pool/3+10), burst, other) }); err != nil {
		return err
	}
	t.now += units.Second
	if err := departs(6); err != nil { // at least a second on the switch
		return err
	}
	full := pool/3 + 2*6 // both use 7 of the 13 packets of their headroom
	if err := t.inTime(func() error {
		if err := send(full, victim); err != nil {
			return err
		}
		if t.mmu.Paused(victim) != 0 {
			return fmt.Errorf("the victim is paused before it holds %d packets", full)
		}
		return send(phi+1, victim)
	}); err != nil {
		return err
	}
	if held, s := t.mmu.Usage().Total(), t.mmu.Stats(); held != t.mmu.Config().Buffer || s.LosslessDrops != 1 || t.mmu.Paused(victim) == 0 {
		return fmt.Errorf("%v are stored and %d packets dropped, want %v and 1", held, s.LosslessDrops, t.mmu.Config().Buffer)
	}
	return departs(len(t.stored))
}
