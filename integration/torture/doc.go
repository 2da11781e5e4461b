// Package torture holds the tests that hurt: the built broker under load on all protocols, killed again and again; its
// disk full, read-only, or written by a newer version; its clock wrong; clients that flood it, starve it and come by the
// thousand. An independent checker, which knows only what clients sent and what they were told, accounts for every job.
//
// Among the ordinary tests all of it runs in a short form. TORTURE_ROUNDS sets how often the broker is killed, and
// anything above the default of 5 asks for the long form of the rest; make torture does so.
package torture
