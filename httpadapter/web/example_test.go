package web_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// A page in the look of a shop, in the language that the browser asks for. To serve all of them, with
// what they call, is for package httpadapter, whose Options.Site takes the same Site.
func Example() {
	fronts, err := web.New()
	if err != nil {
		panic(err)
	}
	site := web.Site{Name: "Shop", Color: "#0a7d33"}
	if err := site.Check(); err != nil {
		panic(err)
	}
	page, err := fronts.Board(site, "de-CH,de;q=0.9,en;q=0.5", time.Now(), web.BoardOptions{Keys: true})
	if err != nil {
		panic(err)
	}
	w := httptest.NewRecorder()
	page.Serve(w, httptest.NewRequest("GET", "/board/", nil), 200)
	fmt.Println(w.Code, page.Language, strings.Contains(w.Body.String(), "Shop"))
	// Output: 200 de true
}
