package store

import (
	"context"
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"
	"testing"

	"broker/core/internal/record"
	"broker/core/internal/store/storetest"
)

// testdata/format1.tar.gz is a store that the last broker of format 1 wrote: two sessions of clients of all three
// protocols, jobs in every state, batches, large bodies, failures and outcomes; some of it in tables, most of it in a
// log that ends with a kill -9. testdata/format1.txt lists what that broker found in it.

// wantSameLines compares line by line, so that a difference of a long text can be read.
func wantSameLines(t *testing.T, got, want string) {
	t.Helper()
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Fatalf("line %d differs\n got: %s\nwant: %s", i+1, g[min(i, len(g)-1)], w[min(i, len(w)-1)])
		}
	}
}

// format1Store returns a disk with that store.
func format1Store(t *testing.T) *testDisk {
	t.Helper()
	disk := newDisk()
	if err := storetest.Unpack(disk, testDir, "testdata/format1.tar.gz"); err != nil {
		t.Fatal(err)
	}
	return disk
}

// dumpStore lists all that s holds, in the order of the keys.
func dumpStore(t *testing.T, s *Store) string {
	t.Helper()
	var b strings.Builder
	err := s.Scan(context.Background(), nil, func(r *record.Record) error {
		j, err := s.Job(r.Job.Seq)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "job %d body %d", j.Seq, r.BodyBytes)
		dumpValue(&b, "", reflect.ValueOf(j))
		dumpValue(&b, " status", reflect.ValueOf(r.Status))
		if r.Stored&record.HasFailure != 0 {
			f, err := s.Failure(j.Seq)
			if err != nil {
				return err
			}
			dumpValue(&b, " failure", reflect.ValueOf(f))
		}
		if r.Stored&record.HasOutcome != 0 {
			o, err := s.Outcome(j.Seq)
			if err != nil {
				return err
			}
			dumpValue(&b, " outcome", reflect.ValueOf(o))
		}
		b.WriteByte('\n')
		return nil
	})
	if err == nil {
		err = s.ScanMeta("", func(name string, value []byte) error {
			fmt.Fprintf(&b, "meta %q", name)
			dumpValue(&b, "", reflect.ValueOf(value))
			b.WriteByte('\n')
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// dumpValue writes the fields of v that are not zero, so that a field that is added later changes nothing.
func dumpValue(b *strings.Builder, name string, v reflect.Value) {
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case v.IsZero():
	case v.Kind() == reflect.Struct:
		fields := reflect.VisibleFields(v.Type()) // by name: their order in the struct means nothing
		slices.SortFunc(fields, func(a, b reflect.StructField) int { return strings.Compare(a.Name, b.Name) })
		for _, f := range fields {
			dumpValue(b, name+"."+f.Name, v.FieldByIndex(f.Index))
		}
	case v.Type() == reflect.TypeFor[[]byte]() && v.Len() > 100:
		fmt.Fprintf(b, " %s=%d bytes, crc %08x", name, v.Len(), crc32.ChecksumIEEE(v.Bytes()))
	case v.Kind() == reflect.Slice || v.Kind() == reflect.String:
		fmt.Fprintf(b, " %s=%.200q", name, v.Interface())
	default:
		fmt.Fprintf(b, " %s=%d", name, reflectNumber(v))
	}
}

// reflectNumber is a number or a truth value.
func reflectNumber(v reflect.Value) any {
	switch {
	case v.Kind() == reflect.Bool:
		return 1
	case v.CanInt():
		return v.Int()
	}
	return v.Uint()
}
