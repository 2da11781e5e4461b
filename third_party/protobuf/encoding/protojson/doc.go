// Package protojson is empty. Tests of libraries import the package of this name, which go mod tidy therefore has to find.
package protojson
