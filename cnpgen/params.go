package cnpgen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/headgate/headgate/units"
)

// The paper's values (§IV-C, §V-A), given for links of 25 Gb/s.
const (
	PaperRate         = 25 * units.Gbps
	PaperInterval     = 80 * units.Microsecond
	PaperBeta1        = 0.05 // per KB
	PaperBeta2        = 0.1  // per KB
	PaperGap          = 4 * units.Microsecond
	PaperFilterWeight = 0.9
	DefaultMaxFlows   = 16384
	maxTable          = 1 << 22
	bytesPerKB        = 1000.0
)

// HopDelay is d of Q_burst = B_th = d·C, the delay of one hop. It is the value that gives the
// paper's 4 KB at 25 Gb/s, and a little more than the paper's 1 µs of propagation.
const HopDelay = 1280 * units.Nanosecond

// Params are PACC's parameters of one egress port.
type Params struct {
	// Interval is T, the period of the controller; above 0.
	Interval units.Time
	// Beta1 weighs the queue's distance from the threshold, Beta2 its change in a period;
	// CNPs per KB of 1000 B. Beta1 is above 0, Beta2 0 or more.
	Beta1, Beta2 float64
	// Threshold is Q_th, the queue that the controller aims at and above which packets
	// count as congested; above Burst.
	Threshold units.Bytes
	// Burst is the queue length up to which the filtered queue causes no CNPs (Q_burst). It is also the number of
	// bytes per period below which a flow leaves the table (B_th). 0 or more.
	Burst units.Bytes
	// FilterWeight is w of the queue's moving average; above 0 and at most 1.
	FilterWeight float64
	// CNPGap is the least time between two CNPs to one flow; above 0 and at most Interval.
	CNPGap units.Time
	// MaxFlows bounds the flow table; 1 to 4 194 304.
	MaxFlows int
	// Carry keeps the fraction of a CNP that rounding down cuts from a flow's share, and adds it to the flow's
	// next share. Carry is not in the paper. Without it no flow gets a whole CNP while N_all is below the number
	// of flows n, so the queue settles where N_all = n, at Q_th + n/Beta1.
	Carry bool
	// Scale is the factor by which the fabric and its hosts run slower than real hardware.
	// Stretch sets it, and Stability stretches the hosts' timers by it. 0 means 1.
	Scale float64
}

// ParamsFor returns the paper's parameters for a line rate and a period, which is PaperInterval
// in the paper (§IV-C): Q_th = C·T/2, Q_burst = B_th = d·C. The weights are the paper's (0.05,
// 0.1) at 25 Gb/s and 80 µs, and scaled by Rescale otherwise.
func ParamsFor(rate units.Rate, interval units.Time) Params {
	p := Params{
		Interval: interval, Beta1: PaperBeta1, Beta2: PaperBeta2,
		Threshold: rate.BytesIn(interval / 2), Burst: rate.BytesIn(HopDelay),
		FilterWeight: PaperFilterWeight, CNPGap: min(PaperGap, interval), MaxFlows: DefaultMaxFlows,
	}
	return p.Rescale(PaperRate, PaperInterval, rate)
}

// Rescale returns p with weights that give the same phase margin at rate and p.Interval as Beta1 and Beta2 give at
// fromRate and fromInterval. With time in periods, the open loop G has the gain C·T·β1·α*/2 and a zero at
// β1/(β2+β1/2). So β·C·T must stay the same. β·C·T is the number of CNPs for a queue of a given fraction of Q_th.
func (p Params) Rescale(fromRate units.Rate, fromInterval units.Time, rate units.Rate) Params {
	f := float64(fromRate) * float64(fromInterval) / (float64(rate) * float64(p.Interval))
	p.Beta1 *= f
	p.Beta2 *= f
	return p
}

// Stretch returns p for a fabric that runs s times slower than the fabric of p. All times are s times longer.
// Amounts of data and weights are the same. For lines of rate r that emulate lines of rate r·s, use ParamsFor(r·s,
// T).Stretch(s).
func (p Params) Stretch(s float64) Params {
	p.Interval = stretch(p.Interval, s)
	p.CNPGap = stretch(p.CNPGap, s)
	p.Scale = p.scale() * s
	return p
}

func (p Params) scale() float64 {
	if p.Scale == 0 {
		return 1
	}
	return p.Scale
}

func stretch(t units.Time, s float64) units.Time { return units.Time(math.Round(float64(t) * s)) }

// MaxPerFlow returns the most CNPs that a flow gets in a period, T/gap.
func (p Params) MaxPerFlow() int { return int(p.Interval / p.CNPGap) }

// Validate reports the first parameter outside its range. It does not check whether the loop is
// stable: see Params.Stability.
func (p Params) Validate(rate units.Rate) error {
	if rate <= 0 {
		return fmt.Errorf("rate: %v, want more than 0", rate)
	}
	return p.validate()
}

func (p Params) validate() error {
	switch {
	case p.Interval <= 0:
		return fmt.Errorf("interval: %v, want more than 0", p.Interval)
	case !(p.Beta1 > 0) || math.IsInf(p.Beta1, 0):
		return fmt.Errorf("beta1: %v, want more than 0 CNPs per KB", p.Beta1)
	case !(p.Beta2 >= 0) || math.IsInf(p.Beta2, 0):
		return fmt.Errorf("beta2: %v, want 0 or more CNPs per KB", p.Beta2)
	case p.Threshold <= 0:
		return fmt.Errorf("threshold: %v, want more than 0", p.Threshold)
	case p.Burst < 0 || p.Burst >= p.Threshold:
		return fmt.Errorf("burst: %v, want 0 or more and less than the threshold, %v", p.Burst, p.Threshold)
	case !(p.FilterWeight > 0 && p.FilterWeight <= 1):
		return fmt.Errorf("filter weight: %v, want more than 0 and at most 1", p.FilterWeight)
	case p.CNPGap <= 0 || p.CNPGap > p.Interval:
		return fmt.Errorf("cnp gap: %v, want more than 0 and at most the interval, %v", p.CNPGap, p.Interval)
	case p.MaxFlows < 1 || p.MaxFlows > maxTable:
		return fmt.Errorf("max flows: %d, want 1 to %d", p.MaxFlows, maxTable)
	case !(p.Scale >= 0) || math.IsInf(p.Scale, 0):
		return fmt.Errorf("scale: %v, want more than 0, or 0 for 1", p.Scale)
	}
	return nil
}

// Settings are the settings of one watched queue, for a loop beside the switch. They are JSON in the
// P4Runtime metadata of the queue's entry. So a controller can start such a loop, change it and stop
// it with table entries alone. All fields but Params must be the same for all queues of a switch.
type Settings struct {
	Params   Params        // in the switch's own time
	MaxFlows int           // of the whole switch, 1 or more
	DSCP     uint8         // of the notifications, 0 to 63
	Ageing   time.Duration // how long an entry outlives its flow's last packet, above 0
}

// settingsJSON encodes times in picoseconds or nanoseconds and amounts in bytes, so that the encoding does not
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
