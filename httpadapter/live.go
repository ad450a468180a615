package httpadapter

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// liveBeat is the longest silence on the stream of an application, and how often it is looked whether
// who reads it still may.
const liveBeat = 5 * time.Second

// live streams what happens in the application: first all that is under way, and then what changes.
func (h *Handler) live(r *request) (answer, error) {
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	if r.Method == http.MethodHead {
		return liveStream{}, nil
	}
	reader, err := r.svc.Live(r.Context(), r.Header.Get("Last-Event-ID"))
	if err != nil {
		return nil, err
	}
	return liveStream{reader}, nil
}

// liveStream sends it as server-sent events.
type liveStream struct{ reader *tracking.LiveReader }

func (s liveStream) write(h *Handler, w *recorder, r *request) error {
	if s.reader != nil {
		defer s.reader.Close()
	}
	out := h.startEvents(w)
	defer out.end()
	if s.reader == nil {
		return nil
	}
	if out.send([]byte("retry: 3000\n\n")) != nil {
		return nil // who looked on has gone
	}
	every := min(h.opts.Heartbeat, liveBeat)
	for {
		until, cancel := context.WithTimeout(r.Context(), every)
		gone, err := s.sendUntil(until, h, out)
		cancel()
		if gone || err != nil {
			return err
		}
		if r.Context().Err() != nil || !h.still(r) || out.send(beatEvent.text) != nil {
			return nil
		}
	}
}

// sendUntil sends what is new until ctx ends. What fails within the service ends the stream, so that
// who reads comes again and is told.
func (s liveStream) sendUntil(ctx context.Context, h *Handler, out eventWriter) (gone bool, err error) {
	for {
		events, err := s.reader.Next(ctx)
		if err != nil {
			return ctx.Err() == nil, nil
		}
		var text []byte
		for _, e := range events {
			if text, err = h.appendLive(text, e); err != nil {
				return false, err
			}
		}
		if out.send(text) != nil {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, nil
		}
	}
}

// still reports whether the caller of an application's route is still known, and may still do what
// he did. A login that does not answer says nothing about it.
func (h *Handler) still(r *request) bool {
	p, err := h.principal(r)
	if err != nil {
		return errors.Is(err, tracking.ErrUnavailable)
	}
	return p.App == r.caller.App && p.Role == r.caller.Role
}

// The shapes of events.

type livePosition struct {
	DriverID tracking.DriverID `json:"driver_id"`
	LngLat   *point            `json:"lnglat"`
	Accuracy *float64          `json:"accuracy,omitempty"` // metres
	Heading  *float64          `json:"heading,omitempty"`  // degrees, clockwise from north
	Speed    *float64          `json:"speed,omitempty"`    // m/s
	Battery  *float64          `json:"battery,omitempty"`  // of the phone, 0 to 1
	At       timeText          `json:"at"`
}

func livePositionOf(d *tracking.Driver) livePosition {
	f := d.Position.Fix
	return livePosition{
		d.ID, pointOf(&f.LngLat), known(f.Accuracy), known(f.Bearing), known(f.Speed), known(f.Battery),
		timeOf(f.Time),
	}
}

type liveGone struct {
	TaskID   tracking.TaskID   `json:"task_id,omitempty"`
	DriverID tracking.DriverID `json:"driver_id,omitempty"`
}

type liveReady struct {
	At timeText `json:"at"`
}

// liveData is what an event says.
func (h *Handler) liveData(e tracking.LiveEvent) any {
	switch e.Kind {
	case tracking.LiveTask:
		return h.wholeTask(*e.Task)
	case tracking.LiveDriver:
		return operatorOf(*e.Driver)
	case tracking.LivePosition:
		return livePositionOf(e.Driver)
	case tracking.LiveReady:
		return liveReady{timeOf(e.At)}
	case tracking.LiveGone:
		if e.Subject.Kind == tracking.KindTask {
			return liveGone{TaskID: tracking.TaskID(e.Subject.ID)}
		}
		return liveGone{DriverID: tracking.DriverID(e.Subject.ID)}
	}
	return struct{}{}
}

// appendLive appends an event. What all readers are told is encoded once.
func (h *Handler) appendLive(b []byte, e tracking.LiveEvent) ([]byte, error) {
	key := liveKey{kind: e.Kind, task: e.Task, driver: e.Driver}
	if e.Task != nil {
		key.late = e.Task.Late(h.now())
	}
	encoded, err := h.told.once(key, func() ([]byte, error) { return encode(h.liveData(e)) })
	if err != nil {
		return nil, err
	}
	if e.Cursor != "" {
		b = append(append(append(b, "id: "...), e.Cursor...), '\n')
	}
	b = append(b, "event: "...)
	b = append(b, e.Kind...)
	b = append(b, "\ndata: "...)
	b = append(b, encoded...) // ends with a newline, and has no other
	return append(b, '\n'), nil
}

// liveKey names what an event is made of.
type liveKey struct {
	kind   tracking.LiveKind
	task   *tracking.Task
	driver *tracking.Driver
	late   bool
}

// liveCache keeps the last events that were encoded, for the other readers.
type liveCache struct {
	mu   sync.Mutex
	of   map[liveKey][]byte
	keys []liveKey // of of, the oldest at next
	next int
}

const liveCached = 2048

func (c *liveCache) once(key liveKey, encode func() ([]byte, error)) ([]byte, error) {
	if key.task == nil && key.driver == nil {
		return encode()
	}
	c.mu.Lock()
	b, ok := c.of[key]
	c.mu.Unlock()
	if ok {
		return b, nil
	}
	b, err := encode()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.of[key]; ok {
		return b, nil
	}
	if len(c.keys) < liveCached {
		c.keys = append(c.keys, key)
	} else {
		delete(c.of, c.keys[c.next])
		c.keys[c.next], c.next = key, (c.next+1)%liveCached
	}
	c.of[key] = b
	return b, nil
}
