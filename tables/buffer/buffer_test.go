package buffer

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/units"
)

// tomahawk is the switch of DSH's evaluation (§V-A), with n ports.
func tomahawk(kind headroom.Kind, n int) Config {
	c := Config{MMU: headroom.Config{Method: headroom.ByEq1,
		Policy: kind, Lossless: 0x7f, Buffer: 16 * units.MB, Private: 3 * units.KB, Headroom: 60 * units.KB, Alpha: -4, Threshold: 100 * units.KB,
	}}
	for i := range n {
		c.MMU.Ports = append(c.MMU.Ports, headroom.Port{Rate: 100 * units.Gbps, Delay: 2 * units.Microsecond})
		c.Numbers = append(c.Numbers, uint32(i))
	}
	return c
}

func TestParameters(t *testing.T) {
	for kind, flags := range map[headroom.Kind]uint64{
		headroom.Static: 0, headroom.DT: ids.BufferDynamic, headroom.SIH: ids.BufferDynamic, headroom.Adaptive: ids.BufferDynamic,
		headroom.Oversubscribed: ids.BufferDynamic, headroom.SPFC: ids.BufferDynamic | ids.BufferVictims,
		headroom.DSH:     ids.BufferDynamic | ids.BufferInsured | ids.BufferEstimate,
		headroom.DSHSPFC: ids.BufferDynamic | ids.BufferInsured | ids.BufferEstimate | ids.BufferVictims,
	} {
		e, err := Build(tomahawk(kind, 32))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		p := func(id uint32) uint64 { return e.Policy.Params[id-1] }
		if p(ids.ParamSetBufferPolicyFlags) != flags || p(ids.ParamSetBufferPolicyLossless) != 0x7f ||
			p(ids.ParamSetBufferPolicyAlphaUp) != 0 || kind != headroom.Static && p(ids.ParamSetBufferPolicyAlphaDown) != 4 ||
			p(ids.ParamSetBufferPolicyPortQueues) != 7 || p(ids.ParamSetBufferPolicyWindow) != 10_000 {
			t.Errorf("%s: parameters %v", kind, e.Policy.Params)
		}
		pools := p(ids.ParamSetBufferPolicyShared) + p(ids.ParamSetBufferPolicyPrivatePool) +
			p(ids.ParamSetBufferPolicyHeadroomPool) + p(ids.ParamSetBufferPolicyInsurancePool)
		if pools != 16_000_000 {
			t.Errorf("%s: the pools are %d B of 16 MB", kind, pools)
		}
		// SIH: 16 MB less 672 KB and 13.44 MB; DSH: less 672 KB and 1.92 MB.
		want := map[headroom.Kind]uint64{headroom.SIH: 1_888_000, headroom.DSH: 13_408_000}[kind]
		if got := p(ids.ParamSetBufferPolicyShared); want != 0 && got != want {
			t.Errorf("%s: a shared pool of %d B, want %d", kind, got, want)
		}
		count := map[string]int{}
		for _, entry := range e.Tables {
			count[entry.Table]++
		}
		if count[ids.TableBufferPortName] != 32 || (count[ids.TableExp2Name] != 0) != (flags&ids.BufferEstimate != 0) {
			t.Errorf("%s: entries %v", kind, count)
		}
	}
}

// The entries give what the tables give: the pipeline's widths lose nothing.
func TestEntriesDivideAsTheTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := tomahawk(headroom.DSH, 2)
		c.MMU.Ports[1].Rate = rapid.SampledFrom([]units.Rate{units.Mbps, units.Gbps, 400 * units.Gbps}).Draw(t, "rate")
		c.MMU.AllowLoss = true
		c.MMU.DSH.Precision.Log = rapid.UintRange(1, 8).Draw(t, "log")
		c.MMU.DSH.Precision.Frac = rapid.UintRange(8, log2.MaxFrac).Draw(t, "frac")
		c.MMU.DSH.Precision.Exp = rapid.UintRange(1, 8).Draw(t, "exp")
		e, err := Build(c)
		if err != nil {
			t.Fatal(err)
		}
		find := func(table string, key uint64) (uint64, bool) {
			best, found, value := -1, false, uint64(0)
			for _, entry := range e.Tables {
				m := entry.Match[len(entry.Match)-1]
				if entry.Table == table && key>>(32-m.Prefix) == m.Value>>(32-m.Prefix) && m.Prefix > best {
					best, found, value = m.Prefix, true, entry.Params[0]
				}
			}
			return value, found
		}
		logs, err := log2.New(c.MMU.DSH.Precision)
		if err != nil {
			t.Fatal(err)
		}
		up := log2.MaxFrac - c.MMU.DSH.Precision.Frac
		bytes := rapid.Uint64Range(1, uint64(c.MMU.Buffer)).Draw(t, "bytes")
		if v, ok := find(ids.TableLog2BytesName, bytes); !ok || v != uint64(logs.Log2(bytes))<<up {
			t.Fatalf("log2 %d is %d, the table has %d", bytes, v, logs.Log2(bytes)<<up)
		}
		ticks := rapid.Uint64Range(1, 1<<32-1).Draw(t, "ticks")
		if v, ok := find(ids.TableLog2TicksName, ticks); !ok || v != uint64(logs.Log2(ticks))<<up {
			t.Fatalf("log2 %d is %d, the table has %d", ticks, v, logs.Log2(ticks)<<up)
		}
		exponent := int32(rapid.IntRange(0, 31<<c.MMU.DSH.Precision.Frac).Draw(t, "exponent"))
		v, ok := find(ids.TableExp2Name, uint64(exponent)<<up)
		if want := logs.Exp2(exponent); ok && v != want || !ok && want < 16<<15 {
			t.Fatalf("2^%d is %d, %v, the table has %d", exponent, v, ok, want)
		}
	})
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Config)
		field  string
	}{
		"numbers missing":   {func(c *Config) { c.Numbers = c.Numbers[1:] }, "ports"},
		"addresses missing": {func(c *Config) { c.MAC = make([][6]byte, 1) }, "ports"},
		"CPU port":          {func(c *Config) { c.Numbers[1] = ids.CPUPort }, "ports[1]"},
		"port twice":        {func(c *Config) { c.Numbers[2] = c.Numbers[0] }, "ports[2]"},
		"port beyond":       {func(c *Config) { c.Numbers[0] = 512 }, "ports[0]"},
		"buffer of 2 GiB":   {func(c *Config) { c.MMU.Buffer = 1 << 31 }, "buffer"},
		"headroom's own":    {func(c *Config) { c.MMU.Buffer = 100_000 }, "buffer"},
		"window below tick": {func(c *Config) { c.MMU.DSH.Window = 1 }, "dsh.window"},
		"window too long":   {func(c *Config) { c.MMU.DSH.Window = 5000 * units.Second }, "dsh.window"},
		"precision":         {func(c *Config) { c.MMU.DSH.Precision = log2.Precision{Log: 12, Exp: 6, Frac: 12} }, "dsh.precision"},
		"many links": {func(c *Config) {
			c.MMU.DSH.Entries = 4096
			for i := range c.MMU.Ports {
				c.MMU.Ports[i].Headroom = 60*units.KB + units.Bytes(i)
			}
		}, "dsh.entries"},
	} {
		c := tomahawk(headroom.DSH, 4)
		tc.change(&c)
		_, err := Build(c)
		var e *units.FieldError
		if !errors.As(err, &e) || e.Field != tc.field {
			t.Errorf("%s: error %v, want one of field %s", name, err, tc.field)
		}
	}
}

func TestPFCPorts(t *testing.T) {
	c := tomahawk(headroom.SIH, 2)
	c.Quanta, c.MAC = 1000, [][6]byte{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}}
	e, err := Build(c)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, entry := range e.Tables {
		switch entry.Table {
		case ids.TablePFCPortName:
			if p := entry.Params; p[0] != 0x020000000001+entry.Match[0].Value || p[1] != 1000 {
				t.Errorf("port %d: %v", entry.Match[0].Value, p)
			}
			n++
		case ids.TableBufferPortName: // half of 1000 · 5.12 ns
			if entry.Params[1] != 3 {
				t.Errorf("refresh every %d µs, want 3", entry.Params[1])
			}
		}
	}
	if n != 2 || !strings.HasSuffix(Off().Name, "disable_buffer") || Session(3) != ids.PFCCloneSession+3 {
		t.Errorf("%d entries for PFC frames", n)
	}
}

// BenchmarkBuild makes the entries of a switch with DSH.
func BenchmarkBuild(b *testing.B) {
	c := tomahawk(headroom.DSH, 32)
	for b.Loop() {
		if _, err := Build(c); err != nil {
			b.Fatal(err)
		}
	}
}
