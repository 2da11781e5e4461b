// Package packages builds the deb and rpm packages and uses them as an administrator does: in a clean Debian root they
// are installed, started, upgraded with jobs in the store, removed and purged. It needs root, for the clean root.
package packages
