package headroom

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/units"
)

func TestRefusedConfigurations(t *testing.T) {
	for name, tc := range map[string]struct {
		policy Kind
		spoil  func(*Config)
		want   string
	}{
		"unknown policy":    {"fifo", func(*Config) {}, `policy is "fifo": allowed is one of static, dt, sih, adaptive, oversubscribed, dsh, spfc, dsh+spfc`},
		"no lossless class": {SIH, func(c *Config) { c.Lossless = 0 }, "lossless is no class: allowed is at least one of the classes 0 to 7"},
		"no buffer":         {SIH, func(c *Config) { c.Buffer = 0 }, "buffer is 0 B: allowed is 1 to 1000000000000 B"},
		"tiny MTU":          {SIH, func(c *Config) { c.MTU = 63 }, "mtu is 63 B: allowed is 64 to 65535 B"},
		"no port":           {SIH, func(c *Config) { c.Ports = nil }, "ports is 0: allowed is 1 to 1024"},
		"port without rate": {SIH, func(c *Config) { c.Ports[3].Rate = 0 }, "ports[3].rate is 0bps: allowed is more than 0 to 10 000 Gbps"},
		"negative delay":    {SIH, func(c *Config) { c.Ports[3].Delay = -1 }, "ports[3].delay is -1ps: allowed is 0 to 1 s"},
		"negative private":  {SIH, func(c *Config) { c.Private = -1 }, "private is -1 B: allowed is 0 to 16000000 B"},
		"α too large":       {SIH, func(c *Config) { c.Alpha = 7 }, "alpha is 2^7: allowed is a power of two from 1/1024 to 64"},
		"nine queues":       {DSH, func(c *Config) { c.PortQueues = 9 }, "port_queues is 9: allowed is 1 to 8"},
		"share":             {Oversubscribed, func(c *Config) { c.Share = 1001 }, "share is 1001 ‰: allowed is 1 to 1000 ‰"},
		"window":            {DSH, func(c *Config) { c.DSH.Window = -1 }, "dsh.window is -1ps: allowed is more than 0; the paper has 10 ms"},
		"entries":           {DSH, func(c *Config) { c.DSH.Entries = 1 }, "dsh.entries is 1: allowed is 2 to 4096"},
		"precision": {DSH, func(c *Config) { c.DSH.Precision = log2.Precision{Log: 6, Exp: 6, Frac: 99} },
			"dsh.precision: frac is 99: allowed is 4 to 16 bits"},
		"no insurance": {DSH, func(c *Config) { c.DSH.NoInsurance = true },
			"dsh.no_insurance is true: allowed is false unless allow_loss is set; shared headroom is not guaranteed, so a full pool drops"},
		"k":      {SPFC, func(c *Config) { c.SPFC.K = 1 }, "spfc.k is 1: allowed is 2 to 64"},
		"packet": {SPFC, func(c *Config) { c.SPFC.Packet = -1 }, "spfc.packet is -1 B: allowed is 0 (count bytes) to 65535 B"},
		"period": {DSHSPFC, func(c *Config) { c.SPFC.Period = 15 * units.Microsecond },
			"spfc.period is 15us: allowed is 16us or more; TC ≥ 4 RTT, and ports[0] alone has an RTT of 2 · 2us"},
		"victim without states": {DT, func(c *Config) { c.Ports[2].Victim = true },
			"ports[2].victim is true: allowed is false with policy dt; only spfc and dsh+spfc have victims"},
		"slow port": {SPFC, func(c *Config) { c.Ports[0].Rate, c.SPFC.Packet = units.Mbps, 1500 },
			"spfc.period is 100us: allowed is a period in which one packet or byte can leave at C/K; ports[0]: 1Mbps · 100us / 5 is below one"},
		"SIH exceeds the buffer": {SIH, func(c *Config) { c.Buffer = 12 * units.MB },
			"buffer is 12000000 B: allowed is more than 14112000 B; private 672000 B (32 ports × (7 lossless queues × 3000 B + 1 others × 0 B)) + headroom 13440000 B (32 ports × 7 lossless queues × Φ, Φ of port 0 60000 B) = 14112000 B"},
		"DSH exceeds the buffer": {DSH, func(c *Config) { c.Buffer = 2_592_000 },
			"buffer is 2592000 B: allowed is more than 2592000 B; private 672000 B (32 ports × (7 lossless queues × 3000 B + 1 others × 0 B)) + insurance 1920000 B (32 ports × Φ, Φ of port 0 60000 B) = 2592000 B"},
		"cable too long": {SIH, func(c *Config) { c.Ports[5].Delay = 3 * units.Microsecond },
			"headroom is 60000 B: allowed is 84012 B or more; ports[5] needs 84012 B = 2·(100Gbps · 3us = 37500 B + MTU 1500 B) + 3840 B that the peer sends before it responds (60 quanta) + the pausing packet 1500 B + 8 PFC frames 672 B"},
		"insurance of a port too small": {DSH, func(c *Config) { c.Ports[1].Headroom = 59_011 },
			"ports[1].headroom is 59011 B: allowed is 59012 B or more; ports[1] needs 59012 B = 2·(100Gbps · 2us = 25000 B + MTU 1500 B) + 3840 B that the peer sends before it responds (60 quanta) + the pausing packet 1500 B + 8 PFC frames 672 B"},
		"static threshold beyond the pool": {Static, func(c *Config) { c.Threshold = 2 * units.MB },
			"threshold is 2000000 B: allowed is 1 to 1888000 B; the shared pool has 16000000 B − private 672000 B (32 ports × (7 lossless queues × 3000 B + 1 others × 0 B)) + headroom 13440000 B (32 ports × 7 lossless queues × Φ, Φ of port 0 60000 B) = 14112000 B = 1888000 B"},
		"no threshold": {Static, func(c *Config) { c.Threshold = 0 }, "threshold is 0 B: allowed is 1 B or more"},
		"α too small for τ": {DSH, func(c *Config) { c.Alpha = -8 },
			"alpha is 1/256: allowed is a threshold of 61501 B or more with an empty pool; otherwise a queue could pause at its first packet and never resume (α·Bs = 1/256 · 13408000 B = 52375 B, less τ of up to Φ = 60000 B, less δ = 0 B and MTU = 1500 B)"},
		"δ above the threshold": {Static, func(c *Config) { c.ResumeGap = 20_000 },
			"threshold is 20000 B: allowed is a threshold of 21501 B or more with an empty pool; otherwise a queue could pause at its first packet and never resume (less δ = 20000 B and MTU = 1500 B)"},
		"δp above the threshold": {DSH, func(c *Config) { c.PortResumeGap = 6 * units.MB },
			"port_resume_gap is 6000000 B: allowed is less than 5866000 B; Xpoff = Nq·T = 7 · 838000 B with an empty pool, and no port could ever resume"},
	} {
		t.Run(name, func(t *testing.T) {
			c := tomahawk(tc.policy)
			tc.spoil(&c)
			m, err := New(c)
			if err == nil || m != nil || err.Error() != tc.want {
				t.Fatalf("got  %v\nwant %s", err, tc.want)
			}
			var here *units.FieldError
			var tables *units.FieldError
			if !errors.As(err, &here) && !errors.As(err, &tables) {
				t.Errorf("%T is not a FieldError", err)
			}
		})
	}
}

func TestAcceptedConfigurations(t *testing.T) {
	for _, k := range Kinds() {
		if _, err := New(tomahawk(k)); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
	c := tomahawk(SIH)
	c.Headroom, c.AllowLoss = 1000, true
	if _, err := New(c); err != nil {
		t.Errorf("loss allowed: %v", err)
	}
	c = tomahawk(DSH)
	c.Headroom = 0 // sized for the link
	if l, err := c.Layout(); err != nil || l.Phi[0] != 59_012 {
		t.Errorf("without Φ: %+v, %v", l.Phi, err)
	}
}

func TestAlpha(t *testing.T) {
	for text, want := range map[string]Alpha{"1/16": -4, "0.0625": -4, "2": 1, "1": 0, " 64 ": 6, "1/1024": -10, "4/8": -1} {
		if got, err := ParseAlpha(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "x", "0", "-1", "3", "1/3", "128", "1/2048", "1/0", "NaN", "Inf", "1/x"} {
		var a Alpha
		if err := a.UnmarshalText([]byte(text)); err == nil || !strings.HasSuffix(err.Error(), "allowed is a power of two from 1/1024 to 64") {
			t.Errorf("%q: %v, %v", text, a, err)
		}
	}
	for a := MinAlpha; a <= MaxAlpha; a++ {
		text, _ := a.MarshalText()
		if back, err := ParseAlpha(string(text)); err != nil || back != a {
			t.Errorf("%s is read back as %s (%v)", text, back, err)
		}
	}
	if got := Alpha(-4).Threshold(1_888_000); got != 118_000 {
		t.Errorf("1/16 of 1 888 000 B = %d B", got)
	}
	if got := Alpha(1).Threshold(-5); got != 0 {
		t.Errorf("2 · −5 B = %d B", got)
	}
}

func FuzzParseAlpha(f *testing.F) {
	for _, s := range []string{"1/16", "2", "0.0625", "1/0", "-4", "1e400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAlpha(s)
		if err == nil && (a < MinAlpha || a > MaxAlpha) {
			t.Errorf("%q is 2^%d", s, int8(a))
		}
	})
}
