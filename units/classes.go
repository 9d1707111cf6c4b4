package units

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Classes is a set of the priorities of IEEE 802.1Q, bit n for class n.
type Classes uint8

// String returns the classes with commas, such as "3,4", and "none" without any.
func (c Classes) String() string {
	if c == 0 {
		return "none"
	}
	var list []string
	for m := uint8(c); m != 0; m &= m - 1 {
		list = append(list, strconv.Itoa(bits.TrailingZeros8(m)))
	}
	return strings.Join(list, ",")
}

// UnmarshalText implements encoding.TextUnmarshaler for the texts that String returns.
func (c *Classes) UnmarshalText(text []byte) error {
	var set Classes
	if string(text) != Classes(0).String() {
		for class := range strings.SplitSeq(string(text), ",") {
			n, err := strconv.ParseUint(class, 10, 3)
			if err != nil {
				return fmt.Errorf("%.40q: want classes of 0 to 7 such as 3,4, or none", text)
			}
			set |= 1 << n
		}
	}
	*c = set
	return nil
}
