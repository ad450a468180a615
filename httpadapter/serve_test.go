package httpadapter_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// telling is a notifier that passes on the types of events.
type telling chan tracking.EventType

func (c telling) Notify(_ context.Context, n tracking.Notification) error {
	c <- n.Event.Type
	return nil
}

// TestServe: what is due is done while it serves, and a stream that is open when it is to end does not
// hold it up.
func TestServe(t *testing.T) {
	told := make(chan tracking.EventType, 10)
	svc, err := tracking.New(memory.New(), &tracking.Options{
		Logger: quiet(), Notifier: telling(told),
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpadapter.New(svc, &httpadapter.Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- httpadapter.Serve(ctx, svc, &http.Server{Handler: h}, l) }()

	task, err := svc.CreateTask(t.Context(), tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-told; got != tracking.EventTaskCreated {
		t.Errorf("the notifier is told %s", got)
	}
	token, err := svc.TaskLink(t.Context(), task.ID)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.Get("http://" + l.Addr().String() + h.TrackingURL(token) + "/live")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if stream.StatusCode != http.StatusOK {
		t.Fatal(stream.Status)
	}
	stop()
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v", err)
	}

	if err := httpadapter.Serve(t.Context(), svc, &http.Server{Handler: h}, l); !errors.Is(err, net.ErrClosed) {
		t.Errorf("on a listener that is closed it ends with %v", err)
	}
}

// fetch is a page that Example asks for.
func fetch(address string) (status, body string) {
	resp, err := http.Get(address)
	if err != nil {
		return err.Error(), ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error(), ""
	}
	return resp.Status, string(text)
}
