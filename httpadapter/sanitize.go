package httpadapter

import "github.com/microcosm-cc/bluemonday"

// descPolicy is what is left of a description's HTML: text, its emphasis and structure, and links that tell nobody where they were followed from.
// No images, which could tell that and when a driver looked; nothing that loads, runs or is styled.
func descPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "b", "strong", "i", "em", "u", "s", "small", "ul", "ol", "li", "h1", "h2", "h3", "h4", "blockquote", "pre", "code", "hr")
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
