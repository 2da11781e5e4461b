//go:build cgo

package engine_test

// storeOnHeap says that the memory of the store's tables and cache is Go's: without cgo it is.
const storeOnHeap = false
