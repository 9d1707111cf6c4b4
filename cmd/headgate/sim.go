package main

import (
	"github.com/spf13/cobra"

	"github.com/headgate/headgate/fabric/experiment/simcmd"
)

// newSimCommand is "headgate sim": experiments in the fabric simulator.
func newSimCommand() *cobra.Command { return simcmd.New() }
