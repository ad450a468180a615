package httpadapter

import (
	"slices"
	"sync"
	"weak"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/gzipped"
)

// frame is one state in the life of a link. All who watch the link share it, and with it each form
// that it goes out in, which is made when first needed.
type frame struct {
	number int // of the frames of its feed, from 1
	view   view
	state  func() (chunk, error) // all of it, for those who come
	move   func() (chunk, error) // the step from the frame before, for those who have that; nil: there is none
	// the move deflated, for those whose last event was the move before; nil: that was none
	onward func() []byte
}

// chunk is text of a stream of server-sent events, plain and as a part of a gzip stream.
type chunk struct {
	text     []byte
	deflated func() []byte
}

func chunkOf(text []byte) chunk {
	return chunk{text, sync.OnceValue(func() []byte { return gzipped.Deflate(nil, text) })}
}

var (
	retryEvent = chunkOf([]byte("retry: 3000\n\n"))
	beatEvent  = chunkOf([]byte(": still here\n\n"))
	endEvent   = chunkOf([]byte("event: end\ndata: {}\n\n"))
)

// encodeEvent makes a chunk of a value, as an event of that name.
func encodeEvent(name string, v any) (chunk, error) {
	body, err := encode(v) // ends with a newline, and has no other
	if err != nil {
		return chunk{}, err
	}
	return chunkOf(slices.Concat([]byte("event: "+name+"\ndata: "), body, []byte("\n"))), nil
}

// encodeOnce does it when it is first asked for.
func encodeOnce(name string, v any) func() (chunk, error) {
	return sync.OnceValues(func() (chunk, error) { return encodeEvent(name, v) })
}

// encodeAgain is encodeOnce for what is long and seldom asked for: the garbage collector may take it
// away, and it is made anew.
func encodeAgain(name string, v any) func() (chunk, error) {
	var mu sync.Mutex
	var made weak.Pointer[chunk]
	return func() (chunk, error) {
		mu.Lock()
		defer mu.Unlock()
		if c := made.Value(); c != nil {
			return *c, nil
		}
		c, err := encodeEvent(name, v)
		if err == nil {
			made = weak.Make(&c)
		}
		return c, err
	}
}

// newFrame is the frame that follows last, or the first one when that is nil.
func newFrame(last *frame, v view) *frame {
	f := &frame{number: 1, view: v, state: encodeAgain("state", v)}
	if last == nil {
		return f
	}
	f.number = last.number + 1
	m, ok := last.view.moveTo(v)
	if !ok {
		return f
	}
	f.move = encodeOnce("move", m)
	if before := last.move; before != nil { // not last itself, or each frame would keep all before it
		f.onward = sync.OnceValue(func() []byte {
			b, errBefore := before()
			e, err := f.move()
			if errBefore != nil || err != nil {
				return nil
			}
			return gzipped.Deflate(b.text, e.text)
		})
	}
	return f
}

// watcher is one stream of a link. Not for concurrent use.
type watcher struct {
	eventWriter
	zip   *gzipped.Stream // nil: plain
	seen  *frame          // what is shown; nil: nothing yet
	moved bool            // the last that was sent is the move to it, as all get it
	beats int             // how many of its feed's heartbeats are past
}

// say sends an event that is no frame.
func (w *watcher) say(e chunk) error {
	w.moved = false
	return w.pass(e.text, e.deflated)
}

// show brings the watcher to a moment: by the move to it, which whoever has the frame before
// shares; who was slow and missed frames gets a move of his own over all of them; where it is no
// move, the whole state. The error is one of ours.
func (w *watcher) show(at moment) (gone bool, err error) {
	f := at.frame
	still := at.beats != w.beats
	w.beats = at.beats
	if f == w.seen {
		return still && w.say(beatEvent) != nil, nil
	}
	next, step := f.state, false
	switch {
	case w.seen == nil:
	case f.number == w.seen.number+1:
		if f.move != nil {
			next, step = f.move, true
		}
	default:
		if m, ok := w.seen.view.moveTo(f.view); ok {
			next = encodeOnce("move", m)
		}
	}
	e, err := next()
	if err != nil {
		return false, err
	}
	deflated := e.deflated
	if step && w.moved && f.onward != nil {
		deflated = f.onward
	}
	w.seen, w.moved = f, step
	return w.pass(e.text, deflated) != nil, nil
}

func (w *watcher) pass(text []byte, deflated func() []byte) error {
	if w.zip == nil {
		return w.send(text)
	}
	return w.flush(func() error { return w.zip.Write(deflated(), text) })
}

// close ends the gzip stream, if it is one.
func (w *watcher) close() error {
	if w.zip == nil {
		return nil
	}
	return w.flush(w.zip.Close)
}
