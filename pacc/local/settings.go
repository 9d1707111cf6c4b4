// Package local runs PACC's loop inside an embedded switch: counters and queues are read
// from the switch's memory and CNPs go straight into its pipeline, so that a period can be
// as short as the machine's timers allow.
//
// An Agent sleeps until the pipeline's table of watched queues has entries that carry
// Settings in their P4Runtime metadata. That is how a controller switches it on, changes
// it and switches it off, with nothing but table entries.
package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/cnpgen"
	"github.com/headgate/headgate/units"
)

// Settings of one watched queue; they travel as JSON in the metadata of its entry. All but
// Params must be the same for all queues of a switch.
type Settings struct {
	Params   cnpgen.Params // in the switch's own time
	MaxFlows int           // of the whole switch, 1 or more
	DSCP     uint8         // of the notifications, 0 to 63
	Ageing   time.Duration // how long an entry outlives its flow's last packet, above 0
}

// wire is what travels: numbers in picoseconds, bytes and nanoseconds, so that it does not
// depend on how the types print.
type wire struct {
	IntervalPS   int64   `json:"interval_ps"`
	Beta1        float64 `json:"beta1"`
	Beta2        float64 `json:"beta2"`
	Threshold    int64   `json:"threshold"`
	Burst        int64   `json:"burst"`
	FilterWeight float64 `json:"filter_weight"`
	GapPS        int64   `json:"cnp_gap_ps"`
	Carry        bool    `json:"carry,omitempty"`
	Scale        float64 `json:"scale,omitempty"`
	MaxFlows     int     `json:"max_flows"`
	DSCP         uint8   `json:"cnp_dscp"`
	AgeingNS     int64   `json:"ageing_ns"`
}

// Marshal returns the metadata.
func (s Settings) Marshal() []byte {
	p := s.Params
	b, err := json.Marshal(wire{
		int64(p.Interval), p.Beta1, p.Beta2, int64(p.Threshold), int64(p.Burst), p.FilterWeight, int64(p.CNPGap),
		p.Carry, p.Scale, s.MaxFlows, s.DSCP, s.Ageing.Nanoseconds(),
	})
	if err != nil { // only a weight that is no number cannot be: cnpgen refuses those
		return nil
	}
	return b
}

// Parse reads metadata. What is not a JSON object is nobody's settings: ok is false.
func Parse(metadata []byte) (s Settings, ok bool, err error) {
	if len(metadata) == 0 || metadata[0] != '{' {
		return Settings{}, false, nil
	}
	var w wire
	d := json.NewDecoder(bytes.NewReader(metadata))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return Settings{}, true, fmt.Errorf("settings: %w", err)
	}
	s = Settings{
		Params: cnpgen.Params{
			Interval: units.Time(w.IntervalPS), Beta1: w.Beta1, Beta2: w.Beta2, Threshold: units.Bytes(w.Threshold),
			Burst: units.Bytes(w.Burst), FilterWeight: w.FilterWeight, CNPGap: units.Time(w.GapPS), MaxFlows: w.MaxFlows, Carry: w.Carry, Scale: w.Scale,
		},
		MaxFlows: w.MaxFlows, DSCP: w.DSCP, Ageing: time.Duration(w.AgeingNS),
	}
	switch {
	case s.MaxFlows < 1:
		return s, true, fmt.Errorf("settings: MaxFlows is %d, want 1 or more", s.MaxFlows)
	case s.DSCP > 63:
		return s, true, fmt.Errorf("settings: DSCP is %d, want 0 to 63", s.DSCP)
	case s.Ageing <= 0:
		return s, true, errors.New("settings: Ageing is not above 0")
	}
	return s, true, nil
}
