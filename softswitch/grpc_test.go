package softswitch

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/headgate/headgate/clock"
	"github.com/headgate/headgate/internal/p4rtmsg"
)

// client is a primary P4Runtime controller.
type client struct {
	p4v1.P4RuntimeClient
	t        *testing.T
	election *p4v1.Uint128
}

// becomePrimary connects to a switch and becomes its primary; the connection ends with the
// test or with the server.
func becomePrimary(t *testing.T, addr net.Addr) *client {
	t.Helper()
	conn, err := grpc.NewClient(addr.String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &client{p4v1.NewP4RuntimeClient(conn), t, &p4v1.Uint128{Low: 1}}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := c.StreamChannel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&p4v1.StreamMessageRequest{Update: &p4v1.StreamMessageRequest_Arbitration{
		Arbitration: &p4v1.MasterArbitrationUpdate{ElectionId: c.election},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := stream.Recv(); err != nil || answer.GetArbitration().GetStatus().GetCode() != 0 {
		t.Fatalf("arbitration: %v, %v", answer, err)
	}
	return c
}

func (c *client) push(p4info, json string) {
	c.t.Helper()
	program, err := os.ReadFile(json)
	if err != nil {
		c.t.Fatal(err)
	}
	text, err := os.ReadFile(p4info)
	if err != nil {
		c.t.Fatal(err)
	}
	info := &p4configv1.P4Info{}
	// p4c writes fields that this version of P4Runtime does not have.
	if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, info); err != nil {
		c.t.Fatal(err)
	}
	_, err = c.SetForwardingPipelineConfig(c.t.Context(), &p4v1.SetForwardingPipelineConfigRequest{
		ElectionId: c.election,
		Action:     p4v1.SetForwardingPipelineConfigRequest_VERIFY_AND_COMMIT,
		Config:     &p4v1.ForwardingPipelineConfig{P4Info: info, P4DeviceConfig: program},
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// redirect is an entry of echo.p4's only table, with the ids of its P4Info.
func redirect(from, to byte) *p4v1.Entity {
	return p4rtmsg.Entity(&p4v1.TableEntry{
		TableId: 42877182,
		Match:   []*p4v1.FieldMatch{{FieldId: 1, FieldMatchType: &p4v1.FieldMatch_Exact_{Exact: &p4v1.FieldMatch_Exact{Value: []byte{from}}}}},
		Action: p4rtmsg.Call(&p4v1.Action{
			ActionId: 28749719, Params: []*p4v1.Action_Param{{ParamId: 1, Value: []byte{to}}},
		}),
	})
}

// Entries and traffic survive when P4Runtime stops being served.
func TestRestartOfTheP4RuntimeServer(t *testing.T) {
	loop := clock.NewLoop()
	s, err := NewOnLoop(loop, config("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hosts := [4]*host{}
	for i := 1; i < len(hosts); i++ {
		p, err := s.AddPort(uint32(i), 0)
		if err != nil {
			t.Fatal(err)
		}
		hosts[i] = &host{loop: loop}
		connect(t, loop, us, hosts[i], p)
	}
	ctx, cancel := context.WithTimeout(t.Context(), hang)
	defer cancel()
	end := make(chan error)
	go func() { end <- loop.RunReal(ctx) }()

	addr, err := s.ServeGRPC("127.1.255.1:0", nil) // an address whose port stays free, because connections come from 127.0.0.1
	if err != nil {
		t.Fatal(err)
	}
	c := becomePrimary(t, addr)
	c.push("testdata/echo.p4info.txtpb", "testdata/echo.json")
	if _, err := c.Write(ctx, &p4v1.WriteRequest{ElectionId: c.election, Updates: []*p4v1.Update{{Type: p4v1.Update_INSERT, Entity: redirect(2, 3)}}}); err != nil {
		t.Fatal(err)
	}

	// send sends a frame for port 2 and waits until it has come out of port 3.
	send := func(seq uint32) {
		t.Helper()
		got := make(chan int)
		if err := loop.Do(ctx, func() { hosts[1].out.Send(frame(2, 0, seq, 60), loop.Now()) }); err != nil {
			t.Fatal(err)
		}
		go func() {
			for n := 0; n == 0; {
				if err := loop.Do(ctx, func() { n = len(hosts[3].got); hosts[3].got = nil }); err != nil {
					close(got)
					return
				}
				if n > 0 {
					got <- n
				}
			}
		}()
		if n := <-got; n != 1 {
			t.Fatalf("frame %d came out of port 3 %d times", seq, n)
		}
	}
	send(1)
	s.StopGRPC()
	send(2)
	if addr, err = s.ServeGRPC(addr.String(), nil); err != nil {
		t.Fatal(err)
	}
	c = becomePrimary(t, addr) // with the election id it had before
	stream, err := c.Read(ctx, &p4v1.ReadRequest{Entities: []*p4v1.Entity{{Entity: &p4v1.Entity_TableEntry{TableEntry: &p4v1.TableEntry{}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := stream.Recv(); err != nil || len(answer.Entities) != 1 {
		t.Errorf("the switch holds %v, %v, want the entry", answer, err)
	}
	send(3)
	cancel()
	<-end
	if n := s.Stats().Pipelines; n != 1 {
		t.Errorf("%d pipelines ran, want 1", n)
	}
}

// TestClients: a switch serves every kind of address that gRPC has, keeps clients that ping often,
// and describes its services to clients without the .proto files.
func TestClients(t *testing.T) {
	for _, addr := range []string{
		"127.0.0.1:0", "[::1]:0", "localhost:0", "ipv4:127.0.0.1:0", "ipv6:[::1]:0", "dns:localhost:0", "dns:///localhost:0",
		"unix:" + filepath.Join(t.TempDir(), "p4rt.sock"), "unix://" + filepath.Join(t.TempDir(), "p4rt.sock"), fmt.Sprint("unix-abstract:headgate-", os.Getpid()),
	} {
		s, err := NewOnLoop(clock.NewLoop(), config("a"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		at, err := s.ServeGRPC(addr, nil)
		if err != nil {
			t.Errorf("%s: %v", addr, err)
			continue
		}
		target := at.String()
		if name, abstract := strings.CutPrefix(target, "@"); abstract {
			target = "unix-abstract:" + name
		} else if at.Network() == "unix" {
			target = "unix:" + target
		}
		conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
		if err == nil {
			err = stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "p4.v1.P4Runtime"}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := stream.Recv(); err != nil || len(answer.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			t.Errorf("%s: reflection: %v, %v", addr, answer, err)
		}
	}
}
