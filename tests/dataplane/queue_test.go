package dataplane

import (
	"time"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/red"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/tests/dataplane/target"
	"github.com/headgate/headgate/units"
)

const anyPort = target.Any

// slow is the rate of a slow port. A burst is in its queue before the second packet leaves, also on a busy
// machine.
const slow = 40

// slowShape makes a port send frames of 100 bytes slowly, from a queue that holds a whole burst.
func slowShape() target.Shape {
	return target.Shape{PacketsPerSecond: slow, FrameBytes: 100, Depth: 1000}
}

// testECNThreshold checks marking from a depth on: in a burst to a slow port, the queue behind each packet is one
// packet shorter than behind the last one.
func testECNThreshold(r *rig) {
	const burst = 12
	const own, curve = 3, 8 // the port has its own curve
	kmin := map[bool]units.Bytes{false: 500, true: 300}
	for number, c := range map[uint64]units.Bytes{0: kmin[false], curve: kmin[true]} {
		entries, err := red.Entries(red.Config{Kmin: c, Kmax: c, Pmax: 1}, 1, control.Depth)
		must(r.T, err)
		r.write(control.Marking(number, entries)...)
	}
	r.write(control.Curve(own, 0, curve))
	for ecn := range uint8(4) { // all at once, each to a port of its own
		f := r.frame(1, 2+uint32(ecn))
		f.ecn = ecn
		r.shape(2+uint32(ecn), target.Shape{PacketsPerSecond: 10, FrameBytes: 100, Depth: 1000})
		r.send(1, repeat(r.T, f, burst, 1)...)
	}
	for ecn := range uint8(4) {
		marked := 0
		for i, got := range r.receive(2+uint32(ecn), burst) {
			behind := units.Bytes(burst-1-i) * 100
			want := ecn
			if (ecn == 1 || ecn == 2) && behind >= kmin[2+ecn == own] {
				want = ids.CE
			}
			// The first packet may leave before the second arrives.
			if i > 0 && got.ecn() != want {
				r.Errorf("ECN %d, packet %d with %d B behind it: left with ECN %d, want %d", ecn, i, behind, got.ecn(), want)
			}
			if ecn != ids.CE && got.ecn() == ids.CE {
				marked++
			}
		}
		if (ecn == 0 || ecn == 3) && marked != 0 {
			r.Errorf("ECN %d: %d packets marked, want none", ecn, marked)
		}
	}
	r.noDropsBut()
}

// testECNProbability marks half of the packets at every depth.
func testECNProbability(r *rig) {
	const packets = 1000
	r.write(control.Marking(0, []red.Entry{{Low: 0, High: control.Depth.Max, P: red.Certain / 2}})...)
	f := r.frame(1, 2)
	f.ecn = 2
	marked := int64(0)
	for range packets / 20 { // less than BMv2's queue at a time
		r.send(1, repeat(r.T, f, 20, 1)...)
		for _, got := range r.receive(2, 20) {
			if got.ecn() == ids.CE {
				marked++
			}
		}
	}
	if marked < 420 || marked > 580 { // 5 standard deviations
		r.Errorf("%d of %d packets marked, want about half", marked, packets)
	}
	if n, _, err := r.ctl.Counter(ids.CounterECNMarks, 2); err != nil || n != marked {
		r.Errorf("the mark counter says %d (%v), want %d", n, err, marked)
	}
}

// shimRate is so high that a burst's delays fit 16 bits in µs. shimGap is the time between two departures in µs,
// which is maxQD's unit.
const (
	shimRate = 200
	shimGap  = 1_000_000 / shimRate
)

// passed is a burst with shims that has left a slow port.
type passed struct {
	frames  []decoded
	elapsed time.Duration // from before the burst was sent until after it was received, on the target's clock
}

// plausible reports whether a packet with n packets in front can have waited for a delay in units of 1 µs <<
// shift. BMv2 may send late, most of all on a busy machine. It may send early by at most one gap: the one that had
// begun when the rate was set.
func (p passed) plausible(delay uint16, n int, shift uint) bool {
	least := max(0, (n-1)*shimGap) >> shift
	most := min(int(p.elapsed.Microseconds())>>shift, ids.Saturated16)
	return int(delay) >= least && int(delay) <= most
}

// burstWithShims sends frames with shims through a slow port.
func burstWithShims(r *rig, to uint32, frames [][]byte) passed {
	r.Helper()
	r.shape(to, target.Shape{PacketsPerSecond: shimRate, FrameBytes: 100, Depth: 1000})
	start := r.now()
	r.send(1, frames...)
	return passed{r.receive(to, len(frames)), r.now() - start}
}

// testMaxQDTwoHops passes packets through two queues: the first stamps its delay, the second only raises it.
func testMaxQDTwoHops(r *rig) {
	const burst = 8
	f := newFrame(1, 2).shim(ids.MaxQDVersion, false, 0)
	f.udpChecksum = true
	first := burstWithShims(r, 2, repeat(r.T, f, burst, 1))
	for i, got := range first.frames {
		if !first.plausible(got.maxQD(), i, 0) {
			r.Errorf("packet %d is stamped with %d µs, want about %d", i, got.maxQD(), i*shimGap)
		}
		if got.maxQD() > 0 && got.udp.Checksum != 0 {
			r.Errorf("packet %d was stamped and has the UDP checksum %#x, want 0", i, got.udp.Checksum)
		}
	}
	if report, last := r.poll(2), first.frames[burst-1].maxQD(); report.LastDelay != last {
		r.Errorf("the poll's last delay is %d µs, the last stamp %d", report.LastDelay, last)
	}

	// The packets go back in, in reverse order, to port 3. The packet with the largest stamp is now first, waits
	// only a little and keeps its stamp; the one with the smallest stamp is last.
	var back [][]byte
	for i := range burst {
		b := first.frames[burst-1-i].data
		copy(b[30:34], address(3, 1).AsSlice())
		fixChecksum(b)
		back = append(back, b)
	}
	second := burstWithShims(r, 3, back)
	for i, got := range second.frames {
		before, after := first.frames[burst-1-i].maxQD(), got.maxQD()
		if after != before && (after < before || !second.plausible(after, i, 0)) {
			r.Errorf("packet %d came with %d µs and leaves with %d after about %d here", i, before, after, i*shimGap)
		}
	}
	if report, last := r.poll(3), second.frames[burst-1].maxQD(); report.LastDelay != last {
		r.Errorf("the last packet came with little and left with %d µs, the poll's last delay is %d", last, report.LastDelay)
	}
}

// testMaxQDEcho sends echoes through a queue: they stay unchanged, including the checksum.
func testMaxQDEcho(r *rig) {
	f := r.frame(1, 2).shim(ids.MaxQDVersion, true, 7)
	f.udpChecksum = true
	frames := repeat(r.T, f, 5, 1)
	for i, got := range burstWithShims(r, 2, frames).frames {
		if at := l4(got.data); string(got.data[at:]) != string(frames[i][at:]) {
			r.Errorf("echo %d changed from %x to %x", i, frames[i][at:], got.data[at:])
		}
	}
}

func testMaxQDScale(r *rig) {
	const burst, shift = 6, 6
	f := r.frame(1, 2).shim(ids.MaxQDVersion, false, 0)
	r.write(control.Scale(shift))
	scaled := burstWithShims(r, 2, repeat(r.T, f, burst, 1))
	for i, got := range scaled.frames {
		if !scaled.plausible(got.maxQD(), i, shift) {
			r.Errorf("shifted by %d, stamp %d is %d, want about %d", shift, i, got.maxQD(), i*shimGap>>shift)
		}
	}
	r.write(control.DisableStamping())
	for i, got := range burstWithShims(r, 2, repeat(r.T, f, burst, 1)).frames {
		if got.maxQD() != 0 {
			r.Errorf("disabled stamping stamps packet %d with %d", i, got.maxQD())
		}
	}
	if report := r.poll(2); int(report.LastDelay) < (burst-2)*shimGap {
		r.Errorf("without stamping the poll's last delay is %d, want it in µs", report.LastDelay)
	}
	// Beyond 16 bits the value saturates: three packets at 100 ms each.
	r.write(control.Scale(0))
	r.shape(3, target.Shape{PacketsPerSecond: 10, FrameBytes: 100, Depth: 1000})
	f = r.frame(1, 3).shim(ids.MaxQDVersion, false, 0)
	r.send(1, repeat(r.T, f, 4, 1)...)
	if got := r.receive(3, 4)[3].maxQD(); got != ids.Saturated16 {
		r.Errorf("300 ms are stamped as %d, want %d", got, ids.Saturated16)
	}
}

// testAdmission fills a queue to its limit. Further packets are dropped and counted, and the account returns to
// zero when the queue has drained.
func testAdmission(r *rig) {
	const burst, limit = 50, 10
	r.write(control.QueueLimit(2, 0, limit*100+50))
	r.shape(2, slowShape())
	r.send(1, repeat(r.T, r.frame(1, 2), burst, 1)...)
	r.fence()
	full := r.poll(2)
	dropped := r.drops(ids.DropAdmission)
	// The packets that fit, and one to three that left before the queue was full.
	if admitted := burst - dropped; admitted < limit || admitted > limit+3 {
		r.Errorf("%d of %d packets were admitted, want about %d", admitted, burst, limit)
	}
	if full.AdmissionDrops != uint32(dropped) {
		r.Errorf("the poll says %d admission drops, the counter %d", full.AdmissionDrops, dropped)
	}
	if q := full.QueueBytes[0]; q == 0 || q > limit*100 || q%100 != 0 {
		r.Errorf("the full queue has %d bytes, want at most %d", q, limit*100)
	}
	got := r.receive(2, int(burst-dropped))
	for i, d := range got[:limit] {
		if int(d.udp.SrcPort) != 1+i {
			r.Errorf("packet %d of the burst left as number %d: the first ones are to be admitted", d.udp.SrcPort, i+1)
		}
	}
	r.empty(2)
	r.noDropsBut(ids.DropAdmission)

	// Other queues, and the same one later, are not affected.
	r.send(1, r.frame(1, 2).bytes(r.T))
	r.receive(2, 1)
	r.write(defaultQueueLimit(0))
	r.poll(3) // which has no limit
	r.send(1, r.frame(1, 3).bytes(r.T), r.frame(1, 2).bytes(r.T))
	r.receive(2, 1)
	if n, report := r.drops(ids.DropAdmission), r.poll(3); n != dropped+1 || report.AdmissionDrops != 1 {
		r.Errorf("the default limit dropped %d packets, port 3 %d, want 1", n-dropped, report.AdmissionDrops)
	}
}

// testTailDrop makes the traffic manager drop admitted packets without the pipeline's knowledge. Their bytes
// leave the account with the last packet in the queue.
func testTailDrop(r *rig) {
	const burst, depth = 30, 5
	shape := slowShape()
	shape.Depth = depth
	r.shape(2, shape)
	r.send(1, repeat(r.T, newFrame(1, 2), burst, 1)...)
	r.fence()
	// The account has all bytes that were admitted and have not left, although most packets are lost.
	if full := r.poll(2); full.QueueBytes[0] < (burst-5)*100 {
		r.Errorf("the queue's account is %d bytes after a burst of %d", full.QueueBytes[0], burst*100)
	}
	r.empty(2)
	r.noDropsBut()
}

// empty waits until the account of a port's queues is zero: the last frame arrives here before its switch has
// finished with it.
func (r *rig) empty(port uint32) {
	r.Helper()
	for end := r.now() + patience; ; r.sleep(time.Millisecond) {
		report := r.poll(port)
		if report.QueueBytes == [ids.QueuesPerPort]uint32{} {
			return
		}
		if r.now() > end {
			r.Fatalf("port %d has drained, and its queues have %v bytes", port, report.QueueBytes)
		}
	}
}
