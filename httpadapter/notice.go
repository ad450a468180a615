package httpadapter

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// notice is what a driver is told, with what is needed to act on it as it is now. A task that has
// gone to another driver, and a request that is no longer open, are named and not shown.
type notice struct {
	ID         int64               `json:"id"`
	Kind       tracking.NoticeKind `json:"kind"`
	Time       timeText            `json:"time"`
	TaskID     tracking.TaskID     `json:"task_id,omitempty"`
	TrackingID tracking.TrackingID `json:"tracking_id,omitempty"`
	Task       *task               `json:"task,omitempty"`
	Request    *tripRequest        `json:"request,omitempty"`
}

// maxNotices is how many notices one answer has.
const maxNotices = 100

// driverNotices is a driver's feed: as a stream for those who ask for one, else as a list.
func (h *Handler) driverNotices(r *request) (answer, error) {
	stream := acceptsEventStream(r.Header)
	after, given := int64(0), false
	if v := r.query.Filter("after"); v != "" {
		n, ok := strict.ParseInt(v)
		if !ok {
			r.query.Fail("after", "must be the id of a notice, in plain digits")
		}
		after, given = int64(n), true
	}
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	if last := r.Header.Get("Last-Event-ID"); stream && last != "" {
		n, ok := strict.ParseInt(last)
		if !ok {
			n = math.MaxInt // no id of ours: a place that there is not
		}
		after, given = int64(n), true
	}
	if stream {
		token, _ := bearer(r.Header)
		return noticeStream{after, given, token}, nil
	}
	notices, lost, err := h.notices(r, after)
	if err != nil {
		return nil, err
	}
	if lost && given {
		start, err := h.startAnew(r)
		if err != nil {
			return nil, err
		}
		return ok("Notifications", start)
	}
	if n := len(notices); n > 0 {
		after = notices[n-1].ID
	}
	return ok("Notifications", noticeFeed{Notices: notices, After: after})
}

// noticeFeed is a part of a feed. With Reset the caller's place in it is lost, and Tasks and
// Requests say how things stand.
type noticeFeed struct {
	Notices  []notice      `json:"notifications"`
	After    int64         `json:"after"` // where to go on
	Reset    bool          `json:"reset"`
	Tasks    []task        `json:"task_list,omitzero"`
	Requests []tripRequest `json:"requests,omitzero"`
}

func acceptsEventStream(hd http.Header) bool {
	for _, v := range hd.Values("Accept") {
		for part := range strings.SplitSeq(v, ",") {
			typ, _, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(typ), "text/event-stream") {
				return true
			}
		}
	}
	return false
}

// notices reads the part of the feed after an id.
func (h *Handler) notices(r *request, after int64) (list []notice, lost bool, err error) {
	raw, lost, err := r.svc.Notices(r.Context(), r.driver, after, maxNotices)
	if err != nil {
		return nil, false, err
	}
	list = make([]notice, 0, len(raw))
	var requests []tracking.Request
	for _, n := range raw {
		w := notice{ID: n.ID, Kind: n.Kind, Time: timeOf(n.Time), TaskID: n.TaskID, TrackingID: n.TrackingID}
		if n.TaskID != "" && n.Kind != tracking.NoticeUnassigned {
			t, err := r.svc.Task(r.Context(), n.TaskID)
			if err != nil {
				return nil, false, err
			}
			if t.DriverID == r.driver {
				shown := h.taskOf(t)
				if !t.Open() {
					shown = shown.done()
				}
				w.Task = &shown
			}
		}
		if n.Kind == tracking.NoticeRequest {
			if requests == nil {
				if requests, err = r.svc.Requests(r.Context(), r.driver); err != nil {
					return nil, false, err
				}
			}
			for _, q := range requests {
				if q.TrackingID == n.TrackingID {
					shown := h.requestOf(q)
					w.Request = &shown
				}
			}
		}
		list = append(list, w)
	}
	return list, lost, nil
}

// startAnew is what a caller needs whose place is lost. The place to go on from is read first: what
// comes after it is told again, nothing is missed.
func (h *Handler) startAnew(r *request) (noticeFeed, error) {
	feed := noticeFeed{Notices: []notice{}, Reset: true}
	for {
		raw, _, err := r.svc.Notices(r.Context(), r.driver, feed.After, maxNotices)
		if err != nil {
			return feed, err
		}
		if n := len(raw); n > 0 {
			feed.After = raw[n-1].ID
		}
		if len(raw) < maxNotices {
			break
		}
	}
	var err error
	if feed.Tasks, err = h.tasksOf(r); err != nil {
		return feed, err
	}
	requests, err := r.svc.Requests(r.Context(), r.driver)
	feed.Requests = mapped(requests, h.requestOf)
	return feed, err
}

// noticeStream sends a feed as server-sent events: "notice" for each, with its id; "reset" when the
// caller's place is lost.
type noticeStream struct {
	after int64
	given bool // the caller has a place to lose
	token string
}

// noticeLook is how often a stream looks for notices that another process has given: the net under
// wake-ups.
const noticeLook = 900 * time.Millisecond

// write streams a driver's feed, from the place that the client names, until it goes.
func (s noticeStream) write(h *Handler, w *recorder, r *request) error {
	wake, closed, stop := r.svc.Wakeups(tracking.Subject{Kind: tracking.KindDriver, ID: string(r.driver)})
	defer stop()
	notices, lost, err := h.notices(r, s.after) // what fails now can still be said
	if err != nil {
		h.writeError(w, r, err)
		return err
	}
	out := h.startEvents(w)
	defer out.end()
	if r.Method == http.MethodHead {
		return nil
	}
	if out.send([]byte("retry: 3000\n\n")) != nil {
		return nil // the driver's app has gone
	}
	beat := time.NewTicker(h.opts.Heartbeat)
	defer beat.Stop()
	for {
		var events []byte
		if lost && s.given {
			feed, err := h.startAnew(r)
			if err != nil {
				return err // it comes again
			}
			// when nothing is kept there is no place, and it is not lost again
			s.after, s.given = feed.After, feed.After > 0
			if events, err = appendEvent(events, "reset", s.after, feed); err != nil {
				return err
			}
			notices = nil
		}
		for _, n := range notices {
			if events, err = appendEvent(events, "notice", n.ID, n); err != nil {
				return err
			}
			s.after, s.given = n.ID, true
		}
		if events != nil && out.send(events) != nil {
			return nil
		}
		if len(notices) < maxNotices {
			if !s.waits(r, out, beat, wake, closed) {
				return nil
			}
			// A token that was revoked meanwhile ends the stream; coming again, the app learns why.
			if _, id, err := h.svc.AuthenticateDriver(r.Context(), tracking.TokenApp, s.token); err != nil ||
				id != r.driver {
				return nil
			}
		}
		if notices, lost, err = h.notices(r, s.after); err != nil {
			return nil
		}
	}
}

// waits waits for what may be news, and says meanwhile that the stream is there. It is false when the
// stream is to end.
func (s noticeStream) waits(r *request, out eventWriter, beat *time.Ticker, wake, closed <-chan struct{}) bool {
	look := time.NewTicker(noticeLook)
	defer look.Stop()
	for {
		select {
		case <-wake:
			return true
		case <-look.C:
			if more, lost, err := r.svc.Notices(r.Context(), r.driver, s.after, 1); err != nil || len(more) > 0 ||
				lost && s.given {
				return true
			}
		case <-beat.C:
			return out.send([]byte(": still here\n\n")) == nil
		case <-closed:
			return false
		case <-r.Context().Done():
			return false
		}
	}
}

func appendEvent(b []byte, name string, id int64, data any) ([]byte, error) {
	body, err := encode(data)
	if err != nil {
		return nil, err
	}
	b = append(b, "id: "...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, "\nevent: "...)
	b = append(b, name...)
	b = append(b, "\ndata: "...)
	b = append(b, body...) // ends with a newline, and has no other
	return append(b, '\n'), nil
}
