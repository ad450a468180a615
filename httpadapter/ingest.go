package httpadapter

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
)

// profileSuffix after an ingest token asks for GPSLogger's profile.
const profileSuffix = ".properties"

var errNoIngest = &tracking.Error{
	Code:    tracking.ErrUnauthorized,
	Message: "This address is not valid any more; open the driver app to get a new one.",
}

// ingest takes what phone GPS apps send. Nothing but a bad token and a body over 1 MiB, as it comes
// or unpacked, is refused: an app sends the head of its queue until that is taken. What cannot be
// read is counted on the driver's record, and logged without its content.
func (h *Handler) ingest(r *request) (answer, error) {
	token, profile := strings.CutSuffix(r.path.of("token"), profileSuffix)
	app, d, err := h.phoneOf(r, token)
	if err != nil {
		return nil, err
	}
	if profile {
		text, err := ingest.Profile(h.base(r) + "/ingest/" + token)
		if err != nil {
			return nil, &tracking.Error{
				Code:    tracking.ErrConflict,
				Message: "There is no profile for the address of this server: " + err.Error() + ".", Err: err,
			}
		}
		return plainText(text), nil
	}
	if r.ContentLength > ingest.MaxBody {
		return nil, &tracking.Error{Code: tracking.ErrTooLarge, Message: "The body is larger than 1 MiB."}
	}
	r.allowSlowBody(slowFixes)
	sent, err := ingest.Read(r.w, r.Request)
	if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
		return nil, &tracking.Error{Code: tracking.ErrTooLarge, Message: "The body is larger than 1 MiB."}
	}
	if err != nil {
		return nil, &tracking.Error{
			Code: tracking.ErrInvalid, Message: "The body ended too early.", Err: errors.Join(errBodyBroken, err),
		}
	}
	if r.ContentLength != 0 && time.Since(r.began) > atOnce { // the token may be dead by now
		if app, d, err = h.phoneOf(r, token); err != nil {
			return nil, err
		}
	}
	r.svc = h.svc.ForApp(app).AsDriver(d)
	msg := ingest.Decode(sent, h.now())
	err = recordMessage(r, d.ID, msg)
	if errors.Is(err, tracking.ErrNotFound) {
		return nil, errNoIngest // deleted meanwhile
	}
	if err != nil {
		return nil, err
	}
	if msg.Unread > 0 && h.unread.due(appDriver{app, d.ID}, h.now()) {
		text := "a phone sends what cannot be read"
		if msg.Encrypted {
			text = "a phone sends encrypted positions, which cannot be read"
		}
		h.opts.Logger.WarnContext(r.Context(), text, "request_id", r.id, "app", string(app), "driver_id", string(d.ID),
			"dialect", string(msg.Dialect), "records", msg.Unread, "bytes", len(sent.Query)+len(sent.Body))
	}
	return phoneAnswer(msg.Answer), nil
}

// phoneOf is the driver whose ingest token it is.
func (h *Handler) phoneOf(r *request, token string) (tracking.AppID, tracking.Driver, error) {
	app, d, err := h.svc.DriverByToken(r.Context(), tracking.TokenIngest, token)
	if errors.Is(err, tracking.ErrUnauthorized) {
		err = errNoIngest
	}
	return app, d, err
}

// recordMessage records all that a message says: its fixes, or that its phone is alive, and then
// what could not be read.
func recordMessage(r *request, id tracking.DriverID, msg ingest.Message) error {
	if msg.Unread == 0 || len(msg.Fixes) > 0 {
		for batch := range msg.Batches(maxFixes) {
			if _, err := r.svc.RecordFixes(r.Context(), id, batch); err != nil {
				return err
			}
		}
	}
	if msg.Unread == 0 {
		return nil
	}
	return r.svc.NoteUnread(r.Context(), id, msg.Unread)
}

// phoneAnswer is what an app takes for a yes.
type phoneAnswer ingest.Answer

func (a phoneAnswer) write(h *Handler, w *recorder, r *request) error {
	hd := w.Header()
	hd.Set("Cache-Control", "no-store")
	hd.Set("X-Content-Type-Options", "nosniff")
	if a.ContentType != "" {
		hd.Set("Content-Type", a.ContentType)
	}
	return h.writeBody(w, r, http.StatusOK, []byte(a.Body))
}

// plainText is an answer of text alone.
type plainText string

func (a plainText) write(h *Handler, w *recorder, r *request) error {
	return phoneAnswer{"text/plain; charset=utf-8", string(a)}.write(h, w, r)
}

// phoneApp is one way to let a phone app send positions.
type phoneApp struct {
	Name     string `json:"name"`
	Link     string `json:"link,omitempty"`     // to tap, or to scan as a QR code
	Template string `json:"template,omitempty"` // to copy into the app's settings
}

// driverPhone gives the set-up links of phone apps, which hold the driver's ingest token.
func (h *Handler) driverPhone(r *request) (answer, error) {
	token, err := r.svc.IngestToken(r.Context(), r.driver)
	if err != nil {
		return nil, err
	}
	s, err := ingest.Links(h.base(r) + "/ingest/" + token)
	if err != nil {
		return nil, &tracking.Error{
			Code:    tracking.ErrConflict,
			Message: "There are no links for the address of this server: " + err.Error() + ".", Err: err,
		}
	}
	return ok("Phone apps", list{
		"ingest_url": s.URL,
		"apps": []phoneApp{
			{Name: "Traccar Client", Link: s.Traccar, Template: s.TraccarQR},
			{Name: "OwnTracks", Link: s.OwnTracks},
			{Name: "Overland", Link: s.Overland, Template: s.URL},
			{Name: "GPSLogger", Link: s.GPSLogger, Template: s.GPSLoggerURL},
			{Name: "OsmAnd", Template: s.OsmAnd},
		},
		"traccar_start": s.TraccarStart,
		"traccar_stop":  s.TraccarStop,
	})
}
