// Compat runs the published clients that the integration tests use, and the test suites of other projects, against the
// broker and, where it is installed, against the server that the broker stands in for. It keeps what came of it in
// results.json and writes docs/compatibility.md of it.
//
// Suites of other projects run in folders that the user names; nothing of them is part of this project. They find
// their server at its usual port, so each run has a network namespace of its own. A suite that is not there keeps its
// last result, with the version that it was of.
package main
