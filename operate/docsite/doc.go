// Package docsite renders the documentation as a site: HTML pages with navigation, and a search that needs no server.
// The broker serves the site under /docs/. The build writes it to a folder, where it also works from the file system.
//
//	render.go    Markdown → pages
//	search.go    the index of the search
//	serve.go     the site over HTTP
//	static/      style and script; page.html is the frame of all pages
package docsite
