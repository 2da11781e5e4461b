//go:build !cgo

package engine_test

// storeOnHeap says whether the store's tables and cache are in Go's heap, as they are without cgo.
const storeOnHeap = true
