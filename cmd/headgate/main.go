// Command headgate is the whole of Headgate in one binary: the controller, the embedded
// switch, the host agent, the operator's commands, and a fabric of them all in one process.
package main

import (
	"os"

	"github.com/headgate/headgate/cli"
)

func main() { os.Exit(cli.Main(cli.NewRoot(), os.Stderr)) }
