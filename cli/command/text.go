package command

import (
	"strings"
	"unicode"
)

// Clean replaces control characters in names and messages of others. They could control the terminal
// or break columns.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, s)
}
