package estimate

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/headgate/headgate/p4src/ids"
	"github.com/headgate/headgate/tables/buffer"
	"github.com/headgate/headgate/tables/log2"
	"github.com/headgate/headgate/units"
)

func tables(t interface{ Fatal(...any) }, c Config) *Tables {
	got, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The program has room for what New allows.
func TestSizes(t *testing.T) {
	chip, err := os.ReadFile("../../p4src/tna/chip.p4")
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int{"LOG_ENTRIES": LogEntries, "EXP_ENTRIES": ExpEntries, "PHI_ENTRIES": PhiEntries} {
		if want := fmt.Sprintf("#define %s %d\n", name, n); !strings.Contains(string(chip), want) {
			t.Errorf("chip.p4 has no %q", want)
		}
	}
}

// Up to 2^12 and at random: the unit is within 1/16 of a quarter, less what the shift loses,
// and takes something off every sum from 4 on.
func TestQuarter(t *testing.T) {
	check := func(x uint32) {
		got, want := float64(quarter.Execute(x)), float64(x)/4
		if got > want*(1+quarterError) || got <= want*(1-quarterError)-1 || x >= 4 && got == 0 {
			t.Fatalf("%d: %v for %v", x, got, want)
		}
	}
	for x := range uint32(1 << 12) {
		check(x)
	}
	rapid.Check(t, func(t *rapid.T) { check(rapid.Uint32().Draw(t, "x")) })
}

// lookup is what a TCAM does with the entries of a table whose only key has 32 bits.
func lookup(list []buffer.Entry, table string, key uint64) (result uint64, hit bool) {
	best := -1
	for _, e := range list {
		prefix := 0
		if e.Table != table {
			continue
		}
		if len(e.Match) != 0 {
			prefix = e.Match[0].Prefix
			if (key^e.Match[0].Value)>>(32-prefix) != 0 {
				continue
			}
		}
		if prefix > best {
			best, result, hit = prefix, e.Params[0], true
		}
	}
	return result, hit
}

// The entries divide as the model does.
func TestEntriesDivide(t *testing.T) {
	for _, chip := range []string{"tofino1", "tofino2"} {
		c := Config{Chip: chip, Ports: []Port{{1, 100 * units.Gbps, 60_000}, {2, 400 * units.Gbps, 200_000}}}
		tab := tables(t, c)
		list := tab.Entries()
		count := map[string]int{}
		for _, e := range list {
			count[e.Table]++
		}
		for table, size := range map[string]int{ids.TableLog2BytesName: LogEntries, ids.TableLog2TicksName: LogEntries,
			ids.TableExp2Name: ExpEntries, ids.TableHeadroomForName: PhiEntries, PortTable: ids.PortCells} {
			if n := count[table]; n == 0 || n > size {
				t.Errorf("%s: %s has %d entries, want 1 to %d", chip, table, n, size)
			}
		}
		check := func(t *rapid.T) {
			growth := rapid.Uint32Range(0, 1<<19-1).Draw(t, "growth") >> rapid.IntRange(0, 19).Draw(t, "small")
			elapsed := rapid.Uint32().Draw(t, "elapsed") >> rapid.IntRange(0, 32).Draw(t, "short")
			bytes, _ := lookup(list, ids.TableLog2BytesName, uint64(growth)) // a miss leaves 0
			ticks, _ := lookup(list, ids.TableLog2TicksName, uint64(elapsed))
			log, borrow := bits.Sub64(bytes, ticks, 0)
			if borrow != 0 {
				log = 0
			}
			got, hit := lookup(list, ids.TableExp2Name, log)
			if want := tab.Gradient(growth, elapsed); !hit || got != uint64(want) {
				t.Fatalf("%d cells in %d ns: the entries give %d (%v), the model %d", growth, elapsed, got, hit, want)
			}
			exact := math.Min(float64(growth)*float64(tab.cell)*1024/math.Max(1, float64(elapsed)), float64(tab.limit))
			if r := tab.logs.QuotientError() + math.Exp2(-10); math.Abs(float64(got)-exact) > r*exact+1 {
				t.Fatalf("%d cells in %d ns: %d for %.1f", growth, elapsed, got, exact)
			}
		}
		rapid.Check(t, check)
	}
}

// φ̂ of the entries, by profile and gradient.
func TestEntriesOfHeadroom(t *testing.T) {
	ports := []Port{{7, 100 * units.Gbps, 60_000}, {8, 400 * units.Gbps, 200_000}, {9, 100 * units.Gbps, 60_000}}
	tab := tables(t, Config{Chip: "tofino1", Ports: ports})
	list := tab.Entries()
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, 2).Draw(t, "port")
		g := int32(rapid.Uint32Range(1, math.MaxInt32).Draw(t, "g") >> rapid.IntRange(0, 30).Draw(t, "small"))
		var mine []buffer.Entry
		for _, e := range list {
			if e.Table == ids.TableHeadroomForName && e.Match[0].Value == uint64(tab.profile[i]) {
				e.Match = e.Match[1:]
				mine = append(mine, e)
			}
		}
		if g <= 0 {
			return
		}
		phi, hit := lookup(mine, ids.TableHeadroomForName, uint64(g))
		if want := tab.Headroom(i, g); !hit || phi != uint64(want) {
			t.Fatalf("ĝ = %d: the entries give %d (%v), the model %d", g, phi, hit, want)
		}
		exact := math.Min(float64(ports[i].Headroom), float64(g)/4096*ports[i].Rate.TxTime(ports[i].Headroom).Seconds()*1e9)
		if over := float64(phi) - exact; over < -1 || over > 2*float64(tab.links[tab.profile[i]].Error())+1 {
			t.Fatalf("ĝ = %d: φ̂ = %d B, exactly %.1f B", g, phi, exact)
		}
	})
	if got := tab.Headroom(0, 0) + tab.Headroom(0, -5); got != 0 {
		t.Errorf("a queue that does not grow needs %d B", got)
	}
}

func TestBadConfig(t *testing.T) {
	port := Port{1, 100 * units.Gbps, 60_000}
	many := make([]Port, 40)
	for i := range many {
		many[i] = Port{uint32(i), 100 * units.Gbps, 60_000 + units.Bytes(i)}
	}
	for field, c := range map[string]Config{
		"chip":            {Chip: "tofino3", Ports: []Port{port}},
		"dsh.precision":   {Chip: "tofino1", Ports: []Port{port}, Precision: log2.Precision{Log: 8, Exp: 6, Frac: 10}},
		"ports[1].number": {Chip: "tofino1", Ports: []Port{port, port}},
		"ports[0].rate":   {Chip: "tofino1", Ports: []Port{{1, 0, 60_000}}},
		"ports":           {Chip: "tofino1", Ports: many},
	} {
		var fe *units.FieldError
		if _, err := New(c); !errors.As(err, &fe) || fe.Field != field {
			t.Errorf("%+v: %v, want a fault of %s", c, err, field)
		}
	}
}
