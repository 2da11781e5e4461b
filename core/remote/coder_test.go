package remote

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"broker/core"
)

// filler fills values, each field with another value, so that two fields that are mixed up are seen.
type filler struct{ n int }

func (f *filler) fill(t *testing.T, v reflect.Value, depth int) {
	t.Helper()
	f.n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(1000 + f.n))
	case reflect.Uint8:
		v.SetUint(uint64(1 + f.n%250))
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(300 + f.n))
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.5)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", f.n))
	case reflect.Pointer:
		if depth == 0 {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(t, v.Elem(), depth-1)
	case reflect.Slice:
		if depth == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			f.fill(t, v.Index(i), depth-1)
		}
	case reflect.Array:
		for i := range v.Len() {
			f.fill(t, v.Index(i), depth)
		}
	case reflect.Map:
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(t, k, depth)
		f.fill(t, e, depth)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(k, e)
	case reflect.Interface:
		f.fillInterface(t, v, depth)
	case reflect.Struct:
		f.fillStruct(t, v, depth)
	default:
		t.Fatalf("no value for %v", v.Type())
	}
}

func (f *filler) fillInterface(t *testing.T, v reflect.Value, depth int) {
	t.Helper()
	switch v.Type() {
	case reflect.TypeFor[error]():
		v.Set(reflect.ValueOf(kinds[f.n%len(kinds)]))
	case reflect.TypeFor[core.Op]():
		op := reflect.New(reflect.TypeFor[core.Complete]())
		if f.n%2 == 0 {
			op = reflect.New(reflect.TypeFor[core.Move]())
		}
		f.fill(t, op.Elem(), depth)
		v.Set(op)
	default:
		t.Fatalf("no value for %v", v.Type())
	}
}

func (f *filler) fillStruct(t *testing.T, v reflect.Value, depth int) {
	t.Helper()
	if h, is := v.Addr().Interface().(*core.Histogram); is {
		h.AddSpan(core.Instant(10 * f.n))
		h.AddSpan(core.Instant(1000 * f.n))
		return
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			f.fill(t, v.Field(i), depth)
		}
	}
}

// declaredOps are the names of the operations in the source of package core.
func declaredOps(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			f, is := n.(*ast.FuncDecl)
			if !is || f.Recv == nil || f.Name.Name != "TagOf" {
				return true
			}
			names = append(names, f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
			return false
		})
	}
	return names
}

func TestEveryOperationOfTheCoreHasANumber(t *testing.T) {
	declared := declaredOps(t)
	if len(declared) < 70 {
		t.Fatalf("only %d operations found", len(declared))
	}
	var known []string
	for of := range maps.Keys(opNumbers) {
		known = append(known, of.Elem().Name())
	}
	slices.Sort(declared)
	slices.Sort(known)
	if !slices.Equal(declared, known) {
		t.Errorf("the core has the operations\n%v\nwith numbers are\n%v", declared, known)
	}
}

func TestEveryErrorOfTheCoreHasANumber(t *testing.T) {
	for _, err := range core.Errors {
		if !slices.Contains(kinds, err) {
			t.Errorf("%v has no number", err)
		}
	}
}

// roundTrip encodes and decodes a value.
func roundTrip[T any](t *testing.T, code func(*coder, *T), v T) (got T) {
	t.Helper()
	w := coder{}
	code(&w, &v)
	r := coder{buf: slices.Clone(w.buf), reading: true}
	code(&r, &got)
	if r.err != nil || len(r.buf) > 0 {
		t.Fatalf("%T: %v, %d bytes are left", v, r.err, len(r.buf))
	}
	for n := 0; n < len(w.buf); n += 1 + n/50 { // every cut is an error, and no panic
		cut := coder{buf: slices.Clone(w.buf[:n]), reading: true}
		var part T
		if code(&cut, &part); cut.err == nil {
			t.Fatalf("%T: the first %d of %d bytes are accepted", v, n, len(w.buf))
		}
	}
	return got
}

func TestOperationsCross(t *testing.T) {
	for _, kind := range opKinds {
		empty, full := kind.new(), kind.new()
		for seed := range 3 {
			(&filler{n: 100 * seed}).fill(t, reflect.ValueOf(full).Elem(), 4)
			if got := roundTrip(t, operation, full); !reflect.DeepEqual(got, full) {
				t.Errorf("sent %+v\ncame %+v", full, got)
			}
		}
		if got := roundTrip(t, operation, empty); !reflect.DeepEqual(got, empty) {
			t.Errorf("sent %#v\ncame %#v", empty, got)
		}
	}
	none := &core.Lease{Queues: []string{}} // not the registered queues
	if got := roundTrip[core.Op](t, operation, none).(*core.Lease); got.Queues == nil {
		t.Error("no queues became nil")
	}
}

// Clients may send any bytes where the core has a text.
func TestTextsOfAnyBytesCross(t *testing.T) {
	const text = "\xff\x00\xc3"
	for _, op := range []core.Op{
		&core.Cancel{Ref: core.Ref{ID: text}}, &core.Inspect{Ref: core.Ref{ID: text}},
		&core.Submit{Job: &core.Job{ID: text}},
	} {
		if got := roundTrip(t, operation, op); !reflect.DeepEqual(got, op) {
			t.Errorf("sent %+v\ncame %+v", op, got)
		}
	}
	sent := core.Reply{Info: &core.JobInfo{Worker: text}}
	if got := roundTrip(t, reply, sent); !reflect.DeepEqual(got, sent) {
		t.Errorf("sent %+v\ncame %+v", sent, got)
	}
}

func TestRepliesCross(t *testing.T) {
	var r core.Reply
	if got := roundTrip(t, reply, r); !reflect.DeepEqual(got, r) {
		t.Errorf("came %+v", got)
	}
	(&filler{}).fill(t, reflect.ValueOf(&r).Elem(), 5)
	for i := range r.Answer.Replies {
		r.Answer.Replies[i].Answer = nil // an Atomic holds no Atomic
	}
	var got core.Reply
	w := coder{}
	reply(&w, &r)
	c := coder{buf: w.buf, reading: true}
	if reply(&c, &got); c.err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("%v\nsent %+v\ncame %+v", c.err, r, got)
	}
	for n := 0; n < len(w.buf); n += 1 + n/50 {
		cut := coder{buf: w.buf[:n], reading: true}
		var part core.Reply
		if reply(&cut, &part); cut.err == nil {
			t.Fatalf("the first %d of %d bytes are accepted", n, len(w.buf))
		}
	}
}

func TestErrorsKeepTheirKindAndText(t *testing.T) {
	for _, kind := range kinds {
		if got := roundTrip(t, fault, kind); !errors.Is(got, kind) || got.Error() != kind.Error() {
			t.Errorf("%v became %v", kind, got)
		}
		err := fmt.Errorf("%w: the reason", kind)
		if got := roundTrip(t, fault, err); !errors.Is(got, kind) || got.Error() != err.Error() {
			t.Errorf("%v became %v", err, got)
		}
	}
	var err error = &core.DependentsError{Seq: 3, Dependent: 4}
	var of *core.DependentsError
	if got := roundTrip(t, fault, err); !errors.As(got, &of) || *of != (core.DependentsError{Seq: 3, Dependent: 4}) {
		t.Errorf("became %v", got)
	}
}

// Bytes that are read belong to the values only if the reader says so.
func TestBytesAliasOnlyOnRequest(t *testing.T) {
	for _, aliases := range []bool{false, true} {
		w, in := coder{}, []byte("body")
		w.bytes(&in)
		r := coder{buf: w.buf, reading: true, aliases: aliases}
		var out []byte
		r.bytes(&out)
		w.buf[1] = 'B'
		if (string(out) == "Body") != aliases {
			t.Errorf("aliases %v: %q", aliases, out)
		}
	}
}
