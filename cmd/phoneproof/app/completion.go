package app

import (
	"github.com/spf13/cobra"
)

// completeValues has shells offer the values of a flag.
func completeValues(cmd *cobra.Command, flag string, values ...cobra.Completion) {
	mustExist(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
}

// completeLogValues has shells offer the formats and levels of the log flags with a prefix.
func completeLogValues(cmd *cobra.Command, prefix string) {
	completeValues(cmd, prefix+"format", "json", "text")
	completeValues(cmd, prefix+"level", "debug", "info", "warn", "error")
}

// completeFiles has shells offer the files with some endings.
func completeFiles(cmd *cobra.Command, flag string, endings ...string) {
	mustExist(cmd.MarkFlagFilename(flag, endings...))
}

// completeFolders has shells offer folders.
func completeFolders(cmd *cobra.Command, flag string) {
	mustExist(cmd.MarkFlagDirname(flag))
}

// mustExist panics where a completion is for a flag that its command does not have, which the first test shows.
func mustExist(err error) {
	if err != nil {
		panic(err)
	}
}
