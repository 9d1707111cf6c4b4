// Command man writes the manual pages of headgate and its subcommands, section 1, into a directory.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/headgate/headgate/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: man DIRECTORY")
		os.Exit(2)
	}
	root := cli.NewRoot()
	root.DisableAutoGenTag = true // without the date, the same sources give the same pages
	if err := doc.GenManTree(root, &doc.GenManHeader{Source: "Headgate", Manual: "Headgate"}, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}
