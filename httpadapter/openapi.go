package httpadapter

import (
	_ "embed"
	"net/http"
	"sync"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/apidocs"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// openapiJSON describes every route of the table. A test holds its paths and methods to the table,
// and internal/e2e holds to it what the tests of this package are answered.
//
//go:embed openapi.json
var openapiJSON []byte

// openapi serves the description. It stands without an envelope, as tools want it; its server is
// the relative address "..", so that it is right under any prefix.
func (h *Handler) openapi(*request) (answer, error) { return document(openapiJSON), nil }

// document is a body that is JSON already.
type document []byte

func (d document) write(h *Handler, w *recorder, r *request) error {
	r.jsonHeaders()
	return h.writeBody(w, r, http.StatusOK, d)
}

// docsPage is the description for people.
var docsPage = sync.OnceValues(func() (web.Page, error) {
	html, policy, err := apidocs.Render(openapiJSON)
	return web.Page{HTML: html, CSP: policy, Language: "en"}, err
})

func (h *Handler) docs(*request) (answer, error) {
	page, err := docsPage()
	return htmlPage(page), err
}
