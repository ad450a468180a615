package httpadapter_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// goneWriter is the answer to a caller that has gone, while what it was given is still being sent, as
// HTTP/2 can have it.
type goneWriter struct {
	*httptest.ResponseRecorder
	sending []byte
}

func (w *goneWriter) Write(b []byte) (int, error) {
	w.sending = b
	return 0, errors.New("the stream is closed")
}

// TestBrokenAnswerIsNotReused: what may still be on its way to one application never becomes what
// another is answered.
func TestBrokenAnswerIsNotReused(t *testing.T) {
	s := newServer(t)
	for _, app := range []tracking.AppID{"a", "b"} {
		if _, err := s.svc.ForApp(app).CreateTask(t.Context(), tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "street of " + string(app)},
		}); err != nil {
			t.Fatal(err)
		}
	}
	list := func(w http.ResponseWriter, key string) {
		r := httptest.NewRequest("GET", "/v1/task/list", nil)
		r.Header.Set("X-Api-Key", key)
		s.h.ServeHTTP(w, r)
	}
	for range 20 {
		gone := &goneWriter{ResponseRecorder: httptest.NewRecorder()}
		list(gone, "key-a")
		was := string(gone.sending)
		if was == "" {
			t.Fatal("nothing was answered")
		}
		list(httptest.NewRecorder(), "key-b")
		if string(gone.sending) != was {
			t.Fatalf("what is being sent to one application\n%s\nhas become\n%s", was, gone.sending)
		}
	}
}
