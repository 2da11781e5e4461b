// Package docs holds the documentation, so that the broker can serve it.
package docs

import "embed"

// Files are the pages in Markdown and the pictures in them. README.md is the index.
//
//go:embed *.md *.png
var Files embed.FS
