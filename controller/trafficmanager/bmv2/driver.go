// Package bmv2 sets the queues of BMv2's simple_switch and simple_switch_grpc through their
// Thrift service: P4Runtime has no messages for the rate and depth of a queue. Without a rate
// no queue of BMv2 ever builds.
//
// # What a queue gets
//
//	rate   the port's, in packets per second: rate / (8 · packet_size), rounded down
//	depth  the port's largest queue_limit in packets of 60 B, and 64 more
//
// BMv2 counts packets, whatever their length. A queue runs at the port's rate while its packets have packet_size,
// the length of a full frame from the Ethernet header on. Shorter packets leave the queue more slowly than the link
// could carry them. So acknowledgements queue up if they answer the data of two full links.
//
// BMv2 must not drop a packet by itself: that packet would never reach egress, where the program releases the bytes
// that it admitted (p4src/v1model/accounting.p4). The program enforces queue_limit and the policies of package
// headroom in bytes. So the depth is the number of shortest frames that the program admits, with room for packets
// that pass without admission.
//
// # What BMv2 cannot do
//
//   - A rate of the port: each priority queue is paced by itself, and a port whose queues are
//     all busy sends the sum. Priority decides which of the packets that are due goes first.
//   - Bytes, per packet or per queue.
//
// - Pausing a queue: a rate of 0 is no limit, and arriving PAUSE frames are ignored.
// - Reading a setting back. A Driver remembers what it set over a connection; when the service ends, the connection
// ends, and the Driver forgets it all. A setting that somebody else changes appears in no plan, and is overwritten
// at the next comparison (controller.resync_interval).
//   - Refusing a value: BMv2 answers every call with 0.
//
// - Setting the number of priority queues: BMv2 takes it at start, from --priority-queues.
package bmv2

import (
	"context"
	"errors"
	"fmt"
	"sync"

	pb "github.com/headgate/headgate/api/headgate/v1"
	"github.com/headgate/headgate/controller/trafficmanager"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/units"
)

const (
	// shortest is the shortest frame of Ethernet, without its checksum.
	shortest = 60 * units.Byte
	// spare is the room of a queue for packets that pass without admission: polls, probes, PAUSE frames. BMv2's
	// queues hold 64 packets by default.
	spare = 64
)

// Driver sets the queues of one switch.
type Driver struct {
	address string

	mu      sync.Mutex
	client  *Client           // nil until the first use, and when the last use failed
	written map[setting]int64 // values set over client
}

var _ trafficmanager.Driver = (*Driver)(nil)

// New returns a Driver for the Thrift service at host:port.
func New(address string) *Driver { return &Driver{address: address} }

// setting is a value that the service can set.
type setting struct {
	method string
	port   uint32
}

// setTo is a setting with its desired value.
type setTo struct {
	setting
	value int64
}

// text is a value with its unit.
func (s setting) text(value int64) string {
	unit := "packets/s"
	if s.method == setDepth {
		unit = "packets"
	}
	return fmt.Sprintf("%d %s", value, unit)
}

// settings returns the desired settings of a switch. A port's depth precedes its rate, because the rate makes
// queues build up.
func settings(c *trafficmanager.Config) ([]setTo, error) {
	if c.MMU != nil || len(c.Filters) > 0 {
		return nil, &units.FieldError{Field: "policy", Value: "set", Allowed: "no policy and no filters: BMv2's are in the program"}
	}
	depths := map[uint32]units.Bytes{}
	limited := map[uint32]int{} // queues with a limit
	for _, l := range c.QueueLimits {
		if l.Bytes > 0 {
			depths[l.Port] = max(depths[l.Port], l.Bytes)
			limited[l.Port]++
		}
	}
	var list []setTo
	for i, p := range c.Ports {
		rate := int64(p.Rate / units.Rate(8*c.PacketSize))
		if rate < 1 {
			return nil, &units.FieldError{Field: fmt.Sprintf("ports[%d].rate", i), Value: p.Rate.String(), Allowed: fmt.Sprintf("a packet of %v a second or more", c.PacketSize)}
		}
		bytes := depths[p.Number]
		if limited[p.Number] < c.Queues {
			bytes = ids.Unlimited
		}
		depth := int64((bytes+shortest-1)/shortest) + spare
		list = append(list, setTo{setting{setDepth, p.Number}, depth}, setTo{setting{setRate, p.Number}, rate})
	}
	return list, nil
}

// Check implements trafficmanager.Driver.
func (d *Driver) Check(want *trafficmanager.Config) error {
	_, err := settings(want)
	return err
}

// Plan implements trafficmanager.Driver. Only values set over the present connection are known.
func (d *Driver) Plan(ctx context.Context, want *trafficmanager.Config) ([]*pb.Change, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list, err := settings(want)
	if err != nil {
		return nil, err
	}
	err = d.connect(ctx)
	var changes []*pb.Change
	for _, s := range list {
		c := &pb.Change{Kind: pb.Change_KIND_MODIFY, Table: s.method, Key: fmt.Sprintf("port %d", s.port), New: s.text(s.value)}
		had, known := d.written[s.setting]
		if known {
			c.Old = s.text(had)
		}
		if c.Old != c.New {
			changes = append(changes, c)
		}
	}
	return changes, err
}

// Apply implements trafficmanager.Driver. If from is not nil, it sets only values that differ from those set over
// the present connection; otherwise it sets all. It returns the number of values that were not known to be right.
func (d *Driver) Apply(ctx context.Context, from, want *trafficmanager.Config) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	list, err := settings(want)
	if err != nil {
		return 0, err
	}
	if err := d.connect(ctx); err != nil {
		return 0, err
	}
	written := 0
	for _, s := range list {
		had, known := d.written[s.setting]
		known = known && had == s.value
		if known && from != nil {
			continue
		}
		if err := d.set(ctx, s); err != nil {
			return written, err
		}
		d.written[s.setting] = s.value
		if !known {
			written++
		}
	}
	return written, nil
}

func (d *Driver) set(ctx context.Context, s setTo) error {
	if s.method == setDepth {
		return d.client.SetQueueDepth(ctx, s.port, int32(s.value))
	}
	return d.client.SetQueueRate(ctx, s.port, s.value)
}

// connect makes sure that the switch answers over d.client. After a new connection no value is known.
func (d *Driver) connect(ctx context.Context) error {
	if d.client != nil {
		err := d.client.Ping(ctx)
		if err == nil {
			return nil
		}
		d.client, d.written = nil, nil
		if ctx.Err() != nil {
			return err // ctx is over, so a new connection would fail too
		}
	}
	c, err := Dial(ctx, d.address)
	if err != nil {
		return err
	}
	if err := c.Ping(ctx); err != nil {
		return err
	}
	d.client, d.written = c, map[setting]int64{}
	return nil
}

// Pauses implements trafficmanager.Driver.
func (*Driver) Pauses(context.Context, []uint32) (map[uint32]trafficmanager.PauseCounters, error) {
	return nil, fmt.Errorf("BMv2 has no MACs that count pauses: %w", errors.ErrUnsupported)
}

// Close implements trafficmanager.Driver.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client == nil {
		return nil
	}
	c := d.client
	d.client, d.written = nil, nil
	return c.Close()
}
