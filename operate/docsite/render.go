package docsite

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"iter"
	"maps"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

//go:embed static
var static embed.FS

// indexPage is the Markdown file that becomes index.html. Its lists of links are the navigation.
const indexPage = "README.md"

// Site holds the files of the site by name.
type Site struct{ files map[string][]byte }

// File returns a file of the site; nil if there is none.
func (s *Site) File(name string) []byte { return s.files[name] }

// Names returns the names of the files.
func (s *Site) Names() iter.Seq[string] { return maps.Keys(s.files) }

// navGroup is a heading of the index with the pages below it.
type navGroup struct {
	Title string
	Links []navLink
}

type navLink struct{ Title, Href string }

// document is a parsed page.
type document struct {
	name   string // operating.md
	source []byte
	root   ast.Node
}

var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
)

// Render renders the Markdown files of a folder, and copies its pictures.
func Render(source fs.FS) (*Site, error) {
	s := &Site{files: make(map[string][]byte)}
	entries, err := fs.ReadDir(source, ".")
	if err != nil {
		return nil, err
	}
	var pages []*document
	for _, entry := range entries {
		content, err := fs.ReadFile(source, entry.Name())
		if err != nil {
			return nil, err
		}
		if path.Ext(entry.Name()) != ".md" {
			s.files[entry.Name()] = content
			continue
		}
		d := &document{name: entry.Name(), source: content, root: markdown.Parser().Parse(text.NewReader(content))}
		rewriteLinks(d.root)
		pages = append(pages, d)
	}
	for _, name := range []string{"docs.css", "docs.js", "icon.svg"} {
		if s.files[name], err = static.ReadFile("static/" + name); err != nil {
			return nil, err
		}
	}
	if s.files["search-index.js"], err = searchIndex(pages); err != nil {
		return nil, err
	}
	return s, s.renderPages(pages)
}

func (s *Site) renderPages(pages []*document) error {
	frame, err := template.ParseFS(static, "static/page.html")
	if err != nil {
		return err
	}
	var nav []navGroup
	for _, d := range pages {
		if d.name == indexPage {
			nav = navigation(d)
		}
	}
	for _, d := range pages {
		var body, page bytes.Buffer
		if err := markdown.Renderer().Render(&body, d.source, d.root); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		err := frame.Execute(&page, map[string]any{
			"Title": d.title(), "Page": pageName(d.name), "Nav": nav,
			"Body": template.HTML(body.String()), // goldmark drops raw HTML, and the pages are our own
		})
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		s.files[pageName(d.name)] = page.Bytes()
	}
	return nil
}

// pageName is the name of a Markdown file on the site.
func pageName(file string) string {
	if file == indexPage {
		return "index.html"
	}
	return strings.TrimSuffix(file, ".md") + ".html"
}

// rewriteLinks turns links to Markdown files into links to their pages. A link to a file outside the folder becomes
// plain text, because the site does not contain that file.
func rewriteLinks(root ast.Node) {
	var outside []*ast.Link
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		link, isLink := n.(*ast.Link)
		if !isLink || !entering {
			return ast.WalkContinue, nil
		}
		target := string(link.Destination)
		file, anchor, _ := strings.Cut(target, "#")
		switch {
		case strings.HasPrefix(target, "../"):
			outside = append(outside, link)
		case strings.HasSuffix(file, ".md") && !strings.Contains(file, "/"):
			if anchor != "" {
				anchor = "#" + anchor
			}
			link.Destination = []byte(pageName(file) + anchor)
		}
		return ast.WalkContinue, nil
	})
	for _, link := range outside {
		parent := link.Parent()
		for child := link.FirstChild(); child != nil; {
			next := child.NextSibling()
			parent.InsertBefore(parent, link, child)
			child = next
		}
		parent.RemoveChild(parent, link)
	}
}

// title is the first heading of a page.
func (d *document) title() string {
	for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, isHeading := n.(*ast.Heading); isHeading {
			return plainText(h, d.source)
		}
	}
	return d.name
}

// navigation reads the headings of the index and the links in the lists below them. Links to one page are one entry.
func navigation(index *document) []navGroup {
	nav := []navGroup{{Links: []navLink{{Title: index.title(), Href: pageName(indexPage)}}}}
	for n := index.root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, isHeading := n.(*ast.Heading); isHeading && h.Level == 2 {
			nav = append(nav, navGroup{Title: plainText(h, index.source)})
			continue
		}
		if _, isList := n.(*ast.List); !isList {
			continue
		}
		group := &nav[len(nav)-1]
		_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
			link, isLink := n.(*ast.Link)
			if isLink && entering && strings.HasSuffix(string(link.Destination), ".html") {
				group.Links = append(group.Links,
					navLink{Title: plainText(link, index.source), Href: string(link.Destination)})
			}
			return ast.WalkContinue, nil
		})
	}
	return nav
}

// plainText is the text of a node without formatting.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Value(source))
				b.WriteByte(' ')
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}
