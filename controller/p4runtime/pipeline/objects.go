package pipeline

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	p4configv1 "github.com/p4lang/p4runtime/go/p4/config/v1"
	"google.golang.org/protobuf/encoding/prototext"
)

// LoadChip reads the P4Info of a program for a chip, and the BF Runtime schema of the same
// program, which may be nil, for what P4Info cannot say. The device configuration is
// whatever the chip's P4Runtime server takes; when it is nil, the program cannot be pushed.
func LoadChip(p4info, schema, device []byte) (*Pipeline, error) {
	info := &p4configv1.P4Info{}
	// p4c writes fields that are newer than the Go module of P4Runtime in use.
	if err := (prototext.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(p4info, info); err != nil {
		return nil, fmt.Errorf("P4Info: %w", err)
	}
	p, err := New(info, device)
	if err != nil || schema == nil {
		return p, err
	}
	var doc struct {
		Tables []struct {
			Name string `json:"name"`
			Type string `json:"table_type"`
		} `json:"tables"`
	}
	if err := json.Unmarshal(schema, &doc); err != nil {
		return nil, fmt.Errorf("BF Runtime schema: %w", err)
	}
	p.filters = map[string]bool{}
	for _, t := range doc.Tables {
		if t.Type == "Lpf" {
			p.filters[strings.TrimPrefix(t.Name, "pipe.")] = true
		}
	}
	return p, nil
}

// Pushable reports whether the device configuration is known.
func (p *Pipeline) Pushable() bool { return len(p.device) > 0 }

// Objects names objects of a program, in full.
type Objects struct {
	Tables, Profiles, Counters, DirectCounters, Digests []string
	Headers                                             []string // of packets from and to the controller
	Filters                                             []string // low-pass filters, which only BF Runtime knows
}

// Lacks returns those of some objects that the program does not have, each with its kind, such as
// "table ingress.admission.queue_limit".
func (p *Pipeline) Lacks(o Objects) []string {
	var missing []string
	lacks := func(kind string, want []string, has func(name string) bool) {
		for _, name := range want {
			if !has(name) {
				missing = append(missing, kind+" "+name)
			}
		}
	}
	lacks("table", o.Tables, func(n string) bool { return p.tables.byName[n] != nil })
	lacks("action profile", o.Profiles, func(n string) bool { return p.profiles.byName[n] != nil })
	lacks("counter", o.Counters, func(n string) bool { return p.counters.byName[n] != nil })
	lacks("direct counter", o.DirectCounters, func(n string) bool {
		return slices.ContainsFunc(p.info.GetDirectCounters(), func(c *p4configv1.DirectCounter) bool { return c.GetPreamble().GetName() == n })
	})
	lacks("digest", o.Digests, func(n string) bool { return p.digests.byName[n] != nil })
	lacks("controller header", o.Headers, func(n string) bool { return p.headers.byName[n] != nil })
	lacks("low-pass filter", o.Filters, func(n string) bool { return p.filters[n] })
	return missing
}
