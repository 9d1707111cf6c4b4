// Command client turns any P4Runtime switch that runs examples/l2/l2.p4 into an L2 switch. It sends broadcasts to
// all ports and each address to its port, and prints the counters of the entries.
//
//	go run ./examples/l2/client 127.0.0.1:9559 06:00:0a:00:00:01=1 06:00:0a:00:00:02=2
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/antoninbas/p4runtime-go-client/pkg/client"
	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/prototext"
)

const (
	table = "L2Ingress.dmac"
	group = 1
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: client ADDRESS MAC=PORT...")
	}
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, address string, hosts []string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	c := client.NewClient(p4v1.NewP4RuntimeClient(conn), 0, &p4v1.Uint128{Low: 1})

	// A switch takes writes from its primary controller alone.
	stop, primary := make(chan struct{}), make(chan bool)
	defer close(stop)
	failed := make(chan error, 1)
	go func() { failed <- c.Run(stop, primary, nil) }()
	select {
	case is := <-primary:
		if !is {
			return fmt.Errorf("%s: another controller is primary", address)
		}
	case err := <-failed:
		return fmt.Errorf("%s: %w", address, err)
	}

	program, err := os.ReadFile("examples/l2/l2.json")
	if err != nil {
		return err
	}
	info, err := p4info("examples/l2/l2.p4info.txtpb")
	if err != nil {
		return err
	}
	if _, err := c.SetFwdPipeFromBytes(ctx, program, info, 0); err != nil {
		return err
	}
	var ports []uint32
	for _, h := range hosts {
		mac, port, err := parse(h)
		if err != nil {
			return err
		}
		ports = append(ports, port)
		match := map[string]client.MatchInterface{"dst_addr": &client.ExactMatch{Value: mac}}
		action := c.NewTableActionDirect("L2Ingress.forward", [][]byte{{byte(port >> 8), byte(port)}})
		if err := c.InsertTableEntry(ctx, c.NewTableEntry(table, match, action, nil)); err != nil {
			return fmt.Errorf("%s: %w", h, err)
		}
	}
	slices.Sort(ports)
	if err := c.InsertMulticastGroup(ctx, group, ports); err != nil {
		return err
	}
	broadcast := map[string]client.MatchInterface{"dst_addr": &client.ExactMatch{Value: []byte{255, 255, 255, 255, 255, 255}}}
	flood := c.NewTableActionDirect("L2Ingress.flood", [][]byte{{0, group}})
	if err := c.InsertTableEntry(ctx, c.NewTableEntry(table, broadcast, flood, nil)); err != nil {
		return err
	}
	entries, err := c.ReadTableEntryWildcard(ctx, table)
	if err != nil {
		return err
	}
	fmt.Printf("%d entries, broadcasts to ports %v\n", len(entries), ports)
	return nil
}

// p4info reads a P4Info without the fields that are newer than the client's version of P4Runtime.
func p4info(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	info := &p4configv1.P4Info{}
	if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, info); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return prototext.Marshal(info)
}

// parse reads MAC=PORT.
func parse(text string) (net.HardwareAddr, uint32, error) {
	address, number, _ := strings.Cut(text, "=")
	mac, err := net.ParseMAC(address)
	if err != nil {
		return nil, 0, fmt.Errorf("%q: want MAC=PORT: %w", text, err)
	}
	port, err := strconv.ParseUint(number, 10, 9)
	if err != nil {
		return nil, 0, fmt.Errorf("%q: want MAC=PORT, a port from 0 to 511", text)
	}
	return mac, uint32(port), nil
}
