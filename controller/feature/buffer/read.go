package buffer

import (
	"time"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/internal/yamlnode"
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/tables/phi"
	"github.com/headgate/headgate/units"
)

// read is config.Section.Read.
func read(m *yamlnode.Map, c *config.Config) any {
	b := defaults(c.Scale)
	b.read(m)
	b.AllowCycles, b.AllowClassChange = m.Bool("allow_cycles", false), m.Bool("allow_class_change", false)
	return b
}

// readSwitch is config.Section.ReadSwitch.
func readSwitch(m *yamlnode.Map, c *config.Config) any {
	b := config.Of[Config](c, "buffer")
	b.read(m)
	return b
}

// Of returns the section of a switch.
func Of(s *config.Switch) Config { return config.Of[Config](s, "buffer") }

// defaults is no policy, with the parameters that one has by default.
func defaults(scale int64) Config {
	least := units.FromDuration(MinPeriod)
	return Config{
		Policy: Off, MTU: 1500, Share: 800, PauseQuanta: 65535, HeadroomMethod: headroom.Standard, CellSize: 1, SmallPackets: 100,
		Window: 10 * units.Millisecond, Precision: log2.Default(), Entries: phi.DefaultEntries,
		K: 5, Period: max(100*units.Microsecond, (least+units.Time(scale)-1)/units.Time(scale)),
		Storm: max(1, 100_000/uint64(scale)), StormWindow: time.Second,
		Stuck: max(200*time.Millisecond, 2*time.Millisecond*time.Duration(scale)),
	}
}

// read reads a section over what b is.
func (b *Config) read(m *yamlnode.Map) {
	policies := []string{string(Off)}
	for _, k := range headroom.Kinds() {
		policies = append(policies, string(k))
	}
	b.Policy = headroom.Kind(m.OneOf("policy", string(b.Policy), policies...))
	b.Size = m.Bytes("size", b.Size, 1, maxBuffer)
	b.Lossless = readLossless(m, "lossless", b.Lossless)
	b.MTU = m.Bytes("mtu", b.MTU, 64, 65535)
	b.Private = m.Bytes("private", b.Private, 0, maxBuffer)
	b.LossyPrivate = m.Bytes("lossy_private", b.LossyPrivate, 0, maxBuffer)
	b.Headroom = m.Bytes("headroom", b.Headroom, 0, maxBuffer)
	b.HeadroomMethod = headroom.Method(m.OneOf("headroom_method", string(b.HeadroomMethod), string(headroom.Standard), string(headroom.ByEq1)))
	b.PeerResponse = m.Int("peer_response", b.PeerResponse, 0, 65535)
	b.CellSize = m.Bytes("cell_size", b.CellSize, 1, 64*units.KiB)
	b.SmallPackets = m.Int("small_packets", b.SmallPackets, 0, 100)
	profiles := yamlnode.List(m, "headroom_profiles", readProfile)
	if m.Has("headroom_profiles") {
		b.HeadroomProfiles = profiles
	}
	b.Alpha = yamlnode.Scalar(m, "alpha", b.Alpha, `a power of two from 1/1024 to 64, such as "1/16" or 2: the pipeline multiplies by shifting`, readAlpha)
	b.Threshold = m.Bytes("threshold", b.Threshold, 1, maxBuffer)
	b.ResumeGap = m.Bytes("resume_gap", b.ResumeGap, 0, maxBuffer)
	b.PortResumeGap = m.Bytes("port_resume_gap", b.PortResumeGap, 0, maxBuffer)
	b.PortQueues = m.Int("port_queues", b.PortQueues, 1, headroom.Classes)
	b.PauseQuanta = uint16(m.Int("pause_quanta", int(b.PauseQuanta), 1, 65535))
	b.Share = m.Int("share", b.Share, 1, 1000)
	m.Sub("dsh", b.readDSH)
	m.Sub("spfc", func(m *yamlnode.Map) {
		m.Computed("period")
		b.K = m.Int("k", b.K, 2, 64)
		b.Period = m.Time("period", b.Period, units.Nanosecond, units.Second)
	})
	m.Sub("watchdog", func(m *yamlnode.Map) {
		m.Computed("storm", "stuck")
		b.Storm = uint64(m.Int("storm", int(b.Storm), 1, maxStorm))
		b.StormWindow = m.Wall("window", b.StormWindow, 100*time.Millisecond, time.Hour)
		b.Stuck = m.Wall("stuck", b.Stuck, 10*time.Millisecond, 24*time.Hour)
	})
}

func (b *Config) readDSH(m *yamlnode.Map) {
	bits := func(key string, def uint, low, high int) uint { return uint(m.Int(key, int(def), low, high)) }
	p := &b.Precision
	p.Log = bits("log_bits", p.Log, log2.MinBits, log2.MaxBits)
	p.Exp = bits("exp_bits", p.Exp, log2.MinBits, log2.MaxBits)
	p.Frac = bits("frac_bits", p.Frac, log2.MinFrac, log2.MaxFrac)
	if p.Exp > p.Frac {
		m.Fault("", "has exp_bits %d above frac_bits %d, want at most as many", p.Exp, p.Frac)
	}
	b.Entries = m.Int("entries", b.Entries, phi.MinEntries, phi.MaxEntries)
	b.Window = m.Time("window", b.Window, units.Nanosecond, units.Second)
}

func readProfile(m *yamlnode.Map) HeadroomProfile {
	m.Need("rate", "headroom")
	return HeadroomProfile{
		Rate: m.Rate("rate", 0, 1, config.MaxRate), Delay: m.Time("delay", 0, 0, units.Second), Headroom: m.Bytes("headroom", 0, 1, maxBuffer),
	}
}

func readAlpha(s string) (headroom.Alpha, error) {
	a, err := headroom.ParseAlpha(s)
	if err != nil {
		return 0, yamlnode.ErrNotAllowed
	}
	return a, nil
}

// readLossless reads a list of classes as a bit for each.
func readLossless(m *yamlnode.Map, key string, def uint8) uint8 {
	classes := m.Ints(key, 0, headroom.Classes-1)
	if !m.Has(key) {
		return def
	}
	var mask uint8
	for _, class := range classes {
		if mask>>class&1 != 0 {
			m.Fault(key, "has %d twice", class)
		}
		mask |= 1 << class
	}
	return mask
}
