//go:build !race

package softswitch

const raceEnabled = false
