//go:build race

package softswitch

// raceEnabled: with the race detector on, sync.Pool drops what it is given at random.
const raceEnabled = true
