package cnpgen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/units"
)

// Settings are the settings of one watched queue, for a loop beside the switch. They are JSON in the
// P4Runtime metadata of the queue's entry. So a controller can start such a loop, change it and stop
// it with table entries alone. All fields but Params must be the same for all queues of a switch.
type Settings struct {
	Params   Params        // in the switch's own time
	MaxFlows int           // of the whole switch, 1 or more
	DSCP     uint8         // of the notifications, 0 to 63
	Ageing   time.Duration // how long an entry outlives its flow's last packet, above 0
}

// settingsJSON is the encoding: numbers in picoseconds, bytes and nanoseconds, so that it does not
// depend on how the types print.
type settingsJSON struct {
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
	b, err := json.Marshal(settingsJSON{
		int64(p.Interval), p.Beta1, p.Beta2, int64(p.Threshold), int64(p.Burst), p.FilterWeight, int64(p.CNPGap),
		p.Carry, p.Scale, s.MaxFlows, s.DSCP, s.Ageing.Nanoseconds(),
	})
	if err != nil { // only for a weight that is not a number, which NewPort refuses
		return nil
	}
	return b
}

// ParseSettings reads metadata. ok is false when it is not a JSON object, and so no settings.
func ParseSettings(metadata []byte) (s Settings, ok bool, err error) {
	if len(metadata) == 0 || metadata[0] != '{' {
		return Settings{}, false, nil
	}
	var w settingsJSON
	d := json.NewDecoder(bytes.NewReader(metadata))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil {
		return Settings{}, true, fmt.Errorf("settings: %w", err)
	}
	s = Settings{
		Params: Params{
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
