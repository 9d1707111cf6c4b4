package cli

import "github.com/spf13/cobra/doc"

// WriteManual writes the manual pages of headgate and its subcommands, section 1, into a directory.
// Without a date, the same sources give the same pages.
func WriteManual(directory string) error {
	root := NewRoot()
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Source: "Headgate", Manual: "Headgate"}, directory)
}
