package screen

import (
	"testing"

	tea "charm.land/bubbletea/v2"
)

func TestScreen(t *testing.T) {
	s := &Screen{Whole: true, Picture: func(int) string { return "1234567890\n2\n3\n4\n5\n6\n" }}
	s.Update(tea.WindowSizeMsg{Width: 6, Height: 6})
	s.Update(tick{})
	if got, want := s.View().Content, "123456\n2\n3\n… 3 mo\n\nq to leave"; got != want {
		t.Errorf("view = %q, want %q", got, want)
	}
	if _, cmd := s.Update(tea.KeyPressMsg{Code: 'q', Text: "q"}); cmd == nil {
		t.Error("q does not leave")
	}
	if _, cmd := s.Update(tea.KeyPressMsg{Code: 'x', Text: "x"}); cmd != nil {
		t.Error("x does something")
	}
}
