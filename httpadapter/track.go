package httpadapter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

func (h *Handler) trackState(r *request) (answer, error) {
	v, err := r.svc.Tracking(r.Context(), r.path["token"])
	if err != nil {
		return nil, err
	}
	return ok("Tracking", list{"tracking": viewOf(v)})
}

// trackLive streams the state of a link as server-sent events: "state" with each change, "end" after the last one. It answers 204 when all is over already,
// at which browsers do not connect again.
func (h *Handler) trackLive(r *request) (answer, error) {
	if r.Method == http.MethodHead {
		v, err := r.svc.Tracking(r.Context(), r.path["token"])
		if err != nil {
			return nil, err
		}
		return stream{over: v.Ended}, nil
	}
	f, leave, err := h.feeds.join(h.svc, r.path["token"], h.opts.MaxStreams)
	if err != nil {
		return nil, err
	}
	defer func() {
		if leave != nil {
			leave()
		}
	}()
	at, changed := f.now()
	for at.version == 0 && !at.done {
		select {
		case <-changed:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		at, changed = f.now()
	}
	switch {
	case at.version == 0 && at.err != nil:
		return nil, at.err
	case at.version == 0:
		return nil, errClosing
	}
	s := stream{feed: f, leave: leave, over: at.over}
	leave = nil
	return s, nil
}

var (
	errClosing     = &tracking.Error{Code: tracking.ErrUnavailable, Message: "The server is going down; try again.", RetryAfter: time.Second}
	errManyViewers = &tracking.Error{Code: tracking.ErrRateLimited, Message: "Too many viewers follow this link; try again later, or ask for its state.", RetryAfter: 30 * time.Second}
)

// stream is a live answer.
type stream struct {
	feed  *feed
	leave func()
	over  bool
}

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
	out := h.startEvents(w)
	defer out.end()
	if r.Method == http.MethodHead {
		return nil
	}
	if out.send([]byte("retry: 3000\n\n")) != nil {
		return nil // the viewer has gone
	}
	beat := time.NewTicker(h.opts.Heartbeat)
	defer beat.Stop()
	for seen := 0; ; {
		at, changed := s.feed.now()
		if at.version > seen {
			seen = at.version
			if out.send(at.event) != nil {
				return nil
			}
		}
		if at.done {
			if at.over {
				_ = out.send([]byte("event: end\ndata: {}\n\n"))
			}
			return nil // else without an end, so that the viewer comes again
		}
		select {
		case <-changed:
		case <-beat.C:
			if out.send([]byte(": still here\n\n")) != nil {
				return nil
			}
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
	e.h.extend(e.w)
	if _, err := e.w.Write(b); err != nil {
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

// feeds are the links that are being watched. All watchers of a link share one reader and one encoding of each state.
type feeds struct {
	log  *slog.Logger
	mu   sync.Mutex
	open map[string]*feed // by token
}

// feed is one link.
type feed struct {
	watchers int // guarded by feeds.mu
	stop     context.CancelFunc

	mu      sync.Mutex
	at      moment
	changed chan struct{} // closed at the next change
}

// moment is what a feed has come to.
type moment struct {
	version int    // of the state; 0: none yet
	event   []byte // the state as an event
	over    bool   // it is the final one, or the link has died
	done    bool   // nothing more comes
	err     error  // why there is none
}

func (f *feed) now() (moment, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at, f.changed
}

func (f *feed) set(change func(*moment)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.at)
	close(f.changed)
	f.changed = make(chan struct{})
}

// join adds a watcher to the token's feed, which the first one starts and the last one to leave stops.
func (fs *feeds) join(svc *tracking.Service, token string, limit int) (f *feed, leave func(), err error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f = fs.open[token]
	if f == nil {
		ctx, stop := context.WithCancel(context.Background()) // it outlives the call of the watcher who began it
		f = &feed{stop: stop, changed: make(chan struct{})}
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
	for v, err := range svc.Follow(ctx, token) {
		if err != nil {
			f.set(func(m *moment) { m.err, m.over = err, errors.Is(err, tracking.ErrNotFound) })
			return
		}
		body, err := encode(viewOf(v))
		if err != nil {
			f.set(func(m *moment) { m.err = err })
			return
		}
		event := slices.Concat([]byte("event: state\ndata: "), body, []byte("\n")) // the encoding ends with a newline, and has no other
		f.set(func(m *moment) { m.version, m.event, m.over = m.version+1, event, v.Ended })
	}
}
