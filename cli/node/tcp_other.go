//go:build !linux

package node

import "github.com/spf13/cobra"

// tcpCommands returns none: laws run inside TCP on Linux alone.
func tcpCommands() []*cobra.Command { return nil }
