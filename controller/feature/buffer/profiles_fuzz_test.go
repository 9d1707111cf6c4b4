package buffer

import (
	"testing"

	"github.com/headgate/headgate/controller/config"
	"github.com/headgate/headgate/units"
)

// FuzzParseProfiles: each parsed profile is within the ranges of headroom_profiles.
func FuzzParseProfiles(f *testing.F) {
	f.Add("# speed cable size xon xoff\n 100000 5m 18432 18432 55296 0\n")
	f.Add("18446744073710 5m 1 1 1\n")
	f.Add("100000 3689348814741910324m 1 1 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseProfiles("p.ini", text)
		if err != nil {
			return
		}
		for _, p := range list {
			if p.Rate < units.Mbps || p.Rate > config.MaxRate || p.Rate%units.Mbps != 0 || p.Delay < 0 || p.Delay > units.Second || p.Headroom < 1 || p.Headroom > maxBuffer {
				t.Errorf("%q gives %+v", text, p)
			}
		}
	})
}
