package p4

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	p4v1 "github.com/p4lang/p4runtime/go/p4/v1"

	"github.com/headgate/headgate/cli/command"
	"github.com/headgate/headgate/controller/p4runtime/pipeline"
	"github.com/headgate/headgate/controller/p4runtime/session"
)

type event struct {
	Time   time.Time       `json:"time"`
	Event  string          `json:"event"`            // packet-in, digest, idle-timeout, primary, backup or disconnected
	Name   string          `json:"name,omitempty"`   // name of the digest
	Fields pipeline.Fields `json:"fields,omitempty"` // fields of the packet_in header, or of one message of the digest
	Packet string          `json:"packet,omitempty"` // hexadecimal
	Entry  *pipeline.Named `json:"entry,omitempty"`  // an entry that no packet has hit within its idle timeout
	Reason string          `json:"reason,omitempty"`
}

// String returns the event as one line.
func (e event) String() string {
	parts := []string{e.Time.Local().Format("15:04:05.000"), e.Event}
	for _, part := range []string{e.Name, e.Fields.String(), e.Reason} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if e.Packet != "" {
		parts = append(parts, fmt.Sprintf("%d bytes %s", len(e.Packet)/2, e.Packet))
	}
	if e.Entry != nil {
		parts = append(parts, e.Entry.String())
	}
	return strings.Join(parts, "  ")
}

// watch prints the switch's messages until the context ends. It connects again when the switch is gone.
func watch(ctx context.Context, t *target, _ []string) error {
	p, err := t.pipeline(ctx)
	if err != nil {
		return err
	}
	events, stop := make(chan event), make(chan struct{})
	defer close(stop)
	send := func(e event) {
		e.Time = time.Now()
		select {
		case events <- e:
		case <-stop:
		}
	}
	h := &handler{roles: make(chan roleChange, 16), message: func(m *p4v1.StreamMessageResponse) {
		switch x := m.GetUpdate().(type) {
		case *p4v1.StreamMessageResponse_Packet:
			send(event{Event: "packet-in", Fields: p.PacketFields(x.Packet), Packet: hex.EncodeToString(x.Packet.GetPayload())})
		case *p4v1.StreamMessageResponse_Digest:
			for _, d := range x.Digest.GetData() {
				send(event{Event: "digest", Name: p.DigestName(x.Digest.GetDigestId()), Fields: p.DigestFields(x.Digest.GetDigestId(), d)})
			}
		case *p4v1.StreamMessageResponse_IdleTimeoutNotification:
			for _, e := range x.IdleTimeoutNotification.GetTableEntry() {
				n := p.Named(&p4v1.Entity{Entity: &p4v1.Entity_TableEntry{TableEntry: e}})
				send(event{Event: "idle-timeout", Entry: &n})
			}
		}
	}}
	ctx, cancel := context.WithCancel(ctx)
	_, end := t.session(ctx, h)
	defer end()
	defer cancel()
	last := ""
	for {
		var e event
		select {
		case <-ctx.Done():
			return nil
		case e = <-events:
		case r := <-h.roles:
			e = event{Time: time.Now(), Event: r.role.String()}
			if r.why != nil {
				e.Reason = r.why.Error()
			}
			if errors.Is(r.why, session.ErrStopped) || last == e.Event+e.Reason {
				continue // each attempt to connect says the same
			}
			last = e.Event + e.Reason
		}
		if err := t.line(e); err != nil {
			return err
		}
	}
}

func (t *target) line(e event) error {
	if t.Format != command.Table {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		return t.Line(text)
	}
	_, err := fmt.Fprintln(t.Out, command.Clean(e.String()))
	return err
}
