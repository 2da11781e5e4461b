// Package shellword quotes words of commands that a message prints, so that they can be copied into a shell.
package shellword

import "strings"

// Quote quotes a word for a shell if it needs that.
func Quote(word string) string {
	if strings.Trim(strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz0123456789-_.,:/@+") == "" && word != "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
