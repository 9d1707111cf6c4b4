package device

import (
	"slices"
	"sync"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
)

// The lanes of an inbox, the most urgent first: lane n has the messages of feature.Kinds 1 << n. The first two decide
// whether links and switches are up.
const (
	laneProbe  = iota // LLDP frames
	laneReport        // answers to polls
	laneIdle          // entries that have timed out
	laneBulk          // digests, and all other packets
	lanes
)

// laneEntries bounds the entries in a lane: packets, entries that have timed out, members of digest lists.
var laneEntries = [lanes]int{1024, 4096, 1 << 14, 1 << 14}

// pieceEntries is how many entries of a digest list or an idle notification a loop gets at once: more urgent messages
// pass between two pieces.
const pieceEntries = 256

// delivery is a message for the loops of a switch, with the time of its arrival. Loops share it.
type delivery struct {
	feature.Message
	at      time.Time
	entries int
}

// inbox holds the messages that wait for one loop. Adding never blocks. It is safe for concurrent use.
type inbox struct {
	mu      sync.Mutex
	lanes   [lanes][]*delivery
	entries [lanes]int
	wake    chan struct{} // holds one token when something was added
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

// offer adds a message. It returns false, and drops the message, when the lane is full.
func (b *inbox) offer(lane int, m *delivery) bool {
	b.mu.Lock()
	ok := b.entries[lane]+m.entries <= laneEntries[lane]
	if ok {
		b.lanes[lane] = append(b.lanes[lane], m)
		b.entries[lane] += m.entries
	}
	b.mu.Unlock()
	if ok {
		signal(b.wake)
	}
	return ok
}

// take removes the oldest message from the most urgent lane that is not empty. It returns nil if no message waits.
func (b *inbox) take() *delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, lane := range b.lanes {
		if len(lane) == 0 {
			continue
		}
		m := lane[0]
		lane[0] = nil
		b.lanes[i] = lane[1:]
		b.entries[i] -= m.entries
		return m
	}
	return nil
}

// sort turns a message of the stream into deliveries and the lane that they belong to. There is none for a
// report that answers another controller's poll.
func (d *Device) sort(m *p4v1.StreamMessageResponse, at time.Time) (lane int, list []*delivery) {
	switch {
	case m.GetPacket() != nil:
		in, err := d.opts.Pipeline.PacketIn(m.GetPacket())
		if err != nil {
			d.log.Debug("packet-in", "err", err)
			return laneBulk, nil
		}
		msg := feature.Message{Packet: &in}
		if report, ok := d.poller.Report(&in); ok {
			if report == nil {
				return laneReport, nil
			}
			lane, msg = laneReport, feature.Message{Report: report}
		} else if lane = laneBulk; in.Fields["reason"] == feature.ProbeReason {
			lane = laneProbe
		}
		return lane, []*delivery{{msg, at, 1}}
	case m.GetIdleTimeoutNotification() != nil:
		n := m.GetIdleTimeoutNotification()
		for piece := range slices.Chunk(n.GetTableEntry(), pieceEntries) {
			list = append(list, &delivery{feature.Message{Idle: &p4v1.IdleTimeoutNotification{TableEntry: piece, Timestamp: n.GetTimestamp()}}, at, len(piece)})
		}
		return laneIdle, list
	case m.GetDigest() != nil:
		l := m.GetDigest()
		for piece := range slices.Chunk(l.GetData(), pieceEntries) {
			list = append(list, &delivery{feature.Message{Digest: &p4v1.DigestList{
				DigestId: l.GetDigestId(), ListId: l.GetListId(), Data: piece, Timestamp: l.GetTimestamp(),
			}}, at, len(piece)})
		}
	}
	return laneBulk, list
}
