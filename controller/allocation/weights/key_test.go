package weights

import (
	"errors"
	"testing"
)

func TestParseKey(t *testing.T) {
	tests := []struct{ in, want, field string }{
		{in: "10.0.0.1:1001,10.0.0.2:50151", want: "10.0.0.1:1001,10.0.0.2:50151"},
		{in: " 10.0.0.1:1001 , 10.0.0.2:50151 ", want: "10.0.0.1:1001,10.0.0.2:50151"},
		{in: "", field: "flow"},
		{in: "[2001:db8::1]:1001,[2001:db8::2]:50151", want: "[2001:db8::1]:1001,[2001:db8::2]:50151"},
		{in: "[2001:db8::1]:1001,10.0.0.2:50151", field: "dst_ipv4"},
		{in: "[fe80::1%1]:1001,[fe80::2]:50151", field: "src_ipv4"},
		{in: "10.0.0.1:1001", field: "flow"},
		{in: "10.0.0.1,10.0.0.2:1", field: "flow"},
		{in: "10.0.0.1:1,10.0.0.2:1,10.0.0.3:1", field: "flow"},
		{in: "10.0.0.1:70000,10.0.0.2:1", field: "flow"},
		{in: "10.0.0.01:1,10.0.0.2:1", field: "flow"},
		{in: "[::ffff:10.0.0.1]:1,10.0.0.2:1", field: "src_ipv4"},
		{in: "10.0.0.1:1,224.0.0.1:1", field: "dst_ipv4"},
		{in: "10.0.0.1:1,255.255.255.255:1", field: "dst_ipv4"},
		{in: "0.0.0.0:1,10.0.0.2:1", field: "src_ipv4"},
		{in: "10.0.0.1:0,10.0.0.2:1", field: "src_port"},
		{in: "10.0.0.1:1,10.0.0.2:0", field: "dst_port"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			k, err := ParseKey(tt.in)
			if tt.field == "" {
				if err != nil || k.String() != tt.want {
					t.Errorf("ParseKey = %v, %v, want %s", k, err, tt.want)
				}
				return
			}
			var invalid *InvalidError
			if !errors.As(err, &invalid) || invalid.Field != tt.field || invalid.Value == "" || invalid.Allowed == "" {
				t.Errorf("error = %v, want one about %s", err, tt.field)
			}
		})
	}
}

// Each parsed flow has a text form that parses to the same flow.
func FuzzParseKey(f *testing.F) {
	for _, s := range []string{
		"10.0.0.1:1001,10.0.0.2:50151", "1.2.3.4:0,1.2.3.4:1", "[::1]:1,[::2]:2", ",", "a:b,c:d", "10.0.0.1:1 ,\t10.0.0.2:65535",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := ParseKey(s)
		if err != nil {
			return
		}
		if k.Src().Addr().BitLen() != k.Dst().Addr().BitLen() || k.Src().Port() == 0 || k.Dst().Port() == 0 {
			t.Fatalf("ParseKey(%q) = %v", s, k)
		}
		again, err := ParseKey(k.String())
		if err != nil || again != k {
			t.Fatalf("%q reads as %v, which reads as %v, %v", s, k, again, err)
		}
	})
}
