// Package docs holds the documentation, so that the broker can serve it.
package docs

import "embed"

// Files are the pages in Markdown. README.md is the index.
//
//go:embed *.md
var Files embed.FS
