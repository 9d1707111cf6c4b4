package buffer

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/headroom"
	"github.com/headgate/headgate/units"
)

// TestShippedProfiles compares the standard's headroom with the xoff of every pg_profile_lookup.ini in a checkout of
// sonic-buildimage, and explains each difference. HEADGATE_SONIC_BUILDIMAGE is the checkout's path.
// docs/operate/lossless-buffers.md has the table.
func TestShippedProfiles(t *testing.T) {
	root := os.Getenv("HEADGATE_SONIC_BUILDIMAGE")
	if root == "" {
		t.Skip("HEADGATE_SONIC_BUILDIMAGE is not set: want the path of a checkout of github.com/sonic-net/sonic-buildimage")
	}
	seen := map[[32]byte]bool{}
	rows, explained := map[units.Rate]int{}, map[units.Rate]map[string]int{}
	// SONiC's own sum adds the chip's mac_phy_delay and pipeline_latency, which the files lack.
	const unexplained = "more than that: the chip's own delays and the vendor's margin"
	total := 0
	err := filepath.WalkDir(filepath.Join(root, "device"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "pg_profile_lookup.ini" || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || seen[sha256.Sum256(text)] {
			return err
		}
		seen[sha256.Sum256(text)] = true
		list, err := ParseProfiles(path, string(text))
		if err != nil {
			return err
		}
		longest := map[units.Rate]units.Bytes{} // the xoff of a speed for all cable lengths, 0 if they differ
		for _, p := range list {
			if x, ok := longest[p.Rate]; ok && x != p.Headroom {
				longest[p.Rate] = 0
			} else if !ok {
				longest[p.Rate] = p.Headroom
			}
		}
		cables := map[units.Rate]int{}
		for _, p := range list {
			cables[p.Rate]++
		}
		for _, p := range list {
			total++
			rows[p.Rate]++
			l := headroom.Link{Rate: p.Rate, Delay: p.Delay, MTU: 9100, Response: headroom.Response(p.Rate)}
			if l.Required() >= p.Headroom {
				continue
			}
			kind := unexplained
			l.Cell, l.SmallPackets = 256, 100
			switch {
			case cables[p.Rate] > 1 && longest[p.Rate] > 0:
				kind = "one value for all cables"
			case l.Required() >= p.Headroom:
				kind = "cells of up to 256 B, filled by small packets"
			}
			if explained[p.Rate] == nil {
				explained[p.Rate] = map[string]int{}
			}
			explained[p.Rate][kind]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if total < 1000 {
		t.Fatalf("only %d rows in %d files below %s, want a checkout with its folder device", total, len(seen), root)
	}
	t.Logf("%d rows of %d different files", total, len(seen))
	own := 0
	for rate, n := range rows {
		own += explained[rate][unexplained]
		t.Logf("%v: %d rows, more than the standard requires: %v", rate, n, explained[rate])
	}
	if own > total/10 {
		t.Errorf("%d of %d rows are above what cells and cables explain, want at most a tenth", own, total)
	}
}

// TestParseProfiles: rows of pg_profile_lookup.ini become profiles. An error names the line of an invalid
// row.
func TestParseProfiles(t *testing.T) {
	got, err := ParseProfiles("p.ini", "# PG lossless profiles.\n# speed cable size xon xoff threshold xon_offset\n\n  100000     5m    18432  18432   55296   0   2496\n400000\t40m 18432 18432 1024000 0\n")
	want := []HeadroomProfile{{100 * units.Gbps, 25 * units.Nanosecond, 55296}, {400 * units.Gbps, 200 * units.Nanosecond, 1024000}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for _, row := range []string{"100000 5m 1 2", "100000 5 1 2 3", "100000 5m 1 2 0", "fast 5m 1 2 3", "0 5m 1 2 3", "100000 -5m 1 2 3", "100000 5m 1 2 3000000000"} {
		if _, err := ParseProfiles("p.ini", "#\n"+row+"\n"); err == nil || !strings.Contains(err.Error(), "p.ini:2: is \""+row+"\", want speed in Mb/s") {
			t.Errorf("%q: %v", row, err)
		}
	}
}
