package standalone

import (
	"context"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/internal/veth"
	"github.com/headgate/headgate/tests/dataplane/control"
)

// eachDriver runs a test between two veth pairs with each port driver.
func eachDriver(t *testing.T, test func(t *testing.T, driver string, pairs []veth.Pair)) {
	for _, driver := range []string{"afpacket", "xdp", "auto"} {
		t.Run(driver, func(t *testing.T) {
			pairs := veth.New(t, 2)
			if driver == "xdp" {
				needXDP(t, pairs[0].Switch)
			}
			test(t, driver, pairs)
		})
	}
}

// get returns the next frame of a station.
func (s *station) get(t *testing.T) []byte {
	t.Helper()
	select {
	case f := <-s.frames:
		return f
	case <-time.After(hang):
		t.Fatal("no frame came")
		return nil
	}
}

// put sends a frame from a station.
func (s *station) put(t *testing.T, f []byte) {
	t.Helper()
	s.Send(f)
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestRecirculateOverInterfaces: a frame that passes the switch twice leaves like any other.
func TestRecirculateOverInterfaces(t *testing.T) {
	eachDriver(t, func(t *testing.T, driver string, pairs []veth.Pair) {
		startHere(t, "-i", "1@"+pairs[0].Switch, "-i", "2@"+pairs[1].Switch, "--port-driver", driver, program(t), "--", "--grpc-server-addr", listen)
		h1, h2 := openStation(t, pairs[0].Host), openStation(t, pairs[1].Host)
		for i := range byte(20) {
			h2.put(t, frame(255, i))
			if f := h1.get(t); f[5] != 1 || f[15] != 1 || f[40] != i {
				t.Fatalf("frame %d for port %d after %d rounds, want frame %d for port 1 after 1", f[40], f[5], f[15], i)
			}
		}
	})
}

// controlled starts a switch with a program and a controller.
func controlled(t *testing.T, driver string, pairs []veth.Pair, info, json string) *control.Client {
	t.Helper()
	veth.SetUp(t, "lo", true)
	free, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	startHere(t, "-i", "1@"+pairs[0].Switch, "-i", "2@"+pairs[1].Switch, "--port-driver", driver, "--no-p4", "--device-id", "1",
		"--", "--grpc-server-addr", address, "--cpu-port", "510")
	c, err := net.Dial("tcp", address) // gRPC would connect on a thread that is not in the namespace
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("passthrough:"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return c, nil }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client, err := control.New(conn, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if info == "" {
		err = client.Push()
	} else {
		err = push(client, info, json)
	}
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func push(c *control.Client, info, json string) error {
	text, err := os.ReadFile(info)
	if err != nil {
		return err
	}
	p4info := new(p4configv1.P4Info)
	if err := prototext.Unmarshal(text, p4info); err != nil {
		return err
	}
	program, err := os.ReadFile(json)
	if err != nil {
		return err
	}
	return c.PushProgram(p4info, program)
}

// TestClonesOverInterfaces: a frame leaves, and so do the copies that ingress and egress make of
// it.
func TestClonesOverInterfaces(t *testing.T) {
	eachDriver(t, func(t *testing.T, driver string, pairs []veth.Pair) {
		c := controlled(t, driver, pairs, "../testdata/loops.p4info.txtpb", "../testdata/loops.json")
		if err := c.Write(p4rtmsg.Insert(&p4v1.CloneSessionEntry{SessionId: 1, Replicas: p4rtmsg.Replicas(1)})); err != nil {
			t.Fatal(err)
		}
		h1, h2 := openStation(t, pairs[0].Host), openStation(t, pairs[1].Host)
		const signal, fromIngress, fromEgress = 1, 0x11, 0x12 // of testdata/loops.json
		for range 20 {
			h2.put(t, append([]byte{signal}, make([]byte, 59)...))
			if got := [2]byte{h1.get(t)[0], h1.get(t)[0]}; got != [2]byte{fromIngress, fromEgress} {
				t.Fatalf("copies %#x, want %#x and %#x", got, fromIngress, fromEgress)
			}
			if f := h2.get(t); f[0] != signal || len(f) != 60 {
				t.Fatalf("frame %x, want the one sent", f)
			}
		}
	})
}

// TestPacketIOOverInterfaces: packets go to the controller and come from it.
func TestPacketIOOverInterfaces(t *testing.T) {
	eachDriver(t, func(t *testing.T, driver string, pairs []veth.Pair) {
		c := controlled(t, driver, pairs, "", "")
		const etherType, reason = 0x88b5, 2
		if err := c.Write(control.PuntEtherType(etherType, reason)); err != nil {
			t.Fatal(err)
		}
		h1, h2 := openStation(t, pairs[0].Host), openStation(t, pairs[1].Host)
		f := append([]byte{2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, etherType >> 8, etherType & 0xff}, strings.Repeat("x", 50)...)
		for i := range byte(20) {
			f[40] = i
			h1.put(t, f)
			in, err := c.Receive(hang)
			if err != nil {
				t.Fatal(err)
			}
			if in.Port != 1 || in.Reason != reason || string(in.Payload) != string(f) {
				t.Fatalf("packet-in %+v, want the frame of port 1", in)
			}
			if err := c.Send(control.PacketOut{Port: 2, Payload: in.Payload}); err != nil {
				t.Fatal(err)
			}
			if got := h2.get(t); string(got) != string(f) {
				t.Fatalf("frame %x, want %x", got, f)
			}
		}
	})
}

// lines hands on what is written to it.
type lines chan string

func (l lines) Write(b []byte) (int, error) { l <- string(b); return len(b), nil }

// said waits for a line with all the words.
func (l lines) said(t *testing.T, words ...string) {
	t.Helper()
	for end := time.After(hang); ; {
		select {
		case line := <-l:
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return
			}
		case <-end:
			t.Fatalf("no line with %q", words)
		}
	}
}

// TestAutoDriver: while the switch runs, a capture on one of its interfaces sees the frames, too.
// The log says which driver each port uses and why.
func TestAutoDriver(t *testing.T) {
	pairs := veth.New(t, 2)
	needXDP(t, pairs[0].Switch)
	log := make(lines, 1024)
	startLogged(t, slog.New(slog.NewTextHandler(log, nil)), "-i", "1@"+pairs[0].Switch, "-i", "2@"+pairs[1].Switch, "--port-driver", "auto",
		program(t), "--", "--grpc-server-addr", listen)
	h1, h2 := openStation(t, pairs[0].Host), openStation(t, pairs[1].Host)
	log.said(t, `msg="port driver"`, "port=1", "interface="+pairs[0].Switch, "driver=xdp", `why="nothing else uses the interface"`)
	capture := openStation(t, pairs[0].Switch)
	log.said(t, `msg="port driver"`, "port=1", "driver=afpacket", `why="a packet socket listens`)
	for i := range byte(20) {
		h1.put(t, frame(2, i))
		if seen, got := capture.get(t), h2.get(t); seen[40] != i || got[40] != i {
			t.Fatalf("captured frame %d, received %d, want %d", seen[40], got[40], i)
		}
	}
}
