// Package find searches the jobs of a table: by a filter, in an order, page by page. It uses the shortest index and
// examines a bounded number of jobs. Of clients, it only knows the names of connections. It changes nothing. The
// machine turns the results into replies.
package find
