package httpadapter

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// How people are signed in: by the login of the program, or by a cookie of ours, which an API key or
// a token of [tracking.Service.SignIn] is given for.

const sessionCookie = "tracking_session"

var (
	errCrossSite = &tracking.Error{
		Code: tracking.ErrForbidden, Message: "A page of another site may not do this in your name.",
	}
	errViewer = &tracking.Error{
		Code: tracking.ErrForbidden, Message: "You may look at this, and not change it.",
	}
	errOwnLogin = &tracking.Error{
		Code: tracking.ErrInvalid, Field: "key", Message: "The field key is not taken here: there is a login of its own.",
	}
)

// principal is who calls. Who is not known otherwise, and gives no key, may have a session.
func (h *Handler) principal(r *request) (Principal, error) {
	p, err := h.opts.Authenticate(r.Request)
	if err != nil {
		r.refused, err = err, loginError(err)
		if !errors.Is(err, tracking.ErrUnauthorized) || givesKey(r.Request) {
			return Principal{}, err
		}
		session, found, e := h.session(r)
		if e != nil {
			return Principal{}, e
		}
		if !found {
			return Principal{}, err
		}
		p = Principal{App: session.App, Actor: session.Actor, Role: session.Role, expiresAt: session.ExpiresAt}
	}
	if p.App == "" {
		p.App = h.svc.App()
	}
	if p.Actor == "" {
		p.Actor = "key:static"
	}
	if p.Role == "" {
		p.Role = tracking.RoleDispatch
	}
	return p, nil
}

func givesKey(r *http.Request) bool {
	key, err := APIKey(r)
	return key != "" || err != nil
}

// byBrowser reports whether a call has what browsers send by themselves, whichever page has them make
// it: cookies, a login that the browser has asked for, a certificate.
func byBrowser(r *http.Request) bool {
	var scheme string
	if v := r.Header["Authorization"]; len(v) > 0 {
		scheme, _, _ = strings.Cut(v[0], " ")
	}
	return len(r.Header["Cookie"]) > 0 || scheme != "" && !strings.EqualFold(scheme, "Bearer") ||
		r.TLS != nil && len(r.TLS.PeerCertificates) > 0
}

// mayCall keeps viewers from changing anything, and the pages of other sites from what a browser
// would let them do in its reader's name.
func (h *Handler) mayCall(r *request) error {
	if byBrowser(r.Request) && !givesKey(r.Request) && h.cross.Check(r.Request) != nil {
		return errCrossSite
	}
	switch {
	case r.caller.Role == tracking.RoleDispatch, r.route.method == http.MethodGet:
		return nil
	case r.caller.Role == tracking.RoleView:
		return errViewer
	}
	return &tracking.Error{Code: tracking.ErrForbidden, Message: "Your role does not allow this."}
}

// session is the one that a cookie holds, if one does.
func (h *Handler) session(r *request) (session tracking.Session, found bool, err error) {
	for _, c := range r.CookiesNamed(sessionCookie) {
		session, err = h.svc.OpenSession(r.Context(), c.Value)
		switch {
		case errors.Is(err, tracking.ErrUnauthorized):
			continue
		case err != nil:
			return session, false, err
		}
		proven, err := h.proven(r, session)
		if err != nil || proven {
			return session, proven, err
		}
	}
	return tracking.Session{}, false, nil
}

// proof tells a key that the program has fixed from others, to who knows it.
func (h *Handler) proof(r *request, sum [sha256.Size]byte) (string, error) {
	key, err := h.svc.DeriveKey(r.Context(), "sessions of fixed keys")
	m := hmac.New(sha256.New, key[:])
	m.Write(sum[:])
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil)), err
}

// proven reports whether the key that the program had fixed when the session was opened is there
// still, and for the same.
func (h *Handler) proven(r *request, session tracking.Session) (bool, error) {
	if session.Proof == "" {
		return true, nil
	}
	for sum, p := range h.keys.known {
		proof, err := h.proof(r, sum)
		if err != nil {
			return false, err
		}
		if proof == session.Proof && p.App == session.App {
			return true, nil
		}
	}
	return false, nil
}

type openSession struct {
	Key   string `json:"key"`
	Token string `json:"token"`
	Role  role   `json:"role"`
}

// role is what somebody may do who is signed in.
type role string

// Words are the two.
func (role) Words() []string {
	return []string{string(tracking.RoleDispatch), string(tracking.RoleView)}
}

// openSession signs in with a key or a token. With the role view it is for looking only, whatever
// else the key or token allows.
func (h *Handler) openSession(r *request, b openSession) (answer, error) {
	if h.cross.Check(r.Request) != nil {
		return nil, errCrossSite
	}
	session, err := h.newSession(r, b)
	if err != nil {
		return nil, err
	}
	if b.Role == role(tracking.RoleView) {
		session.Role = tracking.RoleView
	}
	session.ExpiresAt = h.now().Add(tracking.SessionTTL)
	text, err := h.svc.SealSession(r.Context(), session)
	if err != nil {
		return nil, err
	}
	http.SetCookie(r.w, h.cookie(r, text, int(tracking.SessionTTL/time.Second)))
	return ok("Signed in", list{"session": signedIn{session.Actor, session.Role, timeOf(session.ExpiresAt)}})
}

func (h *Handler) newSession(r *request, b openSession) (tracking.Session, error) {
	switch {
	case b.Token != "" && b.Key != "":
		return tracking.Session{}, &tracking.Error{
			Code: tracking.ErrInvalid, Field: "token", Message: "The fields key and token must not be given both.",
		}
	case b.Token != "":
		return h.svc.UseSignIn(r.Context(), b.Token)
	case b.Key == "":
		return tracking.Session{}, &tracking.Error{
			Code: tracking.ErrInvalid, Field: "key", Message: "The field key or token is required.",
		}
	case !h.ownKeys:
		return tracking.Session{}, errOwnLogin
	}
	p, id, err := h.keys.find(r.Context(), b.Key)
	if err != nil {
		return tracking.Session{}, err
	}
	session := tracking.Session{App: p.App, Actor: p.Actor, Role: p.Role, KeyID: id}
	if session.Role == "" {
		session.Role = tracking.RoleDispatch
	}
	if id == "" {
		session.Proof, err = h.proof(r, sha256.Sum256([]byte(b.Key)))
	}
	return session, err
}

// closeSession signs out: the browser forgets its cookie.
func (h *Handler) closeSession(r *request) (answer, error) {
	if h.cross.Check(r.Request) != nil {
		return nil, errCrossSite
	}
	http.SetCookie(r.w, h.cookie(r, "", -1))
	return ok("Signed out", nil)
}

// signedIn is who calls, and until when.
type signedIn struct {
	Actor     string        `json:"actor"`
	Role      tracking.Role `json:"role"`
	ExpiresAt timeText      `json:"expires_at,omitempty"`
}

func (h *Handler) getSession(r *request) (answer, error) {
	p := r.caller
	return ok("Session", list{"session": signedIn{p.Actor, p.Role, timeOf(p.expiresAt)}})
}

func (h *Handler) cookie(r *request, value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: sessionCookie, Value: value, Path: h.opts.Site.Prefix + "/", MaxAge: seconds,
		Secure: strings.HasPrefix(h.base(r), "https:"), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	}
}
