package docsite

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"

	template "github.com/DataDog/datadog-agent/pkg/template/html"
	"github.com/russross/blackfriday/v2"
)

//go:embed static
var static embed.FS

// indexPage is the Markdown file that becomes index.html. Its lists of links are the navigation.
const indexPage = "README.md"

// Site holds the files of the site by name.
type Site struct{ files map[string][]byte }

// File returns a file of the site; nil if there is none.
func (s *Site) File(name string) []byte { return s.files[name] }

// Names lists the files of the site.
func (s *Site) Names() []string {
	names := make([]string, 0, len(s.files))
	for name := range s.files {
		names = append(names, name)
	}
	return names
}

// navGroup is a heading of the index with the pages below it.
type navGroup struct {
	Title string
	Links []navLink
}

type navLink struct{ Title, Href string }

// document is a parsed page.
type document struct {
	name string // operating.md
	root *blackfriday.Node
}

// extensions are those of Markdown on GitHub.
const extensions = blackfriday.NoIntraEmphasis | blackfriday.Tables | blackfriday.FencedCode | blackfriday.Autolink |
	blackfriday.Strikethrough | blackfriday.SpaceHeadings | blackfriday.NoEmptyLineBeforeBlock

func parse(name string, source []byte) *document {
	d := &document{name: name, root: blackfriday.New(blackfriday.WithExtensions(extensions)).Parse(source)}
	d.nameHeadings()
	d.rewriteLinks()
	return d
}

// children calls do for each block of a page. It may remove the block.
func (d *document) children(do func(*blackfriday.Node)) {
	for n := d.root.FirstChild; n != nil; {
		next := n.Next
		do(n)
		n = next
	}
}

// nameHeadings gives headings the names that they have on GitHub.
func (d *document) nameHeadings() {
	seen := make(map[string]int)
	d.children(func(n *blackfriday.Node) {
		if n.Type != blackfriday.Heading {
			return
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, plainText(n))
		n.HeadingID = name
		if seen[name]++; seen[name] > 1 {
			n.HeadingID = fmt.Sprintf("%s-%d", name, seen[name]-1)
		}
	})
}

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
		pages = append(pages, parse(entry.Name(), content))
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
		var page bytes.Buffer
		err := frame.Execute(&page, map[string]any{
			"Title": d.title(), "Page": pageName(d.name), "Nav": nav,
			"Body": template.HTML(d.html()), //nolint:gosec // it has no HTML of the Markdown file, and the pages are ours
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

// html renders a page. HTML in the Markdown file is left out.
func (d *document) html() string {
	r := blackfriday.NewHTMLRenderer(blackfriday.HTMLRendererParameters{Flags: blackfriday.SkipHTML})
	var body strings.Builder
	d.root.Walk(func(n *blackfriday.Node, entering bool) blackfriday.WalkStatus {
		return r.RenderNode(&body, n, entering)
	})
	return body.String()
}

// links calls do for each link below a node.
func links(below *blackfriday.Node, do func(link *blackfriday.Node)) {
	below.Walk(func(n *blackfriday.Node, entering bool) blackfriday.WalkStatus {
		if n.Type == blackfriday.Link && entering {
			do(n)
		}
		return blackfriday.GoToNext
	})
}

// rewriteLinks makes links to other Markdown files links to their pages. A link that leads to anything but a page or a web
// address becomes text: the site does not have its target.
func (d *document) rewriteLinks() {
	var outside []*blackfriday.Node
	links(d.root, func(link *blackfriday.Node) {
		target := string(link.Destination)
		file, anchor, _ := strings.Cut(target, "#")
		switch {
		case strings.HasSuffix(file, ".md") && !strings.Contains(file, "/"):
			if anchor != "" {
				anchor = "#" + anchor
			}
			link.Destination = []byte(pageName(file) + anchor)
		case file != "" && !strings.HasPrefix(target, "https://") && !strings.HasPrefix(target, "http://"):
			outside = append(outside, link)
		}
	})
	for _, link := range outside {
		for child := link.FirstChild; child != nil; child = link.FirstChild {
			link.InsertBefore(child)
		}
		link.Unlink()
	}
}

// title is the first heading of a page.
func (d *document) title() string {
	for n := d.root.FirstChild; n != nil; n = n.Next {
		if n.Type == blackfriday.Heading {
			return plainText(n)
		}
	}
	return d.name
}

// navigation reads the headings of the index and the links in the lists below them. Links to one page are one entry.
func navigation(index *document) []navGroup {
	nav := []navGroup{{Links: []navLink{{Title: index.title(), Href: pageName(indexPage)}}}}
	index.children(func(n *blackfriday.Node) {
		switch {
		case n.Type == blackfriday.Heading && n.Level == 2:
			nav = append(nav, navGroup{Title: plainText(n)})
		case n.Type == blackfriday.List:
			group := &nav[len(nav)-1]
			links(n, func(link *blackfriday.Node) {
				if strings.HasSuffix(string(link.Destination), ".html") {
					group.Links = append(group.Links, navLink{Title: plainText(link), Href: string(link.Destination)})
				}
			})
		}
	})
	return nav
}

// plainText is the text of a node without its form.
func plainText(n *blackfriday.Node) string {
	var b strings.Builder
	n.Walk(func(n *blackfriday.Node, entering bool) blackfriday.WalkStatus {
		switch {
		case n.Type == blackfriday.Text || n.Type == blackfriday.Code || n.Type == blackfriday.CodeBlock:
			b.Write(n.Literal)
		case !entering:
			b.WriteByte(' ')
		}
		return blackfriday.GoToNext
	})
	return strings.Join(strings.Fields(b.String()), " ")
}
