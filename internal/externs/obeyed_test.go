package externs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestObeyed(t *testing.T) {
	for _, o := range []Obeyed{{}, {1: 0, 509: 1<<3 | 1<<7}} {
		if got, err := ReadObeyed(o.Entity().GetExternEntry()); err != nil || !cmp.Equal(o, got) {
			t.Errorf("%v is read as %v, %v", o, got, err)
		}
	}
	if o := (Obeyed{1: 1 << 3}); !o.Obeys(1, 3) || o.Obeys(1, 4) || !o.Obeys(2, 4) {
		t.Errorf("port 1 obeys class 3 %v, class 4 %v; port 2 obeys class 4 %v", o.Obeys(1, 3), o.Obeys(1, 4), o.Obeys(2, 4))
	}
	for want, fields := range map[string]map[string]any{
		`field "port_x" of the classes of ports is unknown, want port_ and a number`: {"port_x": []any{}},
		`field "port_01" of the classes of ports is unknown`:                         {"port_01": []any{}},
		"port_1 is 3, want a list of classes":                                        {"port_1": 3.0},
		"port_1 has the class 8, want 0 to 7":                                        {"port_1": []any{8.0}},
		"port_1 has the class 1.5, want 0 to 7":                                      {"port_1": []any{1.5}},
		"port_1 has the class x, want 0 to 7":                                        {"port_1": []any{"x"}},
	} {
		if got, err := ReadObeyed(pack(ObeyedID, fields).GetExternEntry()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, error %v, want %s", fields, got, err, want)
		}
	}
}
