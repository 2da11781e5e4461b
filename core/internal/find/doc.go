// Package find searches the jobs of a table: by a filter, in an order, page by page. It uses the shortest index and looks at a bounded
// number of jobs. It knows no client but by the names of connections, and changes nothing. The machine turns what is found into replies.
package find
