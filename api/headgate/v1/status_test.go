package headgatev1

import "testing"

func TestClean(t *testing.T) {
	m := &PlanConfigResponse{
		Notes:    []string{"fine", "n\xff"},
		Switches: []*SwitchPlan{{Name: "s1", Unreachable: "u\xfe", Changes: []*Change{{Key: "k\xff", New: "ü"}}}},
	}
	Clean(m)
	c := m.Switches[0].Changes[0]
	if m.Notes[0] != "fine" || m.Notes[1] != "n\uFFFD" || m.Switches[0].Name != "s1" || m.Switches[0].Unreachable != "u\uFFFD" || c.Key != "k\uFFFD" || c.New != "ü" {
		t.Errorf("cleaned: %v", m)
	}
}
