// Command man writes the manual pages of headgate and its subcommands, section 1, into a directory. It is a
// program of its own so that headgate does not link the formatter.
package main

import (
	"fmt"
	"os"

	"github.com/headgate/headgate/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man DIRECTORY")
		os.Exit(2)
	}
	if err := cli.WriteManual(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}
