package machine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// TestEveryOperationIsDecided compares the operations declared in package core with the operations that apply
// handles.
func TestEveryOperationIsDecided(t *testing.T) {
	t.Parallel()
	decided := map[string]bool{}
	for _, file := range parse(t, "dispatch.go") {
		ast.Inspect(file, func(n ast.Node) bool {
			if clause, ok := n.(*ast.CaseClause); ok {
				for _, e := range clause.List {
					if star, ok := e.(*ast.StarExpr); ok {
						decided[star.X.(*ast.SelectorExpr).Sel.Name] = true
					}
				}
			}
			return true
		})
	}
	declared := 0
	for _, file := range parse(t, "../../*.go") {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name != "TagOf" {
				continue
			}
			declared++
			if op := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name; !decided[op] {
				t.Errorf("core.%s is an operation that apply does not decide", op)
			}
		}
	}
	if declared < 30 {
		t.Errorf("found %d operations in package core: this test looks in the wrong place", declared)
	}
}

func parse(t *testing.T, pattern string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}
