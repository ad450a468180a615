package httpadapter

import (
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/picture"
)

var errPictureType = &tracking.Error{
	Code:    codeMediaType,
	Message: "The body must be a JPEG, PNG or WebP picture that does not move, with its Content-Type and no Content-Encoding.",
}

// driverAddProof keeps a picture, without what is not the picture. What it is says its content.
func (h *Handler) driverAddProof(r *request) (answer, error) {
	kind := tracking.ProofKind(r.path.of("kind"))
	if kind != tracking.ProofPhoto && kind != tracking.ProofSignature {
		return nil, &tracking.Error{
			Code: tracking.ErrInvalid, Field: "kind", Message: "The kind of a proof must be photo or signature.",
		}
	}
	if !mayBePicture(r.Header) {
		return nil, errPictureType
	}
	r.allowSlowBody(slowPicture)
	body, err := r.readBody(nil, tracking.MaxProofSize)
	if err != nil {
		return nil, err
	}
	data, typ, err := picture.Clean(body)
	if err != nil {
		return nil, pictureError(err)
	}
	t, p, err := r.svc.AddProof(r.Context(), r.driver, r.taskID(), tracking.NewProof{Kind: kind, Type: typ, Data: data})
	if err != nil {
		return nil, err
	}
	return ok("Proof saved", list{"task": h.taskOf(t), "proof": proofOf(p)})
}

// mayBePicture reports whether the headers allow the body to be a picture. Which kind of one they
// say is not looked at: phones are often wrong.
func mayBePicture(hd http.Header) bool {
	types := hd.Values("Content-Type")
	if len(hd.Values("Content-Encoding")) > 0 || len(types) > 1 {
		return false
	}
	if len(types) == 0 || types[0] == "" {
		return true
	}
	typ, _, err := mime.ParseMediaType(types[0])
	return err == nil && (strings.HasPrefix(typ, "image/") || typ == "application/octet-stream")
}

func pictureError(err error) error {
	e := &tracking.Error{Code: tracking.ErrInvalid, Message: "The picture is not whole, or broken.", Err: err}
	switch {
	case errors.Is(err, picture.ErrType), errors.Is(err, picture.ErrAnimated):
		return errPictureType
	case errors.Is(err, picture.ErrTooLarge):
		e.Code, e.Message = tracking.ErrTooLarge, "The picture has more than 40 million pixels."
	case errors.Is(err, picture.ErrBehind):
		e.Message = "Behind the picture there is something else."
	}
	return e
}

// getProof gives the application a file that was given as evidence.
func (h *Handler) getProof(r *request) (answer, error) {
	task, id := r.query.ID("task_id"), r.query.ID("id")
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	p, data, err := r.svc.ReadProof(r.Context(), tracking.TaskID(task), id)
	return file{p, data, "attachment"}, err
}

// driverGetProof gives it to the driver who gave it.
func (h *Handler) driverGetProof(r *request) (answer, error) {
	task, id := r.query.ID("task_id"), r.query.ID("id")
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	p, data, err := r.svc.DriverProof(r.Context(), r.driver, tracking.TaskID(task), id)
	return file{p, data, "attachment"}, err
}

// trackPhoto shows a photo of a task to the holder of its link, where the site allows that.
func (h *Handler) trackPhoto(r *request) (answer, error) {
	v, err := r.svc.Tracking(r.Context(), r.path.of("token"))
	if err != nil {
		return nil, err
	}
	if id := r.path.of("id"); slices.Contains(h.view(v).Photos, id) {
		p, data, err := r.svc.TrackingPhoto(r.Context(), r.path.of("token"), id)
		return file{p, data, "inline"}, err
	}
	return nil, &tracking.Error{Code: tracking.ErrNotFound, Message: "There is no such photo."}
}

// file is an answer that is a picture. Whatever might be in it, a browser takes it for nothing else
// and runs nothing of it.
type file struct {
	proof tracking.Proof
	data  []byte
	shown string // attachment: to be saved, inline: in a page
}

func (f file) write(h *Handler, w *recorder, r *request) error {
	name := string(f.proof.Kind) + "-" + f.proof.ID + strings.Replace(f.proof.Type, "image/", ".", 1)
	hd := w.Header()
	hd.Set("Content-Type", f.proof.Type)
	hd.Set("Content-Disposition", mime.FormatMediaType(f.shown, map[string]string{"filename": name}))
	hd.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	hd.Set("Cache-Control", "no-store")
	hd.Set("X-Content-Type-Options", "nosniff")
	return h.writeBody(w, r, http.StatusOK, f.data)
}
