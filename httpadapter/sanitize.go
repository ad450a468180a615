package httpadapter

import (
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// descPolicy is what is left of a description's HTML: text, its emphasis and structure, and links
// that tell nobody where they were followed from. No images, which could tell that and when a
// driver looked; nothing that loads, runs or is styled.
func descPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "b", "strong", "i", "em", "u", "s", "small", "ul", "ol", "li", "h1", "h2", "h3", "h4",
		"blockquote", "pre", "code", "hr")
	p.AllowElements("table", "thead", "tbody", "tr", "th", "td")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto", "tel", "geo")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoReferrerOnLinks(true)
	p.RequireNoFollowOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
}

// cleanHTML sanitises a description, and closes what was left open, so that it cannot reach beyond
// the element that a page puts it in.
func (h *Handler) cleanHTML(desc string) string {
	clean := h.clean.Sanitize(desc)
	nodes, err := html.ParseFragment(strings.NewReader(clean), &html.Node{
		Type: html.ElementNode, Data: "div", DataAtom: atom.Div,
	})
	if err != nil {
		return html.EscapeString(desc)
	}
	var b strings.Builder
	for _, n := range nodes {
		if err := html.Render(&b, n); err != nil {
			return html.EscapeString(desc)
		}
	}
	return b.String()
}
