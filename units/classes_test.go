package units

import (
	"strings"
	"testing"
)

func TestClasses(t *testing.T) {
	for text, want := range map[string]Classes{"none": 0, "3": 1 << 3, "3,4": 1<<3 | 1<<4, "0,1,2,3,4,5,6,7": 0xff} {
		var c Classes
		if err := c.UnmarshalText([]byte(text)); err != nil || c != want || c.String() != text {
			t.Errorf("%s: %v, %v", text, c, err)
		}
	}
	for _, text := range []string{"", "8", "3,", "-1", "3 4", "all"} {
		c := Classes(5)
		if err := c.UnmarshalText([]byte(text)); err == nil || c != 5 || !strings.Contains(err.Error(), "want classes of 0 to 7") {
			t.Errorf("%q: %v, %v", text, c, err)
		}
	}
}
