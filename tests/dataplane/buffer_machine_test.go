package dataplane

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
	"github.com/headgate/headgate/softswitch/engine"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/units"
)

// wayOut is the egress port of all forwarded packets.
const wayOut = 100

// machine is Headgate's program on the engine, with a buffer policy and its own clock. Packets stay between
// ingress and egress until the test removes them. PFC frames leave at once.
type machine struct {
	t       testing.TB
	in      *engine.Instance
	now     units.Time
	held    *engine.Packet // the packet from the last Ingress call
	pfc     []pfcFrame
	reports [][]byte
}

// pfcFrame is a PFC frame that left a port.
type pfcFrame struct {
	port    uint32
	classes uint8
	times   [8]uint16
}

func (m *machine) Enqueue(p *engine.Packet) {
	if p.EgressPort == wayOut {
		m.held = p
		return
	}
	m.in.Egress(p, m.now, m)
}

func (m *machine) Transmit(port uint32, frame []byte) {
	switch port {
	case wayOut:
	case ids.CPUPort:
		m.reports = append(m.reports, append([]byte(nil), frame...))
	default:
		f, err := parsePFC(port, frame)
		must(m.t, err)
		m.pfc = append(m.pfc, f)
	}
}

func (m *machine) Recirculate(p *engine.Packet) { m.t.Fatal("a packet comes again") }
func (m *machine) Digest(string, [][]byte)      {}
func (m *machine) Dropped(uint32, engine.Drop)  {}
func (m *machine) call(a buffer.Action) *engine.ActionCall {
	c := &engine.ActionCall{Name: a.Name}
	for _, v := range a.Params {
		c.Args = append(c.Args, binary.BigEndian.AppendUint64(nil, v))
	}
	return c
}

// parsePFC checks all fields of a PFC frame except its classes and times.
func parsePFC(port uint32, b []byte) (pfcFrame, error) {
	f := pfcFrame{port: port}
	if len(b) != ids.PFCFrameBytes || string(b[:6]) != "\x01\x80\xc2\x00\x00\x01" || string(b[12:17]) != "\x88\x08\x01\x01\x00" {
		return f, fmt.Errorf("port %d sent %x, want a PFC frame", port, b)
	}
	f.classes = b[17]
	for i := range f.times {
		f.times[i] = binary.BigEndian.Uint16(b[18+2*i:])
		if f.classes>>i&1 == 0 && f.times[i] != 0 {
			return f, fmt.Errorf("port %d sent %x, with a time for a class that is not enabled", port, b)
		}
	}
	for _, v := range b[34:] {
		if v != 0 {
			return f, fmt.Errorf("port %d sent %x, with padding that is not zero", port, b)
		}
	}
	return f, nil
}

// pause returns true if all enabled classes are paused for a time, and false for a RESUME of all. Anything else
// is an error.
func (f pfcFrame) pause(quanta uint16) (bool, error) {
	pauses := 0
	for i, v := range f.times {
		if f.classes>>i&1 != 0 {
			switch v {
			case quanta:
				pauses++
			case 0:
			default:
				return false, fmt.Errorf("%+v has other times than 0 and %d", f, quanta)
			}
		}
	}
	n := 0
	for c := f.classes; c != 0; c &= c - 1 {
		n++
	}
	if n == 0 || pauses != 0 && pauses != n {
		return false, fmt.Errorf("%+v is neither a PAUSE nor a RESUME", f)
	}
	return pauses == n, nil
}

// loadProgram compiles Headgate's program, which machines can share.
func loadProgram(t testing.TB) *engine.Program {
	program, err := engine.Load(p4src.JSON())
	must(t, err)
	return program
}

func newMachine(t testing.TB, program *engine.Program) *machine {
	m := &machine{t: t, in: engine.New(program, engine.Options{Queues: 8}), now: units.Second}
	group := engine.GroupID(1)
	must(t, m.in.AddMember(ids.ProfileECMPName, 1, engine.ActionCall{
		Name: ids.ActionSetNextHopName, Args: [][]byte{{wayOut}, switchMAC(2), hostMAC(2)},
	}))
	must(t, m.in.SetGroup(ids.ProfileECMPName, group, []engine.MemberID{1}))
	_, err := m.in.AddEntry(ids.TableIPv4LPMName, []engine.Match{{Value: []byte{10, 0, 0, 0}, Prefix: 8}}, 0, engine.Target{Group: &group}, 0)
	must(t, err)
	for class := range byte(8) {
		_, err = m.in.AddEntry(ids.TableDSCPToClassName, []engine.Match{{Value: []byte{class}}}, 0,
			engine.Target{Call: &engine.ActionCall{Name: ids.ActionSetClassName, Args: [][]byte{{class}, {0}}}}, 0)
		must(t, err)
	}
	must(t, m.in.SetCloneSession(ids.PollCloneSession, engine.CloneSession{Replicas: []engine.Replica{{Port: ids.CPUPort, Instance: 1}}}))
	return m
}

// add inserts an entry.
func (m *machine) add(e buffer.Entry) engine.Handle {
	m.t.Helper()
	var keys []engine.Match
	for _, f := range e.Match {
		k := engine.Match{Value: binary.BigEndian.AppendUint64(nil, f.Value)}
		if f.Prefix != buffer.Exact {
			k.Value, k.Prefix = k.Value[4:], f.Prefix
		}
		keys = append(keys, k)
	}
	if e.Table == ids.TableHeadroomForName && len(keys) == 1 {
		keys = append(keys, engine.Match{Value: make([]byte, 4)}) // prefix 0
	}
	h, err := m.in.AddEntry(e.Table, keys, 0, engine.Target{Call: m.call(e.Action)}, 0)
	if err != nil {
		m.t.Fatalf("entry %+v: %v", e, err)
	}
	return h
}

// install makes a policy the running one and removes the last policy's entries.
func (m *machine) install(c buffer.Config) (remove func()) {
	m.t.Helper()
	entries, err := buffer.Build(c)
	must(m.t, err)
	handles := make([]engine.Handle, len(entries.Tables))
	for i, e := range entries.Tables {
		handles[i] = m.add(e)
	}
	m.policy(entries.Policy)
	for _, port := range c.Numbers {
		must(m.t, m.in.SetCloneSession(uint16(buffer.Session(port)), engine.CloneSession{Replicas: []engine.Replica{{Port: port, Instance: 1}}}))
	}
	return func() {
		for i, e := range entries.Tables {
			must(m.t, m.in.DeleteEntry(e.Table, handles[i]))
		}
	}
}

func (m *machine) policy(a buffer.Action) {
	m.t.Helper()
	must(m.t, m.in.SetDefault(ids.TableBufferPolicyName, &engine.Target{Call: m.call(a)}))
}

// arrive sends a frame in and returns the packet that waits for egress, nil for a drop.
func (m *machine) arrive(port uint32, class uint8, n int) *engine.Packet {
	m.held = nil
	m.in.Ingress(m.in.Receive(port, dataFrame(class, n), m.now), m.now, m)
	return m.held
}

// depart sends a stored packet through egress.
func (m *machine) depart(p *engine.Packet) {
	p.EnqTime, p.DeqTime, p.DeqDepth = m.now, m.now, 1
	m.in.Egress(p, m.now, m)
}

// packetOut sends a packet from the controller in.
func (m *machine) packetOut(port uint32, mode uint16) {
	b := binary.BigEndian.AppendUint16(nil, uint16(port)<<7|mode)
	m.in.Ingress(m.in.Receive(ids.CPUPort, b, m.now), m.now, m)
}

func (m *machine) poll(port uint32) pollreport.Report {
	m.t.Helper()
	m.reports = nil
	m.packetOut(port, ids.PacketOutPoll)
	if len(m.reports) != 1 {
		m.t.Fatalf("a poll brought %d reports", len(m.reports))
	}
	r, _, err := pollreport.Parse(m.reports[0][2:])
	must(m.t, err)
	return r
}

func (m *machine) counter(name string, i int) uint64 {
	c, err := m.in.ReadCounter(name, i)
	must(m.t, err)
	return c.Packets
}

func (m *machine) register(name string, i int) (v uint64) {
	b, err := m.in.ReadRegister(name, i)
	must(m.t, err)
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v
}

func (m *machine) tau(port uint32, class uint8) units.Bytes {
	return units.Bytes(m.register(ids.RegisterBufferTauName, int(port)<<3|int(class)))
}

// dataFrame is an IPv4 frame of n bytes whose DSCP is its class.
func dataFrame(class uint8, n int) []byte {
	b := make([]byte, n)
	copy(b, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x08\x00\x45")
	b[15] = class << 2
	binary.BigEndian.PutUint16(b[16:], uint16(n-14))
	b[22], b[23] = 64, 253 // experimental (RFC 3692)
	copy(b[26:], []byte{192, 0, 2, 1, 10, 0, 0, 1})
	fixChecksum(b)
	return b
}
