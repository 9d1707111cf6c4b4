package main

import (
	"github.com/spf13/cobra"

	"github.com/headgate/headgate/cnpgen/paccmd"
)

// newPaccCommand is "headgate pacc": the analysis of PACC's parameters.
func newPaccCommand() *cobra.Command { return paccmd.New() }
