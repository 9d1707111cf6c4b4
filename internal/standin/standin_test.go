package standin_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/headgate/headgate/internal/standin"
	"github.com/headgate/headgate/p4src"
	"github.com/headgate/headgate/softswitch/p4rt"
	"github.com/headgate/headgate/units"
)

// silent is a switch without ports.
type silent struct{}

func (silent) Commit(*p4rt.Pipeline) {}
func (silent) PacketOut([]byte)      {}
func (silent) Now() units.Time       { return 0 }

// infos returns the P4Info of every program.
func infos(t *testing.T) map[string]*p4configv1.P4Info {
	t.Helper()
	texts := map[string][]byte{"v1model": p4src.P4Info}
	for _, chip := range p4src.Chips() {
		p, err := p4src.Tofino(chip)
		if err != nil {
			t.Fatal(err)
		}
		texts[chip] = p.P4Info
	}
	out := map[string]*p4configv1.P4Info{}
	for name, text := range texts {
		info := &p4configv1.P4Info{}
		if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, info); err != nil {
			t.Fatal(err)
		}
		out[name] = info
	}
	return out
}

// serve starts the embedded switch's P4Runtime server with a stand-in of a program.
func serve(t *testing.T, info *p4configv1.P4Info) (p4v1.P4RuntimeClient, *p4v1.Uint128) {
	t.Helper()
	program, err := standin.Program(info)
	if err != nil {
		t.Fatal(err)
	}
	s := p4rt.New(p4rt.Options{DeviceID: 1, CPUPort: 320, Queues: 8}, silent{})
	g := grpc.NewServer()
	s.Register(g)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go g.Serve(l) // ends with Stop
	t.Cleanup(g.Stop)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := p4v1.NewP4RuntimeClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	stream, err := c.StreamChannel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	id := &p4v1.Uint128{Low: 1}
	err = stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{
		Arbitration: &p4v1.MasterArbitrationUpdate{DeviceId: 1, ElectionId: id},
	}})
	if err == nil {
		_, err = stream.Recv()
	}
	if err == nil {
		_, err = c.SetForwardingPipelineConfig(ctx, &p4v1.SetForwardingPipelineConfigRequest{
			DeviceId: 1, ElectionId: id, Action: p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT,
			Config: &p4v1.ForwardingPipelineConfig{P4Info: info, P4DeviceConfig: program},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, id
}

// TestEveryObjectIsServed writes an entry to each table, a member and a group to each action
// profile, a digest and a clone session, and reads all of it back, with the counters and
// registers.
func TestEveryObjectIsServed(t *testing.T) {
	for name, info := range infos(t) {
		t.Run(name, func(t *testing.T) {
			c, id := serve(t, info)
			objects := sample(info)
			var updates []*p4v1.Update
			for _, o := range objects {
				if o.write != nil {
					updates = append(updates, o.write)
				}
			}
			for _, u := range updates {
				_, err := c.Write(context.Background(), &p4v1.WriteRequest{DeviceId: 1, ElectionId: id, Updates: []*p4v1.Update{u}})
				if err != nil {
					t.Errorf("%v: %v", u, err)
				}
			}
			for _, o := range objects {
				got, err := read(c, o.read)
				switch {
				case err != nil:
					t.Errorf("%s: %v", o.what, err)
				case len(got) < o.least:
					t.Errorf("%s: %d entities, want %d", o.what, len(got), o.least)
				case o.write != nil && !holds(got, o.write.GetEntity()):
					t.Errorf("%s: wrote %v, read %v", o.what, o.write.GetEntity(), got)
				}
			}
			want := len(info.GetTables()) + 2*len(info.GetActionProfiles()) + len(info.GetCounters()) + len(info.GetDirectCounters()) +
				len(info.GetRegisters()) + len(info.GetDigests()) + 1
			if len(objects) < want {
				t.Errorf("%d objects were tried, the P4Info has %d", len(objects), want)
			}
		})
	}
}

func read(c p4v1.P4RuntimeClient, e *p4v1.Entity) ([]*p4v1.Entity, error) {
	stream, err := c.Read(context.Background(), &p4v1.ReadRequest{DeviceId: 1, Entities: []*p4v1.Entity{e}})
	if err != nil {
		return nil, err
	}
	r, err := stream.Recv()
	return r.GetEntities(), err
}

// holds reports whether an entity is in a list; what only a switch knows does not count.
func holds(list []*p4v1.Entity, want *p4v1.Entity) bool {
	for _, e := range list {
		if t := e.GetTableEntry(); t != nil {
			t.CounterData, t.TimeSinceLastHit = nil, nil
		}
		if proto.Equal(e, want) {
			return true
		}
	}
	return false
}

func TestNoMeters(t *testing.T) {
	info := infos(t)["v1model"]
	info.Meters = []*p4configv1.Meter{{Preamble: &p4configv1.Preamble{Id: 0x14000001, Name: "m"}}}
	if _, err := standin.Program(info); err == nil {
		t.Error("a meter was left out without a word")
	}
}

func TestUnknownKind(t *testing.T) {
	info := infos(t)["v1model"]
	info.Tables[0].MatchFields[0].Match = &p4configv1.MatchField_OtherMatchType{OtherMatchType: "atcam"}
	_, err := standin.Program(info)
	if err == nil || !strings.Contains(err.Error(), info.Tables[0].Preamble.Name) {
		t.Errorf("error %v, want one about %s", err, info.Tables[0].Preamble.Name)
	}
}
