// Package console drives the web console of the built broker with a real browser, while clients of several protocols
// are at work. With -pictures, pictures of every page are left in .cache/screenshots.
package console
