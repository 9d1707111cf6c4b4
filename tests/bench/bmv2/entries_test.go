package bmv2

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/tests/dataplane/bmv2"
	"github.com/headgate/headgate/tests/dataplane/control"
)

// encoded sends pre-encoded messages and leaves answers encoded, so that the client uses little of the machine,
// which it shares with the switch.
type encoded struct{}

func (encoded) Name() string                    { return "proto" }
func (encoded) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (encoded) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }

var _ encoding.Codec = encoded{}

const service = "/p4.v1.P4Runtime/"

// entries measures P4Runtime: writes to an exact, an LPM and a ternary table, one Write at a time,
// and a wildcard read of all entries of a table.
func entries(t *testing.T, k kind, p *program) sample {
	s, address := launch(t, k, t.TempDir())
	conn, err := dial(s, address)
	must(t, err)
	defer conn.Close()
	client, err := control.New(conn, 1)
	must(t, err)
	defer client.Close()
	must(t, s.Explain(client.PushProgram(p.info, p.json)))
	m := &meter{t: t, s: s, conn: conn}
	for _, table := range p.info.Tables {
		name := table.Preamble.Alias
		for b := range strings.SplitSeq(*batches, ",") {
			batch, err := strconv.Atoi(b)
			must(t, err)
			n := *written
			if batch == 1 {
				n /= 10 // a call takes about 20 times as long as an update in a large batch
			}
			for _, op := range []p4v1.Update_Type{p4v1.Update_INSERT, p4v1.Update_MODIFY, p4v1.Update_DELETE} {
				m.write(fmt.Sprintf("%s, %v, %d a Write", name, op, batch), table, op, n, batch)
			}
		}
	}
	whole := p.info.Tables[0]
	m.write("", whole, p4v1.Update_INSERT, *readEntries, 1000)
	m.read(whole.Preamble.Id, *readEntries)
	return m.out
}

// meter measures a switch over one connection.
type meter struct {
	t    *testing.T
	s    *bmv2.Process
	conn *grpc.ClientConn
	out  sample
}

// write writes entries 0 to n-1 of a table. It records rate and processor time under a name; "" records nothing.
func (m *meter) write(name string, table *p4configv1.Table, op p4v1.Update_Type, n, batch int) {
	var requests [][]byte
	for from := 0; from < n; from += batch {
		req := &p4v1.WriteRequest{DeviceId: 1, ElectionId: &p4v1.Uint128{Low: 1}}
		for i := from; i < min(n, from+batch); i++ {
			req.Updates = append(req.Updates, &p4v1.Update{Type: op, Entity: p4rtmsg.Entity(tableEntry(table, op, uint32(i)))})
		}
		b, err := proto.Marshal(req)
		must(m.t, err)
		requests = append(requests, b)
	}
	touched := faults(m.t, m.s)
	used, began := used(m.t, m.s), time.Now()
	for i := range requests {
		var answer []byte
		err := m.conn.Invoke(context.Background(), service+"Write", &requests[i], &answer, grpc.ForceCodec(encoded{}))
		must(m.t, m.s.Explain(err))
	}
	if name != "" {
		m.note(name, n, used, began)
		m.out = append(m.out, value{name + ": page faults of 1000 entries", 1000 * float64(faults(m.t, m.s)-touched) / float64(n), -1})
	}
}

func (m *meter) note(name string, n int, before time.Duration, began time.Time) {
	took, cpu := time.Since(began), used(m.t, m.s)-before
	m.out = append(m.out,
		value{name + ": entries/s", float64(n) / took.Seconds(), 1},
		value{name + ": CPU ns an entry", float64(cpu) / float64(n), -1})
}

// tableEntry is entry i of a table, with another action parameter after a MODIFY.
func tableEntry(table *p4configv1.Table, op p4v1.Update_Type, i uint32) *p4v1.TableEntry {
	e := &p4v1.TableEntry{TableId: table.Preamble.Id}
	for _, f := range table.MatchFields {
		v := binary.BigEndian.AppendUint32(nil, 0x0a000000+i)
		switch f.GetMatchType() {
		case p4configv1.MatchField_EXACT:
			e.Match = append(e.Match, p4rtmsg.Exact(f.Id, v))
		case p4configv1.MatchField_LPM:
			e.Match = append(e.Match, p4rtmsg.LPM(f.Id, v, 32))
		default:
			e.Match, e.Priority = append(e.Match, p4rtmsg.Ternary(f.Id, v, []byte{0xff, 0xff, 0xff, 0xff})), 1
		}
	}
	if op != p4v1.Update_DELETE {
		e.Action = p4rtmsg.Do(table.ActionRefs[0].Id, uint64(1+op))
	}
	return e
}

// read reads the whole table.
func (m *meter) read(table uint32, want int) {
	request, err := proto.Marshal(&p4v1.ReadRequest{DeviceId: 1, Entities: []*p4v1.Entity{p4rtmsg.Entity(&p4v1.TableEntry{TableId: table})}})
	must(m.t, err)
	pid := strconv.Itoa(m.s.PID())
	must(m.t, os.WriteFile("/proc/"+pid+"/clear_refs", []byte("5"), 0)) // VmHWM restarts
	resident := memory(m.t, pid, "VmHWM")
	used, began := used(m.t, m.s), time.Now()
	stream, err := m.conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, service+"Read", grpc.ForceCodec(encoded{}))
	must(m.t, err)
	must(m.t, stream.SendMsg(&request))
	must(m.t, stream.CloseSend())
	var first time.Duration
	got := 0
	for {
		var answer []byte
		if err = stream.RecvMsg(&answer); err != nil {
			break
		}
		if first == 0 {
			first = time.Since(began)
		}
		for len(answer) > 0 {
			_, _, n := protowire.ConsumeField(answer)
			must(m.t, protowire.ParseError(n))
			answer = answer[n:]
			got++
		}
	}
	if !errors.Is(err, io.EOF) || got != want {
		m.t.Fatalf("read %d entries of %d: %v", got, want, err)
	}
	name := fmt.Sprintf("read of %d", want)
	m.note(name, want, used, began)
	m.out = append(m.out,
		value{name + ": µs to the first", float64(first.Microseconds()), -1},
		value{name + ": KB resident more at most", float64(memory(m.t, pid, "VmHWM") - resident), -1},
		value{name + ": KB resident before", float64(resident), -1})
}

// memory returns a number of KB in /proc/PID/status.
func memory(t *testing.T, pid, name string) int {
	b, err := os.ReadFile("/proc/" + pid + "/status")
	must(t, err)
	_, rest, _ := strings.Cut(string(b), name+":")
	f := strings.Fields(rest)
	if len(f) == 0 {
		t.Fatalf("/proc/%s/status has no %s", pid, name)
	}
	n, err := strconv.Atoi(f[0])
	must(t, err)
	return n
}

// faults returns the number of pages that the switch has touched for the first time.
func faults(t *testing.T, s *bmv2.Process) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID()))
	must(t, err)
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')'):]))
	n, err := strconv.Atoi(fields[8]) // minflt, the tenth field
	must(t, err)
	return n
}

// used returns the processor time of a switch in nanoseconds (clock_getcpuclockid(3)).
func used(t *testing.T, s *bmv2.Process) time.Duration {
	const scheduled = 2 // CPUCLOCK_SCHED of the kernel
	var ts unix.Timespec
	must(t, unix.ClockGettime(^int32(s.PID())<<3|scheduled, &ts))
	return time.Duration(ts.Nano())
}
