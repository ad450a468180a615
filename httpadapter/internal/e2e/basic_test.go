package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// A program whose login is HTTP Basic: a page of its own has the browser ask for it, and goes on to
// the board, where it is signed in.
func TestBoardBehindBasic(t *testing.T) {
	svc, err := tracking.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	login := func(r *http.Request) (httpadapter.Principal, error) {
		if user, given, _ := r.BasicAuth(); user != "owner" || given != "pw" {
			return httpadapter.Principal{}, tracking.ErrUnauthorized
		}
		return httpadapter.Principal{Actor: "user:owner"}, nil
	}
	h, err := httpadapter.New(svc, &httpadapter.Options{Prefix: "/delivery", Authenticate: login})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	h.Mount(mux)
	mux.HandleFunc("GET /owner", func(w http.ResponseWriter, r *http.Request) {
		if _, err := login(r); err != nil {
			w.Header().Set("WWW-Authenticate", `Basic realm="Shop"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		token, err := svc.SignIn(r.Context(), "user:owner")
		if err != nil {
			t.Error(err)
		}
		http.Redirect(w, r, h.SignInURL(token), http.StatusSeeOther)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	p := newPerson(t, chromium(t), "the owner", server.URL)
	p.desk(1280, 800)
	p.expected = append(p.expected, "status of 401")
	p.open(server.URL + "/delivery/board/")
	p.see("that it is the program's to sign in", `document.querySelector('.signin .hint') !== null`)
	p.open("http://owner:pw@" + strings.TrimPrefix(server.URL, "http://") + "/owner")
	p.see("the board", live)
	p.see("its address alone", `location.pathname === '/delivery/board/' && location.hash === ''`)
	p.open(server.URL + "/delivery/board/")
	p.see("the board, later", live)
	p.onlyFrom(server.URL)
}
