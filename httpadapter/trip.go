package httpadapter

import (
	"bufio"
	"bytes"
	"encoding/json"
	"iter"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

const statusMessage = "must be 0 (all), 1 (active), 2 (stopped) or 3 (discarded)"

func (h *Handler) listTrips(r *request) (answer, error) {
	f := tracking.TripFilter{Page: r.page(), DriverID: tracking.DriverID(r.query.Filter("operator_id")), TrackingID: tracking.TrackingID(r.query.Filter("tracking_id"))}
	status, _ := r.query.Int("status", 0, 3, statusMessage)
	f.Status = tracking.TripStatus(status)
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	trips, more, err := r.svc.Trips(r.Context(), f)
	if err != nil {
		return nil, err
	}
	return ok("Trips", list{"trips": mapped(trips, tripOf), "has_more": more})
}

func (h *Handler) getTrip(r *request) (answer, error) {
	t, err := r.svc.Trip(r.Context(), tracking.TripID(r.path["trip_id"]))
	if err != nil {
		return nil, err
	}
	return ok("Trip", list{"trip": tripDetailOf(t)})
}

func (h *Handler) tripHistory(r *request) (answer, error) {
	t, path, err := r.svc.TripPath(r.Context(), tracking.TripID(r.path["trip_id"]))
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

func (a history) write(h *Handler, w *recorder, r *request) error {
	if r.Method == http.MethodHead {
		for _, err := range a.path { // only to say whether there will be an answer
			if err != nil {
				h.writeError(w, r, err)
				return err
			}
			break
		}
		jsonHeaders(w.Header())
		h.extend(w)
		w.WriteHeader(http.StatusOK)
		return nil
	}
	to := &deadlined{h: h, w: w}
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
			// The status line is gone. A body cut short is the only way left to say that it is not whole.
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

// deadlined gives each write its own time. The first one sends the headers: until then an error can still be told.
type deadlined struct {
	h       *Handler
	w       http.ResponseWriter
	started bool
}

func (d *deadlined) Write(b []byte) (int, error) {
	d.h.extend(d.w)
	if !d.started {
		d.started = true
		jsonHeaders(d.w.Header())
		d.w.WriteHeader(http.StatusOK)
	}
	n, err := d.w.Write(b)
	if err == nil {
		lift(d.w)
	}
	return n, err
}

func (h *Handler) tripLink(r *request) (answer, error) {
	token, err := r.svc.TripLink(r.Context(), tracking.TripID(r.path["trip_id"]))
	if err != nil {
		return nil, err
	}
	return ok("Trip - Web Url Generated", list{"webUrl": h.base(r) + "/track/" + token})
}

func (h *Handler) revokeTripLink(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	id := o.ID("trip_id")
	if err := o.Err(); err != nil {
		return nil, err
	}
	if err := r.svc.RevokeTripLink(r.Context(), tracking.TripID(id)); err != nil {
		return nil, err
	}
	return ok("Trip - Web Url Revoked", nil)
}

// requestTrip takes its parameters from the body, as JSON or as a form, or from the query; a parameter that is in both has to be the same.
func (h *Handler) requestTrip(r *request) (answer, error) {
	required := []string{"tracking_id", userID}
	params := append(slices.Clone(required), "message", "dest", "desc")
	body, err := r.textsOfBody(params)
	if err != nil {
		return nil, err
	}
	given := map[string]string{}
	for _, name := range params {
		inQuery, ok1 := queryText(r.query, name)
		if ok1 && inQuery == "" && !slices.Contains(required, name) {
			r.query.Fail(name, "must not be empty; leave it out instead")
		}
		inBody, ok2 := body[name]
		if ok1 && ok2 && inQuery != inBody {
			r.query.Fail(name, "is in the query and in the body with different values")
		}
		if given[name] = inQuery; !ok1 {
			given[name] = inBody
		}
	}
	for _, name := range required {
		if given[name] == "" {
			r.query.Fail(name, "is required")
		}
	}
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	err = r.svc.RequestTrip(r.Context(), tracking.NewRequest{
		DriverID: tracking.DriverID(given[userID]), TrackingID: tracking.TrackingID(given["tracking_id"]),
		Message: given["message"], Dest: given["dest"], Desc: given["desc"],
	})
	if err != nil {
		return nil, err
	}
	return ok("Request sent to Operator", nil)
}

// userID names the driver of a trip request. It is looked up, and so its form is not judged.
const userID = "user_id"

func queryText(q strict.Query, name string) (string, bool) {
	if name == userID {
		return q.Get(name)
	}
	return q.Text(name)
}

// The types of a body that textsOfBody reads.
const (
	typeJSON      = "application/json"
	typeForm      = "application/x-www-form-urlencoded"
	typeMultipart = "multipart/form-data"
)

// textsOfBody reads the named texts from a JSON or form body. There may be no body.
func (r *request) textsOfBody(names []string) (map[string]string, error) {
	texts := map[string]string{}
	typ, params, err := mediaType(r)
	if err == nil && !slices.Contains([]string{"", typeJSON, typeForm, typeMultipart}, typ) {
		err = &tracking.Error{Code: codeMediaType, Message: "The body must be JSON or a form."}
	}
	if err != nil && r.ContentLength > 0 {
		return nil, err
	}
	b, readErr := readBody(r, maxBody)
	switch {
	case readErr != nil:
		return nil, readErr
	case len(b) == 0:
		return texts, nil
	case err != nil:
		return nil, err
	}
	switch typ {
	case "", typeJSON:
		o, err := strict.ParseObject(b)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			var v string
			var ok bool
			switch {
			case name == userID:
				v, ok = o.Lookup(name)
			case name == "dest" && o.IsArray(name):
				if p := o.LngLat(name); p != nil {
					v, ok = decimal(p.Lng)+","+decimal(p.Lat), true
				}
			default:
				v, ok = o.Text(name)
			}
			if ok {
				texts[name] = v
			}
		}
		return texts, o.Err()

	case typeForm:
		form, err := strict.ParseForm(string(b))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if v, ok := queryText(form, name); ok {
				texts[name] = v
			}
		}
		return texts, form.Err()

	default:
		return multipartTexts(b, params["boundary"], names)
	}
}

func multipartTexts(body []byte, boundary string, names []string) (map[string]string, error) {
	malformed := &tracking.Error{Code: tracking.ErrInvalid, Message: "The body is not a valid form."}
	form, err := multipart.NewReader(bytes.NewReader(body), boundary).ReadForm(maxBody)
	if err != nil {
		return nil, malformed
	}
	defer form.RemoveAll()
	texts := map[string]string{}
	for name, values := range form.Value {
		if len(values) > 1 {
			return nil, &tracking.Error{Code: tracking.ErrInvalid, Message: "The form gives a parameter twice."}
		}
		if slices.Contains(names, name) {
			texts[name] = values[0]
		}
	}
	return texts, nil
}
