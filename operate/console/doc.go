// Package console is the web console: pages that the server renders, for people who watch and operate a broker.
//
// Every page works for reading without a script. Changes are forms; they call the same [service.Service] as the HTTP
// API, with the rights of the caller's principal, and leave an entry in the audit log. All links are relative to the
// <base> of the page, so the console works behind a path prefix. The tabs of a browser share one event stream, which
// announces changes at most every two seconds; a page then fetches itself again and is merged into what is shown
// (htmx).
//
//	console.go   routes, the frame of a page, errors
//	render.go    templates and their functions
//	session.go   login with a cookie in place of an Authorization header
//	static.go    embedded files under names with a hash
//	live.go      the event stream
//	refresh.go   one rendering for all tabs that show the same
//	page_*.go    what each page shows and which forms it takes
//
// static/vendor.json lists the libraries of others with their versions, checksums and licences.
package console
