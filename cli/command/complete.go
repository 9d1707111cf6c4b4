package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Matching returns the words that begin as what is typed, each once, in their order.
func Matching(words []string, typed string) (list []string) {
	for _, w := range words {
		if strings.HasPrefix(w, typed) && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// CompleteFlag completes a flag of a command by words.
func CompleteFlag(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the command has no such flag
	}
}
