package units

import (
	"fmt"
	"strings"
)

// Count writes a number of things for people, such as "1 host" and "2 hosts"; thing is one of them, in
// English and with a regular plural.
func Count[T ~int | ~int64 | ~uint32 | ~uint64](n T, thing string) string {
	if n != 1 {
		switch last := thing[len(thing)-1]; {
		case strings.HasSuffix(thing, "ch") || strings.HasSuffix(thing, "sh") || last == 's' || last == 'x':
			thing += "es"
		case last == 'y' && !strings.ContainsRune("aeou", rune(thing[len(thing)-2])):
			thing = thing[:len(thing)-1] + "ies"
		default:
			thing += "s"
		}
	}
	return fmt.Sprintf("%d %s", n, thing)
}
