//go:build race

package race

// Enabled: this program was built with the race detector.
const Enabled = true
