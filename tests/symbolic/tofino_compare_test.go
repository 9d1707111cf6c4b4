package symbolic

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"testing"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/softswitch/p4rt/entity"
	"github.com/headgate/headgate/tables/red"
	"github.com/headgate/headgate/tests/dataplane/control"
	"github.com/headgate/headgate/tests/race"
	"github.com/headgate/headgate/units"
)

const (
	ports = 4 // 1 to 4
	hosts = 6 // behind each port; PACC's tables lack the upper ones' flows
	known = 4
	p4    = "../../p4src"

	// The controller's own packets arrive here. v1model counts their two bytes of header for ECN marks and PACC's
	// flows; the chip does not. So they are not ECN-capable and belong to no flow.
	controllers = 9
)

// chipDepth is a depth as the chip's marking table matches it.
var chipDepth = red.DepthOf(20)

func host(port, n uint32) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(port), byte(n)}) }

// route leads to the hosts behind a port.
func route(port uint32) *p4v1.Update {
	hop := &p4v1.TableAction{Type: &p4v1.TableAction_ActionProfileActionSet{ActionProfileActionSet: &p4v1.ActionProfileActionSet{
		ActionProfileActions: []*p4v1.ActionProfileAction{{Weight: 1, Action: p4rtmsg.Action(ids.ActionSetNextHop, uint64(port), 0x020000000100, 0x020000000200+uint64(port))}}}}}
	return p4rtmsg.Insert(p4rtmsg.Entry(ids.TableIPv4LPM, 0, hop, p4rtmsg.LPM(ids.FieldIPv4LPMDstAddr, host(port, 0).AsSlice(), 24)))
}

// setUp writes routes, classes, RED curves and PACC's tables, and starts the departure sums close to a carry.
func (b *both) setUp(t testing.TB) {
	t.Helper()
	b.write(t, control.PollSession(), control.PuntEtherType(0x0806, 3))
	for c := range uint64(ids.QueuesPerPort) {
		b.write(t, control.Class(8+c, c, c))
	}
	for i, c := range []red.Config{{Kmin: 1000, Kmax: 20_000, Pmax: 0.3}, {Kmin: 5000, Kmax: 5000}, {}, {Kmin: 0, Kmax: 100_000, Pmax: 1}, {Kmin: 64, Kmax: 64}} {
		number := []uint64{0, 1, 2, 3, 8}[i] // the last one is a port's
		// The chip counts cells, so v1model's program gets the thresholds of whole cells.
		cells, err := red.Entries(c, red.DefaultSteps, chipDepth)
		if err != nil {
			t.Fatal(err)
		}
		inBytes := make([]red.Entry, len(cells))
		for i, e := range cells {
			inBytes[i] = red.Entry{Low: e.Low * uint32(chipDepth.Unit), High: (e.High+1)*uint32(chipDepth.Unit) - 1, P: e.P}
			if e.High == chipDepth.Max {
				inBytes[i].High = control.Depth.Max
			}
		}
		for i, u := range control.Marking(number, inBytes) {
			if err := b.state.Apply(u); err != nil {
				t.Fatal(err)
			}
			if err := b.chip.Insert(control.Marking(number, cells)[i].GetEntity().GetTableEntry()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if b.chip.Has(ids.TableGatewayIPv4) {
		b.write(t, gateways()...)
	}
	b.write(t, control.Curve(2, 2, 8), control.PortClass(3, 9, 5, 6))
	b.write(t, sourceChecks(4)...)
	b.deepen(t, place{2, 3})
	b.deepen(t, place{3, 3})
	for p := uint32(1); p <= ports; p++ {
		b.write(t, route(p), routeIPv6(p), control.WatchQueue(p, uint8(p), units.Bytes(4000*int(p-1))))
		for i := range uint32(hosts * ports) {
			if src, dst := host(1+i%ports, i/ports), host(p, i%hosts); i/ports < known {
				b.write(t, control.LearnFlow(cnpgen.Flow{FlowKey: cnpgen.FlowKey{Src: src, Dst: dst}, Port: p}, 0)...)
				src, dst = hostIPv6(1+i%ports, i/ports), hostIPv6(p, i%hosts)
				b.write(t, control.LearnFlow(cnpgen.Flow{FlowKey: cnpgen.FlowKey{Src: src, Dst: dst}, Port: p}, 0)...)
			}
		}
		for name, start := range map[string]uint64{"bytes": 1<<(32+8*(uint64(p)%3)) - 2000, "packets": 1<<(32+8*(uint64(p)%3)) - 3} {
			if err := b.in.WriteRegister("departed_"+name, int(p), p4rtmsg.Uint(start)); err != nil {
				t.Fatal(err)
			}
			b.chip.SetRegister("egress.statistics.departed_"+name+"_low", uint64(p), start&0xffffffff)
			b.chip.SetRegister("egress.statistics.departed_"+name+"_high", uint64(p), start>>32)
		}
	}
}

// deepen makes a queue about as deep as RED's key can represent.
func (b *both) deepen(t testing.TB, at place) {
	t.Helper()
	b.beyond[at] = min(int(chipDepth.Most())/b.cell-5, 1<<19-5000) // a chip counts 19 bits of cells
	if err := b.in.WriteRegister("queue_bytes", int(at.port<<3|at.queue), p4rtmsg.Uint(uint64(b.beyond[at]*b.cell))); err != nil {
		t.Fatal(err)
	}
}

// frame is a frame of any kind whose length is whole cells.
func (b *both) frame(in uint32) []byte {
	f := make([]byte, b.cell*(1+b.rng.IntN(1600/b.cell)))
	copy(f, []byte{2, 0, 0, 0, 1, byte(in), 2, 0, 0, 0, 2, byte(in)})
	if b.rng.IntN(8) == 0 {
		return b.request(in)
	}
	kind := b.rng.IntN(16)
	binary.BigEndian.PutUint16(f[12:], []uint16{0x0806, 0x88cc, 0x0800}[min(kind, 2)])
	if kind < 2 {
		return f
	}
	if b.rng.IntN(3) == 0 {
		return b.frameIPv6(f, kind, in)
	}
	ip := f[14:]
	copy(ip, []byte{0x45, byte(8+b.rng.IntN(ids.QueuesPerPort))<<2 | byte(b.rng.IntN(4))})
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	ip[8] = byte(min(b.rng.IntN(40), 9)) // TTL; most are 9
	ip[9] = ids.IPProtocolUDP
	if in == controllers {
		ip[1] &^= 3
	}
	src, dst := host(in, b.rng.Uint32N(hosts)).As4(), host(1+b.rng.Uint32N(ports), b.rng.Uint32N(hosts)).As4()
	if kind == 2 {
		dst[2] = 99 // no route
	}
	if in != controllers && b.rng.IntN(20) == 0 {
		src = host(1+b.rng.Uint32N(ports), 1).As4() // perhaps another port's
	}
	copy(ip[12:], src[:])
	copy(ip[16:], dst[:])
	udp := ip[20:]
	binary.BigEndian.PutUint16(udp, 1000+uint16(kind))
	binary.BigEndian.PutUint16(udp[2:], 2000)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	binary.BigEndian.PutUint16(udp[6:], 0xbeef)
	switch kind {
	case 3:
		ip[9] = ids.IPProtocolTCP
		if len(udp) >= 60 {
			b.tcp(udp)
		}
		if b.rng.IntN(3) == 0 {
			binary.BigEndian.PutUint16(ip[2:], uint16(40+b.rng.IntN(min(len(ip)-40, 50)))) // the rest is padding
		}
	case 4:
		binary.BigEndian.PutUint16(udp[2:], ids.UDPPortRoCE)
	case 5:
		ip[6] = 0x20 // the first fragment of several
	case 6:
		ip[9] = 1
	case 13:
		binary.BigEndian.PutUint16(f[12:], ids.EtherTypeMACControl)
		copy(ip, []byte{byte(b.rng.IntN(3)), 1})
	case 14:
		if b.rng.IntN(3) == 0 {
			ip[0]++ // options
			break
		}
		ip[b.rng.IntN(2)*3] = byte(b.rng.IntN(256)) // version and header length, or length
		if ip[3] != byte(len(ip)) {
			ip[2] = 0 // never beyond the frame, which a chip does not detect
			ip[3] %= byte(min(len(ip), 256) - 1)
		}
	case 15:
		binary.BigEndian.PutUint16(udp[4:], uint16(b.rng.IntN([]int{12, 2 * len(udp)}[b.rng.IntN(2)])))
	case 7, 8, 9, 10, 11: // a shim, and the constant bits of our packets in front of the sequence number
		b.shim(udp, kind)
	}
	binary.BigEndian.PutUint16(ip[10:], internet(ip[:20]))
	if kind == 12 {
		ip[10] ^= 0xff
	}
	return b.cut(f, in, 20)
}

// shim adds a shim to a datagram: echoed if kind is 7, and empty if kind is 8.
func (b *both) shim(udp []byte, kind int) {
	binary.BigEndian.PutUint16(udp[2:], ids.UDPPortMaxQD)
	copy(udp[8:], []byte{ids.MaxQDVersion << 4, ids.MaxQDNextBTH, byte(b.rng.IntN(256)), byte(b.rng.IntN(256)), 4, 0, 0xff, 0xff})
	if kind == 7 {
		udp[8] |= 8
	}
	if kind == 8 {
		udp[10], udp[11] = 0, 0
	}
}

// cut sometimes ends a frame within its IP header.
func (b *both) cut(f []byte, in uint32, header int) []byte {
	if in != controllers && b.rng.IntN(30) == 0 {
		return f[:b.rng.IntN(14+header)]
	}
	return f
}

// play runs random arrivals, departures and polls; diff is the first difference.
func (b *both) play(t testing.TB, steps int) (diff string, err error) {
	t.Helper()
	for step := range steps {
		b.now += units.Time(b.rng.Int64N(1 << b.rng.IntN(10)))
		if b.rng.IntN(300) == 0 {
			b.now += longest * 3 / 5
		}
		more := 70 // arrivals in 100 steps while queues grow
		if step/250%2 == 1 {
			more = 20
		}
		waits := b.waiting()
		switch n := b.rng.IntN(100); {
		case n < more:
			in := 1 + b.rng.Uint32N(ports)
			diff, err = b.arrive(in, b.frame(in))
		case n < more+2: // through the pipeline, or out of a port unchanged
			mode := []uint16{ids.PacketOutPort, ids.PacketOutPipeline, ids.PacketOutPipeline, 15}[b.rng.IntN(4)]
			head := binary.BigEndian.AppendUint16(nil, uint16(1+b.rng.IntN(ports))<<7|uint16(b.rng.IntN(8))<<4|mode)
			diff, err = b.arrive(ids.CPUPort, append(head, b.frame(controllers)...))
		case n < 94 && len(waits) > 0:
			_, _, diff, err = b.depart(waits[b.rng.IntN(len(waits))])
		case n < 97:
			diff, err = b.pollAll(1+b.rng.Uint32N(ports), b.rng.Uint32N(ids.QueuesPerPort))
		default:
			b.write(t, control.Scale(b.rng.Uint64N(32)))
			if b.rng.IntN(6) == 0 {
				b.write(t, control.DisableStamping())
			}
		}
		if diff != "" || err != nil {
			return diff, err
		}
		for _, at := range b.waiting() { // nothing waits much longer
			for len(b.queues[at]) > 0 && b.now-b.queues[at][0].at > longest*2/3 && diff == "" && err == nil {
				_, _, diff, err = b.depart(at)
			}
		}
	}
	for _, at := range b.waiting() {
		for len(b.queues[at]) > 0 && diff == "" && err == nil {
			_, _, diff, err = b.depart(at)
		}
	}
	if diff == "" && err == nil {
		diff, err = b.counters()
	}
	return diff, err
}

func (b *both) waiting() (list []place) {
	for at, q := range b.queues {
		if len(q) > 0 {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, func(x, y place) int { return int(x.port<<3+x.queue) - int(y.port<<3+y.queue) })
	return list
}

// pollAll polls a port and compares both reports.
func (b *both) pollAll(port, queue uint32) (string, error) {
	c, v, diff, err := b.poll(port, queue)
	if diff != "" || err != nil {
		return diff, err
	}
	type fields struct {
		port           uint32
		delay          uint16
		bytes, packets uint64
	}
	got, want := fields{c.Port, c.LastDelay, c.DepartedBytes, c.DepartedPackets}, fields{v.Port, v.LastDelay, v.DepartedBytes, v.DepartedPackets}
	if got != want {
		return fmt.Sprintf("a poll has %+v, v1model's %+v", got, want), nil
	}
	if c.AdmissionDrops != 0 || c.Time != uint64(b.now) || !c.PortOnly {
		return fmt.Sprintf("a poll of queue %d at %d has %+v", queue, b.now, c), nil
	}
	for q := range uint32(ids.QueuesPerPort) {
		at := place{port, q}
		if c.QueueBytes[q] != b.left[at] || b.fresh[at] && v.QueueBytes[q] != b.left[at] {
			return fmt.Sprintf("port %d, queue %d: its last packet left %d bytes behind; the chip reports %d, v1model %d", port, q, b.left[at], c.QueueBytes[q], v.QueueBytes[q]), nil
		}
	}
	return "", nil
}

// counters compares all counters of departed packets.
func (b *both) counters() (string, error) {
	for p := range uint64(ports + 1) {
		v, err := b.in.ReadCounter(ids.CounterECNMarksName, int(p))
		if n := b.chip.Counter(ids.CounterECNMarksName, p); err != nil || n != Count(v) {
			return fmt.Sprintf("ECN marks of port %d: chip %v, v1model %v", p, n, v), err
		}
	}
	for _, p := range slices.Sorted(maps.Keys(b.from)) {
		if n, want := b.chip.Counter(ids.CounterIngressDeparturesName, uint64(b.theirs(p))), b.from[p]; n != want {
			return fmt.Sprintf("departures of port %d: %v, want %v", p, n, want), nil
		}
	}
	for table, name := range map[uint32]string{ids.TableFlow: ids.TableFlowName, ids.TableCongestedFlow: ids.TableCongestedFlowName,
		ids.TableFlowIPv6: ids.TableFlowIPv6Name, ids.TableCongestedFlowIPv6: ids.TableCongestedFlowIPv6Name} {
		got := b.chip.EntryCount(name)
		var want []Count
		b.state.Read(p4rtmsg.Entity(&p4v1.TableEntry{TableId: table, CounterData: &p4v1.CounterData{}}), func(f entity.Found) {
			d := f.Message().GetTableEntry().GetCounterData()
			want = append(want, Count{uint64(d.GetPacketCount()), uint64(d.GetByteCount())})
		})
		if !slices.Equal(got, want) {
			return fmt.Sprintf("%s: chip %v, v1model %v", name, got, want), nil
		}
	}
	return "", nil
}

// The chip's program and v1model's treat random packets in the same way: output, port, marks and stamps, poll
// reports, counters of ECN, PACC and departures, and learned flows. Places that the chip's program has not
// written hold random numbers meanwhile.
func TestBoth(t *testing.T) {
	race.SkipSequential(t)
	program := compiled(t)
	for _, p := range profiles {
		chip := load(t, os.DirFS(p4), p.name)
		for seed := range uint64(2) {
			b := newBoth(t, chip, p, program, seed)
			b.setUp(t)
			if diff, err := b.play(t, 4000); diff != "" || err != nil {
				t.Errorf("%s, seed %d: %s %v", p.name, seed, diff, err)
			}
		}
		for _, c := range differences {
			if got := c.on(t, chip); got != c.want {
				t.Errorf("%s, %s: %s, want %s", p.name, c.name, got, c.want)
			}
		}
		checkTable(t, chip, p.name)
	}
}

// differences from v1model's program that docs/targets/tofino.md lists: a change to a frame that would be
// forwarded, and the chip's treatment of it.
type difference struct {
	name   string
	change func(ip []byte)
	want   string
}

var differences = []difference{
	{"as it is", func([]byte) {}, "forwarded"},
	{"a shim of another version", func(ip []byte) { ip[28] = 2 << 4 }, "maxqd_shim"},
	{"too short for a shim", func(ip []byte) { ip[25] = 11; ip[24] = 0 }, "udp_length"},
	{"what begins like a shim, with another partition", func(ip []byte) { ip[35] = 1 }, "forwarded"},
	{"a frame that ends before its packet", func(ip []byte) { ip[2]++ }, "forwarded"},
}

func (c *difference) on(t *testing.T, chip *Chip) string {
	t.Helper()
	chip.Restart()
	if err := chip.Insert(route(1).GetEntity().GetTableEntry()); err != nil {
		t.Fatal(err)
	}
	f := make([]byte, 120)
	ip := f[14:]
	f[12] = 8
	copy(ip, []byte{0x45, 0, 0, byte(len(ip)), 0, 0, 0, 0, 9, ids.IPProtocolUDP, 0, 0, 10, 0, 2, 1, 10, 0, 1, 1})
	udp := ip[20:]
	binary.BigEndian.PutUint16(udp[2:], ids.UDPPortMaxQD)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	copy(udp[8:], []byte{ids.MaxQDVersion << 4, ids.MaxQDNextBTH, 0, 0, 4, 0, 0xff, 0xff})
	c.change(ip)
	binary.BigEndian.PutUint16(ip[10:], internet(ip[:20]))
	switch a, err := chip.Ingress(1, f); {
	case err != nil:
		t.Fatal(err)
	case !a.Dropped:
		return "forwarded"
	}
	for i := range ids.DropReasonCells {
		if chip.Counter(ids.CounterDropsName, uint64(i)).Packets == 1 {
			return ids.DropReason(i)
		}
	}
	return "dropped for no reason"
}

func load(t testing.TB, files fs.FS, name string) *Chip {
	t.Helper()
	chip, err := Load(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return chip
}
