package headroom

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/units"
)

// smallSwitch draws a switch whose shared pool is little larger than its policy needs, so that
// traffic reaches all limits.
func smallSwitch(t *rapid.T, kinds ...Kind) Config {
	c := Config{
		Policy:        rapid.SampledFrom(kinds).Draw(t, "policy"),
		MTU:           rapid.SampledFrom([]units.Bytes{256, 1500, 9000}).Draw(t, "mtu"),
		Lossless:      rapid.SampledFrom([]uint8{0x01, 0x08, 0x03, 0x7F, 0xFF}).Draw(t, "lossless"),
		Alpha:         Alpha(rapid.IntRange(-4, 2).Draw(t, "alpha")),
		LocalResume:   rapid.Bool().Draw(t, "local"),
		ResumeGap:     units.Bytes(rapid.IntRange(0, 3000).Draw(t, "gap")),
		PortResumeGap: units.Bytes(rapid.IntRange(0, 500).Draw(t, "port gap")),
	}
	c.Private = c.MTU * units.Bytes(rapid.IntRange(0, 2).Draw(t, "private"))
	c.LossyPrivate = c.MTU * units.Bytes(rapid.IntRange(0, 1).Draw(t, "lossy private"))
	for range rapid.IntRange(1, 4).Draw(t, "ports") {
		c.Ports = append(c.Ports, Port{
			Rate:  rapid.SampledFrom([]units.Rate{10 * units.Gbps, 25 * units.Gbps, 100 * units.Gbps, 400 * units.Gbps}).Draw(t, "rate"),
			Delay: units.Time(rapid.Int64Range(0, int64(3*units.Microsecond)).Draw(t, "delay")),
		})
	}
	c.SPFC.Period = 24 * units.Microsecond
	c.DSH.Window = 50 * units.Microsecond
	return fit(c, units.Bytes(rapid.IntRange(0, 20).Draw(t, "spare"))*c.MTU)
}

// fit sets the buffer so that the shared pool is the thresholds' need plus spare.
func fit(c Config, spare units.Bytes) Config {
	c = c.WithDefaults()
	need := c.ResumeGap + c.MTU + 1
	if c.Policy.Insured() && !c.DSH.NoSharedHeadroom {
		var tau units.Bytes
		for i := range c.Ports {
			tau = max(tau, c.fullPhi(&c.Ports[i]))
		}
		need += tau
	}
	c.Threshold = need
	if a := c.Alpha; c.Policy != Static && a < 0 {
		need <<= uint(-a)
	}
	c.Buffer = MaxBuffer
	l := c.layout()
	c.Buffer = l.Private + l.Headroom + l.Insurance + need + spare
	return c
}

func TestNothingLosslessIsEverDropped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := smallSwitch(t, Static, DT, SIH, Adaptive, DSH, SPFC, DSHSPFC)
		w, err := newWorld(c, rapid.Uint64().Draw(t, "seed"), 150*c.MTU)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
		if s := w.m.Stats(); s.LosslessDrops != 0 {
			t.Fatalf("dropped %d lossless packets of %d B: %+v", s.LosslessDrops, s.LosslessDropBytes, s)
		}
	})
}

// blast is a switch of two ports with seven classes that quickly fill DSH's shared pool.
func blast(k Kind) Config {
	c := Config{Policy: k, Lossless: 0x7F, Alpha: 0, Method: ByEq1, AllowLoss: true,
		Ports: slices.Repeat([]Port{{Rate: 100 * units.Gbps, Delay: 2 * units.Microsecond}}, 2)}
	c.SPFC.Period = 24 * units.Microsecond
	return c
}

// drops runs many seeds and returns the number of seeds with lost lossless packets.
func drops(t *testing.T, c Config, ignore func(Signal) bool) (lossy int) {
	t.Helper()
	for seed := range uint64(40) {
		w, err := newWorld(c, seed, 400*1500)
		if err != nil {
			t.Fatal(err)
		}
		w.ignore = ignore
		if err := w.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if w.m.Stats().LosslessDrops > 0 {
			lossy++
		}
	}
	return lossy
}

// The property above is not vacuous: without any one of the safeguards, packets are lost.
func TestSafeguardsAreNeeded(t *testing.T) {
	short := func(c Config, phi units.Bytes) Config {
		c.Headroom = phi
		return fit(c, 0)
	}
	link := blast(SIH).Ports[0]
	eq1 := eq1Of(link.Rate, link.Delay, 1500)
	full := eq1 + 1500 + Classes*FrameWire
	uninsured := blast(DSH)
	uninsured.DSH.NoInsurance = true
	uninsured = fit(uninsured, 0)
	portLevel := func(s Signal) bool { return s.Classes == 0xFF && s.Pause }
	for name, tc := range map[string]struct {
		c      Config
		ignore func(Signal) bool
		drops  bool
	}{
		"DSH":                               {short(blast(DSH), full), nil, false},
		"DSH without insurance":             {uninsured, nil, true},
		"DSH without port-level PAUSE":      {short(blast(DSH), full), portLevel, true},
		"DSH with half an insurance":        {short(blast(DSH), full/2), nil, true},
		"DSH+SPFC":                          {short(blast(DSHSPFC), full), nil, false},
		"DSH+SPFC with half an insurance":   {short(blast(DSHSPFC), full/2), nil, true},
		"SIH":                               {short(blast(SIH), full), nil, false},
		"SIH with less than Eq. 1":          {short(blast(SIH), eq1-1500), nil, true},
		"oversubscribed":                    {short(blast(Oversubscribed), full), nil, true},
		"oversubscribed, but not really so": {short(blast(Oversubscribed), full*5/4+1), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if n := drops(t, tc.c, tc.ignore); (n > 0) != tc.drops {
				t.Errorf("%d of 40 runs dropped, want drops: %v", n, tc.drops)
			}
		})
	}
}

// Eq. 1 counts the bytes that arrive after the decision to pause. The packet that caused it comes
// on top. A queue that never drains and always has an MTU to send shows it.
func TestPausingPacketNeedsHeadroomToo(t *testing.T) {
	link := Port{Rate: 100 * units.Gbps, Delay: 2 * units.Microsecond}
	eq1 := eq1Of(link.Rate, link.Delay, 1500)
	for phi, want := range map[units.Bytes]bool{eq1: true, eq1 + 1500 + Classes*FrameWire: false} {
		c := fit(Config{Policy: SIH, Lossless: 1, Ports: []Port{link}, Headroom: phi, Method: ByEq1, AllowLoss: true}, 1500)
		m, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		// Packets arrive back to back until the last one that began before the PAUSE took effect.
		// The delays are two propagations, the processing, the peer's packet and our own.
		left := units.Time(-1)
		var now units.Time
		for {
			now += link.Rate.TxTime(1500)
			_, s := m.Arrive(now, 0, 0, 1500)
			if len(s) > 0 && left < 0 {
				left = now + link.Rate.TxTime(eq1)
			}
			if left >= 0 && now+link.Rate.TxTime(1500) > left {
				break
			}
		}
		if got := m.Stats().LosslessDrops > 0; got != want {
			t.Errorf("Φ = %d B: drops %v, want %v (%+v)", phi, got, want, m.Stats())
		}
	}
}

// TestFallingTauResumes: DSH has paused a queue for its fast growth. The packet that ends the
// growth resumes the queue, without a departure.
func TestFallingTauResumes(t *testing.T) {
	c := Config{Policy: DSH, MTU: 1500, Lossless: 0x01, Private: 3000, LossyPrivate: 1500}
	for _, rate := range []units.Rate{100 * units.Gbps, 10 * units.Gbps, 25 * units.Gbps, 10 * units.Gbps} {
		c.Ports = append(c.Ports, Port{Rate: rate})
	}
	c.SPFC.Period, c.DSH.Window = 24*units.Microsecond, 50*units.Microsecond
	w, err := newWorld(fit(c, c.MTU), 1, 150*c.MTU)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.run(); err != nil {
		t.Fatal(err)
	}
}
