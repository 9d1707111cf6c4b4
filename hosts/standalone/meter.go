package standalone

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/headgate/headgate/hosts/agent"
	"github.com/headgate/headgate/packet"
	"github.com/headgate/headgate/units"
)

// Summary is the report that a host process writes at the end.
type Summary struct {
	Host     string        `json:"host"`
	IP       string        `json:"ip"`
	Seconds  float64       `json:"seconds"` // how long it ran
	Flows    []FlowSummary `json:"flows"`
	Received Received      `json:"received"`
	PFC      PFC           `json:"pfc"`
}

// PFC is the effect of priority-based flow control on the host.
type PFC struct {
	Frames       uint64                     `json:"frames"`
	Ignored      uint64                     `json:"ignored"` // MAC control frames that were malformed or no PFC
	Pauses       [packet.PFCClasses]uint64  `json:"pauses"`  // number of pauses by class
	PausedMicros [packet.PFCClasses]float64 `json:"paused_us"`
}

// FlowSummary is one flow that the host sent.
type FlowSummary struct {
	Src         string  `json:"src"`
	Dst         string  `json:"dst"`
	SrcPort     uint16  `json:"src_port"`
	DstPort     uint16  `json:"dst_port"`
	App         string  `json:"app,omitempty"`
	Weight      float64 `json:"weight"`       // weight at the end
	GoodputBPS  float64 `json:"goodput_bps"`  // payload acknowledged after the warm-up, bits per second
	MeasuredFor float64 `json:"measured_for"` // seconds
	AckedBytes  int64   `json:"acked_bytes"`
	RTTMicros   float64 `json:"rtt_us"`    // smoothed, at the end
	MaxQDMicros float64 `json:"max_qd_us"` // last echo
	Sent        uint64  `json:"sent_packets"`
	Retransmits uint64  `json:"retransmits"`
	Timeouts    uint64  `json:"timeouts"`
	CNPs        uint64  `json:"cnps"`               // congestion notifications it was given
	Priority    int     `json:"priority,omitempty"` // virtual priority
	Finished    bool    `json:"finished"`
}

// Received counts packets from other hosts.
type Received struct {
	Packets    uint64  `json:"packets"`
	Bytes      int64   `json:"delivered_bytes"`
	GoodputBPS float64 `json:"goodput_bps"` // payload delivered over the whole run
	Malformed  uint64  `json:"malformed"`
	NotOurs    uint64  `json:"not_ours"`
	Unknown    uint64  `json:"unknown"`
	CNPsSent   uint64  `json:"cnps_sent"`
}

// meter turns reports into rates. The goroutine that watches owns it.
type meter struct {
	warmUp      units.Time
	start       units.Time
	prev, at    units.Time
	before, now []agent.FlowReport
	marks       map[agent.FlowKey]mark
	prevStats   agent.Stats
	stats       agent.Stats
	seen        bool
	crowded     map[agent.FlowKey]int // reports in a row in which the flow's queue was beyond p + k
}

// crowdedReports in a row say that a queue stays beyond p + k; one may meet a flow that joins.
const crowdedReports = 10

// mark is where a flow stood when its warm-up was over.
type mark struct {
	at    units.Time
	acked units.Bytes
}

func newMeter(warmUp units.Time) *meter {
	return &meter{warmUp: warmUp, marks: map[agent.FlowKey]mark{}, crowded: map[agent.FlowKey]int{}}
}

func (m *meter) add(now units.Time, flows []agent.FlowReport, stats agent.Stats) {
	if !m.seen {
		m.seen, m.start, m.at, m.prev = true, now, now, now
	}
	m.prev, m.at = m.at, now
	m.before, m.now = m.now, flows
	m.prevStats, m.stats = m.stats, stats
	for _, f := range flows {
		if _, ok := m.marks[f.Key]; !ok && now-f.Started >= m.warmUp {
			m.marks[f.Key] = mark{now, f.Acked}
		}
	}
}

// warn logs once per flow that its queue stays beyond p + k: weights may then have little effect, and all packets
// wait longer than the parameters intend.
func (m *meter) warn(o *Options, log *slog.Logger) {
	for _, f := range m.now {
		switch n := m.crowded[f.Key]; {
		case n > crowdedReports: // the crowding has been reported
		case !f.Crowded || f.Finished != 0:
			m.crowded[f.Key] = 0
		default:
			if m.crowded[f.Key]++; n == crowdedReports {
				log.Warn("the queueing delay stays beyond p + k: beta is above the rate per weight that this flow gets, set it lower in the whole fabric",
					"flow", f.Key, "maxqd", f.MaxQD, "p+k", o.Soze.P+o.Soze.K, "beta", o.Soze.Beta,
					"rate_per_weight", units.Rate(float64(units.RateOf(f.Acked-ackedOf(m.before, f.Key), m.at-m.prev))/f.Weight))
			}
		}
	}
}

// print writes one line: time, and the rate, weight, round trip and maxQD of each flow.
func (m *meter) print(w io.Writer) {
	fmt.Fprintf(w, "%8.1fs", (m.at - m.start).Seconds())
	for _, f := range m.now {
		rate := units.RateOf(f.Acked-ackedOf(m.before, f.Key), m.at-m.prev)
		state := ""
		switch {
		case f.Finished != 0:
			state = " done"
		case f.Waiting:
			state = " waits for a channel"
		}
		fmt.Fprintf(w, "  %v w=%g %v rtt=%v maxqd=%v retx=%d", f.Key.Dst, f.Weight, rate, f.SRTT, f.MaxQD, f.Retransmits)
		if f.CNPs > 0 {
			fmt.Fprintf(w, " cnps=%d", f.CNPs)
		}
		fmt.Fprint(w, state)
	}
	if d := m.stats.BytesDelivered - m.prevStats.BytesDelivered; d > 0 || len(m.now) == 0 {
		fmt.Fprintf(w, "  received %v", units.RateOf(d, m.at-m.prev))
	}
	fmt.Fprintln(w)
}

func ackedOf(flows []agent.FlowReport, key agent.FlowKey) units.Bytes {
	for _, f := range flows {
		if f.Key == key {
			return f.Acked
		}
	}
	return 0
}

func (m *meter) summary(o *Options) Summary {
	s := Summary{
		Host: o.Name, IP: o.IP.String(), Seconds: (m.at - m.start).Seconds(), Flows: []FlowSummary{},
		Received: Received{
			Packets: m.stats.DataReceived, Bytes: int64(m.stats.BytesDelivered),
			Malformed: m.stats.Malformed, NotOurs: m.stats.NotOurs, Unknown: m.stats.Unknown, CNPsSent: m.stats.CNPsSent,
		},
		PFC: PFC{Frames: m.stats.PFC.Frames, Ignored: m.stats.PFC.Ignored},
	}
	if s.Seconds > 0 {
		s.Received.GoodputBPS = float64(m.stats.BytesDelivered) * 8 / s.Seconds
	}
	for class := range s.PFC.PausedMicros {
		s.PFC.Pauses[class] = m.stats.PFC.Classes[class].Count
		s.PFC.PausedMicros[class] = m.stats.PFC.Classes[class].Total(m.at).Micros()
	}
	for _, f := range m.now {
		from, ok := m.marks[f.Key]
		end := m.at
		if f.Finished != 0 {
			end = f.Finished
		}
		if !ok || from.at >= end { // too short to leave a warm-up out
			from = mark{at: f.Started}
		}
		span := (end - from.at).Seconds()
		fs := FlowSummary{
			Src: f.Key.Src.String(), Dst: f.Key.Dst.String(), SrcPort: f.Key.SrcPort, DstPort: f.Key.DstPort,
			App: f.App, Weight: f.Weight, MeasuredFor: span, AckedBytes: int64(f.Acked),
			RTTMicros: f.SRTT.Micros(), MaxQDMicros: f.MaxQD.Micros(),
			Sent: f.Sent, Retransmits: f.Retransmits, Timeouts: f.Timeouts, Finished: f.Finished != 0,
			CNPs: f.CNPs, Priority: f.Priority,
		}
		if span > 0 {
			fs.GoodputBPS = float64(f.Acked-from.acked) * 8 / span
		}
		s.Flows = append(s.Flows, fs)
	}
	return s
}
