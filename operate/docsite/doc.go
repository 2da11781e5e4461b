// Package docsite renders the documentation as a site: pages in HTML, with navigation and a search that needs no server.
// The broker serves it under /docs/, and the build writes it to a folder, where it works from the file system, too.
//
//	render.go    Markdown → pages
//	search.go    the index of the search
//	serve.go     the site over HTTP
//	static/      style and script; page.html is the frame of all pages
package docsite
