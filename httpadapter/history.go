package httpadapter

import (
	"bufio"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"

	"github.com/seed-8aba7b13/tracking"
)

func (h *Handler) tripHistory(r *request) (answer, error) {
	t, path, err := r.svc.TripPath(r.Context(), r.tripID())
	if err != nil {
		return nil, err
	}
	return history{t, path}, nil
}

// history streams a path, which may be far larger than memory should hold at once.
type history struct {
	trip tracking.Trip
	path iter.Seq2[tracking.Fix, error]
}

// write streams the path while it is read; it is never in memory as a whole.
func (a history) write(h *Handler, w *recorder, r *request) error {
	if r.Method == http.MethodHead {
		for _, err := range a.path { // only to say whether there will be an answer
			if err != nil {
				h.writeError(w, r, err)
				return err
			}
			break
		}
		r.jsonHeaders()
		h.extend(w)
		w.WriteHeader(http.StatusOK)
		return nil
	}
	to := &deadlined{h: h, w: w, r: r}
	out := bufio.NewWriterSize(to, 32<<10)
	out.WriteString(`{"message":"Trip History","success":true,"data":{"loc":[`)
	var b []byte
	first := true
	for f, err := range a.path {
		switch {
		case err != nil && !to.started:
			h.writeError(w, r, err)
			return err
		case err != nil:
			// The status line is gone. A body cut short is the only way left to say that it is not
			// whole.
			h.opts.Logger.ErrorContext(r.Context(), "trip history broken off", "request_id", r.id, "err", err)
			panic(http.ErrAbortHandler)
		}
		b = b[:0]
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, `{"lnglat":[`...)
		b = strconv.AppendFloat(b, f.LngLat.Lng, 'f', -1, 64)
		b = append(b, ',')
		b = strconv.AppendFloat(b, f.LngLat.Lat, 'f', -1, 64)
		b = append(b, `],"event_id":`...)
		b = appendText(b, f.EventID)
		b = append(b, `,"time":"`...)
		b = f.Time.UTC().AppendFormat(b, timeLayout)
		b = append(b, `"}`...)
		if _, err := out.Write(b); err != nil {
			return err // the caller has gone
		}
	}
	b = append(b[:0], `],"tracking_id":`...)
	b = appendText(b, string(a.trip.TrackingID))
	b = append(b, `,"trip_id":`...)
	b = appendText(b, string(a.trip.ID))
	b = append(b, "}}\n"...)
	out.Write(b)
	err := out.Flush()
	h.extend(w)
	return err
}

func appendText(b []byte, s string) []byte {
	if s == "" {
		return append(b, `""`...)
	}
	lit, _ := json.Marshal(s) // a string always can
	return append(b, lit...)
}

// deadlined gives each write its own time. The first one sends the headers: until then an error can
// still be told.
type deadlined struct {
	h       *Handler
	w       http.ResponseWriter
	r       *request
	started bool
}

func (d *deadlined) Write(b []byte) (int, error) {
	d.h.extend(d.w)
	if !d.started {
		d.started = true
		d.r.jsonHeaders()
		d.w.WriteHeader(http.StatusOK)
	}
	n, err := d.w.Write(b)
	if err == nil {
		lift(d.w)
	}
	return n, err
}
