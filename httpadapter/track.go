package httpadapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"runtime/debug"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/gzipped"
)

func (h *Handler) trackState(r *request) (answer, error) {
	v, err := r.svc.Tracking(r.Context(), r.path.of("token"))
	if err != nil {
		return nil, err
	}
	return smaller{"Tracking", true, list{"tracking": h.view(v)}}, nil
}

// customerNote is what the holder of a link writes to the driver.
type customerNote struct {
	Text string `json:"text" strict:"required"`
}

// trackNote tells the driver. The answer repeats nothing: the state of the link shows the note.
func (h *Handler) trackNote(r *request, b customerNote) (answer, error) {
	if err := r.svc.NoteFromCustomer(r.Context(), r.path.of("token"), b.Text); err != nil {
		return nil, err
	}
	return ok("Note sent", nil)
}

// trackLive streams what a link shows as server-sent events: "state" at first and with each change,
// "move" instead while the driver does nothing but move, "end" after the last one. It answers 204
// when all is over already, at which browsers do not connect again.
func (h *Handler) trackLive(r *request) (answer, error) {
	if r.Method == http.MethodHead {
		v, err := r.svc.Tracking(r.Context(), r.path.of("token"))
		if err != nil {
			return nil, err
		}
		return stream{over: v.Ended}, nil
	}
	f, leave, err := h.feeds.join(h.svc, r.path.of("token"), h.opts.MaxStreams, h.view)
	if err != nil {
		return nil, err
	}
	defer func() {
		if leave != nil {
			leave()
		}
	}()
	at, changed := f.now()
	for at.frame == nil && !at.done {
		select {
		case <-changed:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		at, changed = f.now()
	}
	switch {
	case at.frame == nil && at.err != nil:
		return nil, at.err
	case at.frame == nil:
		return nil, errClosing
	}
	s := stream{feed: f, leave: leave, over: at.over}
	leave = nil
	return s, nil
}

var (
	errClosing = &tracking.Error{
		Code: tracking.ErrUnavailable, Message: "The server is going down; try again.", RetryAfter: time.Second,
	}
	errManyViewers = &tracking.Error{
		Code:       tracking.ErrRateLimited,
		Message:    "Too many viewers follow this link; try again later, or ask for its state.",
		RetryAfter: 30 * time.Second,
	}
)

// stream is a live answer.
type stream struct {
	feed  *feed
	leave func()
	over  bool
}

// write streams a link: its whole state first, and then what changes, until the end or until the
// client goes.
func (s stream) write(h *Handler, w *recorder, r *request) error {
	if s.leave != nil {
		defer s.leave()
	}
	if s.over {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.extend(w)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}

	w.Header().Add("Vary", "Accept-Encoding")
	zip := gzipped.Accepts(r.Header)
	if zip {
		w.Header().Set("Content-Encoding", "gzip")
	}
	out := watcher{eventWriter: h.startEvents(w)}
	defer out.end()
	if r.Method == http.MethodHead {
		return nil
	}
	if zip {
		out.zip = gzipped.NewStream(w)
	}
	if out.say(retryEvent) != nil {
		return nil // the viewer has gone
	}

	// The feed is shared by all who watch the link: show what is new of it, and wait.
	for {
		at, changed := s.feed.now()
		if gone, err := out.show(at); gone || err != nil {
			return err
		}
		if at.done {
			if at.over && out.say(endEvent) != nil {
				return nil
			}
			_ = out.close() // the viewer may have gone
			return nil      // unless it is over without an end, so that the viewer comes again
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return nil
		}
	}
}

// eventWriter sends server-sent events, each with its own time to be taken.
type eventWriter struct {
	h  *Handler
	w  http.ResponseWriter
	rc *http.ResponseController
}

// startEvents begins a stream of server-sent events.
func (h *Handler) startEvents(w *recorder) eventWriter {
	hd := w.Header()
	hd.Set("Cache-Control", "no-store")
	hd.Set("X-Content-Type-Options", "nosniff")
	hd.Set("Content-Type", "text/event-stream; charset=utf-8")
	hd.Set("X-Accel-Buffering", "no") // nginx holds answers back otherwise
	h.extend(w)
	w.WriteHeader(http.StatusOK)
	return eventWriter{h, w, http.NewResponseController(w)}
}

func (e eventWriter) send(b []byte) error {
	return e.flush(func() error { _, err := e.w.Write(b); return err })
}

// flush has something written, and sees to it that it goes out.
func (e eventWriter) flush(write func() error) error {
	e.h.extend(e.w)
	if err := write(); err != nil {
		return err
	}
	if err := e.rc.Flush(); err != nil {
		return err
	}
	lift(e.w)
	return nil
}

// end gives the server time to end the answer.
func (e eventWriter) end() { e.h.extend(e.w) }

// feeds are the links that are being watched. All watchers of a link share one reader and one
// encoding of each change.
type feeds struct {
	log   *slog.Logger
	quiet time.Duration // how long nothing may be heard of a link
	mu    sync.Mutex
	open  map[string]*feed // by token
}

// feed is one link.
type feed struct {
	watchers int // guarded by feeds.mu
	stop     context.CancelFunc
	show     func(tracking.Tracking) view

	mu      sync.Mutex
	at      moment
	changed chan struct{} // closed at the next change
	quiet   time.Duration
	beat    *time.Timer // when nothing has changed for as long: one for all, and none for each watcher
}

// moment is what a feed has come to.
type moment struct {
	frame *frame // what is shown; nil: nothing yet
	beats int    // how often it was said that nothing is new
	over  bool   // it is the final one, or the link has died
	done  bool   // nothing more comes
	err   error  // why there is none
}

func (f *feed) now() (moment, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, f.changed
}

func (f *feed) set(change func(*moment)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.at
	change(&f.at)
	close(f.changed)
	f.changed = make(chan struct{})
	switch {
	case f.at.done:
		f.beat.Stop()
	case f.at.frame != before.frame || f.at.beats != before.beats: // something is sent
		f.beat.Reset(f.quiet)
	}
}

// join adds a watcher to the token's feed, which the first one starts and the last one to leave
// stops.
func (fs *feeds) join(
	svc *tracking.Service, token string, limit int, show func(tracking.Tracking) view,
) (f *feed, leave func(), err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f = fs.open[token]
	if f == nil {
		ctx, stop := context.WithCancel(context.Background()) // it outlives the call of the watcher who began it
		f = &feed{stop: stop, show: show, changed: make(chan struct{}), quiet: fs.quiet}
		f.mu.Lock()
		f.beat = time.AfterFunc(fs.quiet, func() { f.set(func(m *moment) { m.beats++ }) })
		f.mu.Unlock()
		fs.open[token] = f
		go func() {
			defer stop()
			f.follow(ctx, svc, token, fs.log)
			fs.forget(token, f)
		}()
	}
	if f.watchers >= limit {
		return nil, nil, errManyViewers
	}
	f.watchers++
	return f, func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		if f.watchers--; f.watchers == 0 {
			f.stop()
			if fs.open[token] == f {
				delete(fs.open, token)
			}
		}
	}, nil
}

// forget lets the next watcher begin anew.
func (fs *feeds) forget(token string, f *feed) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.open[token] == f {
		delete(fs.open, token)
	}
}

// follow reads and encodes until there is nothing more to come.
func (f *feed) follow(ctx context.Context, svc *tracking.Service, token string, log *slog.Logger) {
	defer f.set(func(m *moment) { m.done = true })
	defer func() {
		if v := recover(); v != nil { // this is no call's goroutine: nobody else would keep the program from ending
			err := fmt.Errorf("panic: %v\n%s", v, debug.Stack())
			log.ErrorContext(ctx, "a tracking link cannot be followed", "err", err)
			f.set(func(m *moment) { m.err = err })
		}
	}()
	var last *frame
	for v, err := range svc.Follow(ctx, token) {
		if err != nil {
			f.set(func(m *moment) { m.err, m.over = err, errors.Is(err, tracking.ErrNotFound) })
			return
		}
		if next := f.show(v); last == nil || !reflect.DeepEqual(last.view, next) { // it may differ by less than is sent
			last = newFrame(last, next)
		}
		f.set(func(m *moment) { m.frame, m.over = last, v.Ended })
	}
}
