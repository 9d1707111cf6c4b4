// Package poll sends the poll packets of a switch. P4Runtime on BMv2 cannot read
// registers: a poll goes out to a port instead, whose egress writes the port's registers
// into it and sends a copy to the controller (package pollreport).
package poll

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/controller/feature"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/internal/p4rtmsg"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/p4src/pollreport"
)

// Poller sends all polls of one switch. It is safe for concurrent use.
type Poller struct {
	pipe  *pipeline.Pipeline
	send  func(*p4v1.PacketOut) error
	began time.Time
	mark  []byte // begins the payload of this poller's polls; the time of sending follows

	mu         sync.Mutex // guards the fields below
	last       map[uint32]time.Time
	unanswered int       // polls since the last answer, or since Reset
	looks      int       // calls of Silent since the first of them was sent, counted at least a step apart
	looked     time.Time // when looks was last set to 0 or raised
}

// New returns a poller for a switch that runs a pipeline.
func New(pipe *pipeline.Pipeline, send func(*p4v1.PacketOut) error) *Poller {
	now := time.Now()
	return &Poller{
		pipe: pipe, send: send, began: now, last: map[uint32]time.Time{},
		mark: binary.BigEndian.AppendUint64([]byte("headgate"), uint64(now.UnixNano())),
	}
}

// Poll implements feature.Packets; now is when the caller's tick began.
func (p *Poller) Poll(now time.Time, quiet time.Duration, ports ...uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs error
	for _, port := range ports {
		if last, ok := p.last[port]; ok && now.Sub(last) < quiet {
			continue
		}
		out, err := p.pipe.PacketOut(binary.BigEndian.AppendUint64(bytes.Clone(p.mark), uint64(now.Sub(p.began))),
			pipeline.Arg{Name: "egress_port", Value: p4rtmsg.Uint(uint64(port))},
			pipeline.Arg{Name: "queue", Value: p4rtmsg.Uint(ids.HighestQueue)},
			pipeline.Arg{Name: "mode", Value: p4rtmsg.Uint(ids.PacketOutPoll)},
		)
		if err == nil {
			err = p.send(out)
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("poll of port %d: %w", port, err))
			continue
		}
		p.last[port] = now
		if p.unanswered++; p.unanswered == 1 {
			p.looks, p.looked = 0, now
		}
	}
	return errs
}

// fewPolls is how many polls may go unanswered by chance.
const fewPolls = 10

// Patience is the number of steps for which polls may go unanswered.
const Patience = 3

// Silent reports whether at least fewPolls polls in a row have had no answer, for Patience steps or longer. A call adds
// at most one step. So a caller that stood still, and has read no answers meanwhile, adds only one.
func (p *Poller) Silent(now time.Time, step time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unanswered > 0 && now.Sub(p.looked) >= step {
		p.looks++
		p.looked = now
	}
	return p.unanswered >= fewPolls && p.looks >= Patience
}

// Reset forgets which polls were not answered: another session begins.
func (p *Poller) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unanswered = 0
}

// Report returns the answer to a poll; nil when the packet is no report, is broken or answers the poll of another
// controller. ok is false when the packet is no report at all.
func (p *Poller) Report(in *pipeline.PacketIn) (r *feature.Report, ok bool) {
	if in.Fields["reason"] != ids.PacketInPoll {
		return nil, false
	}
	report, rest, err := pollreport.Parse(in.Payload)
	if err != nil || len(rest) < len(p.mark)+8 || !bytes.HasPrefix(rest, p.mark) {
		return nil, true
	}
	p.Reset()
	sent := time.Duration(binary.BigEndian.Uint64(rest[len(p.mark):]))
	return &feature.Report{Report: report, Asked: p.began.Add(sent)}, true
}
