package tracking

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Invite lets a driver join, once. A driver has at most one; a new one replaces it.
type Invite struct {
	DriverID      DriverID
	LinkHash      Hash // of the token in the link
	CodeHash      Hash // of the 6-digit code, keyed by the secret
	CreatedAt     time.Time
	LinkExpiresAt time.Time
	CodeExpiresAt time.Time // till then nobody else can have the code

	PastCodes []Hash // of the invites that it has replaced, the newest last

	JoinedAt   time.Time // zero: not yet used
	NonceHash  Hash      // of the nonce it was used with; zero: none
	Generation int       // the driver's TokenGeneration that joining gave

	Version int64
}

// Clone returns a deep copy.
func (i Invite) Clone() Invite { i.PastCodes = append([]Hash(nil), i.PastCodes...); return i }

// pastCodes is how many codes of replaced invites are known for what they were.
const pastCodes = 10

// expire ends the invite, and gives its code away; what it was good for is known still.
func (i *Invite) expire(now time.Time) (changed bool) {
	for _, t := range []*time.Time{&i.LinkExpiresAt, &i.CodeExpiresAt} {
		if t.After(now) {
			*t, changed = now, true
		}
	}
	return changed
}

// InviteReader reads invites.
type InviteReader interface {
	// Invite reads a driver's.
	Invite(ctx context.Context, app AppID, driver DriverID) (Invite, error)

	// InviteByHash finds the invite, of any application, whose LinkHash or CodeHash this is, and
	// else one that has it among its PastCodes. Of several that have had a code one after another
	// it is the one whose CodeExpiresAt is the latest.
	InviteByHash(ctx context.Context, hash Hash) (AppID, Invite, error)
}

// Key is an application's API key. Only its hash is kept.
type Key struct {
	ID        string
	Name      string
	Hash      Hash
	CreatedAt time.Time
	RevokedAt time.Time // zero: live
	Version   int64
}

// Role says what somebody who is signed in may do.
type Role string

const (
	RoleDispatch Role = "dispatch" // everything that an API key may
	RoleView     Role = "view"     // look at everything, and change nothing
)

// SessionTTL is how long somebody stays signed in.
const SessionTTL = 12 * time.Hour

// signInTTL is how long a token to sign in with lives.
const signInTTL = 10 * time.Minute

// Session is somebody who is signed in for a while, as dispatchers are. It is kept by whoever has it,
// as a text that [Service.SealSession] makes, and nowhere else.
type Session struct {
	App       AppID
	Actor     string // what events name
	Role      Role
	KeyID     string // the API key that it was opened with, and is dead with; "": none
	Proof     string // what the program that opened it looks at by itself
	ExpiresAt time.Time
}

// signInKey begins the ID of a row that is no API key but a token to sign in with, once. Its
// RevokedAt is when it ends, and its Name for whom it is. A row that is over is used again.
const signInKey = "sign-in "

func (k Key) signsIn() bool { return strings.HasPrefix(k.ID, signInKey) }

// signInLive reports whether the token can be used at now; never for longer than from when it was
// made.
func (k Key) signInLive(now time.Time) bool {
	return k.signsIn() && now.Before(k.RevokedAt) && !k.RevokedAt.After(now.Add(signInTTL))
}

// KeyReader reads API keys.
type KeyReader interface {
	// Keys lists an application's, oldest first by CreatedAt and then ID, revoked ones included.
	Keys(ctx context.Context, app AppID) ([]Key, error)

	// KeyByHash finds the key, of any application, whose Hash this is.
	KeyByHash(ctx context.Context, hash Hash) (AppID, Key, error)
}

// NewInvite describes whom to invite. A nil field of a driver who exists stays as it is.
type NewInvite struct {
	DriverID DriverID // "": one is made
	Name     *string
	Mobile   *string
	Email    *string
}

// Invitation is what to share with a driver: either way to join works, once.
type Invitation struct {
	DriverID DriverID
	// for the link, with httpadapter BaseURL, Prefix, "/join/" and the token; lives until
	// LinkExpiresAt
	Token         string
	Code          int // 100000 to 999999; lives until CodeExpiresAt
	LinkExpiresAt time.Time
	CodeExpiresAt time.Time
}

// InviteDriver invites a driver, who exists from then on, and kills an older invite of the same
// driver. Codes: ErrInvalid.
//
// A code is one of 900,000: a guess hits one of n live codes with a chance of n / 900,000. See
// [Service.Join] for how guesses are limited.
func (s *Service) InviteDriver(ctx context.Context, n NewInvite) (_ Invitation, err error) {
	defer s.observe(&ctx, "InviteDriver").end(&err)
	var k check
	if n.DriverID != "" {
		k.name("user_id", string(n.DriverID))
	}
	k.person(n.Name, n.Mobile, n.Email)
	if k.err != nil {
		return Invitation{}, k.err
	}
	var made Invitation
	err = s.change(ctx, verb{name: "InviteDriver"}, func(c *change) error {
		id := n.DriverID
		if id == "" {
			id = DriverID(s.ids.next(c.now))
		}
		d, err := s.store.Driver(ctx, s.app, id)
		switch {
		case errors.Is(err, ErrNotFound):
			d = c.newDriver(id)
			d.describe(n.Name, n.Mobile, n.Email)
			c.cs.Drivers = []Driver{d}
		case err != nil:
			return err
		case d.describe(n.Name, n.Mobile, n.Email):
			d.UpdatedAt = c.now
			c.cs.Drivers = []Driver{d}
		}
		made = Invitation{
			DriverID: id, Token: s.ids.token(18), Code: 100000 + int(s.ids.below(900000)),
			LinkExpiresAt: c.now.Add(s.opts.InviteTTL), CodeExpiresAt: c.now.Add(s.opts.CodeTTL),
		}
		code, err := s.codeHash(ctx, fmt.Sprint(made.Code))
		if err != nil {
			return err
		}
		invite := Invite{
			DriverID: id, LinkHash: hashOf(made.Token), CodeHash: code, CreatedAt: c.now,
			LinkExpiresAt: made.LinkExpiresAt, CodeExpiresAt: made.CodeExpiresAt,
		}
		switch older, err := s.store.Invite(ctx, s.app, id); {
		case err == nil:
			past := append(older.PastCodes, older.CodeHash)
			invite.PastCodes = past[max(len(past)-pastCodes, 0):]
		case !errors.Is(err, ErrNotFound):
			return err
		}
		c.cs.Invites = []Invite{invite} // a code that is taken is a conflict: the next attempt makes another
		return nil
	})
	if err != nil {
		return Invitation{}, err
	}
	return made, nil
}

// JoinRequest is how a driver takes up an invite: by its link's token or by its code.
type JoinRequest struct {
	Token  string // of the link
	Code   string // six digits
	Nonce  string // made by the client; a lost answer may be asked for again with it within 10 minutes
	Source string // who asks, for the limit on wrong codes: the peer's address; "" is a source too
}

// Joined is what a driver gets by joining. The older tokens are dead.
type Joined struct {
	App         AppID
	Driver      Driver
	Token       string // acts as the driver
	IngestToken string // can only record the driver's fixes
}

const nonceFor = 10 * time.Minute

// Both say the same, and are told apart here only: who types a code that was live once is no
// guesser.
var (
	errNoInvite = &Error{Code: ErrNotFound, Message: "This invite or code is not valid, or no longer."}
	errPastCode = &Error{Code: ErrNotFound, Message: errNoInvite.Message}
)

// Join ties a phone to the driver who was invited, and who is on duty or off as before. It works
// across applications: the invite says which one.
//
// Wrong codes are counted, those aside that were live once and are used, expired, revoked or
// replaced by a later invite: after 5 a source waits 15 minutes, after 5 more an hour, then a day;
// over all sources at most 20 wrong codes a minute are looked at. Where the store is a [Limiter] that
// is so for all processes; else each counts what it sees itself. Links are never limited. Codes:
// ErrNotFound, the same for wrong, expired and used ones; ErrRateLimited; ErrInvalid.
func (s *Service) Join(ctx context.Context, j JoinRequest) (_ Joined, err error) {
	defer s.observe(&ctx, "Join").end(&err)
	var c check
	c.line("nonce", j.Nonce, 128)
	if j.Token == "" && j.Code == "" {
		c.fail("invite", "or invite_code is required.")
	}
	if j.Token != "" && j.Code != "" {
		c.fail("invite", "and invite_code exclude each other.")
	}
	if c.err != nil {
		return Joined{}, c.err
	}
	if j.Code != "" {
		now := s.now()
		wait, err := s.guess(ctx, j.Source, now)
		if err != nil {
			return Joined{}, s.failure(ctx, "Join", err)
		}
		if wait > 0 {
			return Joined{}, &Error{
				Code: ErrRateLimited, Message: "Too many wrong codes; try again later, or use the link.",
				RetryAfter: wait,
			}
		}
		joined, err := s.join(ctx, j)
		if !errors.Is(err, ErrNotFound) || err == error(errPastCode) {
			s.forgive(context.WithoutCancel(ctx), j.Source, now)
		}
		return joined, err
	}
	return s.join(ctx, j)
}

func (s *Service) join(ctx context.Context, j JoinRequest) (joined Joined, err error) {
	err = s.change(ctx, verb{name: "Join"}, func(c *change) (err error) {
		joined, err = c.takeUp(ctx, j)
		return err
	})
	if err != nil {
		return Joined{}, err
	}
	if d, err := s.store.Driver(ctx, joined.App, joined.Driver.ID); err == nil {
		joined.Driver = d
	}
	return joined, nil
}

// takeUp puts in, in the application of the invite, that it is taken up.
func (c *change) takeUp(ctx context.Context, j JoinRequest) (joined Joined, err error) {
	hash := hashOf(j.Token)
	if j.Code != "" {
		if hash, err = c.codeHash(ctx, j.Code); err != nil {
			return joined, err
		}
	}
	app, inv, err := c.store.InviteByHash(ctx, hash)
	if errors.Is(err, ErrNotFound) {
		return joined, errNoInvite
	}
	if err != nil {
		return joined, err
	}
	c.Service = c.ForApp(app)
	expires, mine, over := inv.LinkExpiresAt, inv.LinkHash, errNoInvite
	if j.Code != "" {
		expires, mine, over = inv.CodeExpiresAt, inv.CodeHash, errPastCode
	}
	if mine != hash { // the code of an invite that was replaced
		return joined, over
	}
	d, err := c.store.Driver(ctx, app, inv.DriverID)
	if errors.Is(err, ErrNotFound) {
		return joined, over
	}
	if err != nil {
		return joined, err
	}
	if !inv.JoinedAt.IsZero() { // used: only the same client may have its answer again
		if j.Nonce == "" || hashOf(j.Nonce) != inv.NonceHash || !within(inv.JoinedAt, c.now, nonceFor) ||
			d.TokenGeneration != inv.Generation {
			return joined, over
		}
		return c.tokens(ctx, d, inv, j.Nonce)
	}
	if !c.now.Before(expires) || ahead(inv.CreatedAt, c.now) {
		return joined, over
	}
	if inv.CodeExpiresAt.After(c.now) { // it is free for others, unless its answer may be asked for again by it
		inv.CodeExpiresAt = c.now
		if j.Code != "" && j.Nonce != "" {
			inv.CodeExpiresAt = c.now.Add(nonceFor)
		}
	}
	d.TokenGeneration++
	inv.JoinedAt, inv.Generation, inv.NonceHash = c.now, d.TokenGeneration, Hash{}
	if j.Nonce != "" {
		inv.NonceHash = hashOf(j.Nonce)
	}
	if joined, err = c.tokens(ctx, d, inv, j.Nonce); err != nil {
		return joined, err
	}
	d.AppToken, d.IngestToken, d.Push = hashOf(joined.Token), hashOf(joined.IngestToken), nil
	c.cs.Drivers, c.cs.Invites = []Driver{d}, []Invite{inv}
	c.heard(d.ID)
	c.actor = driverActor(d.ID)
	c.event(d.subject(), d.Person, c.now, DriverJoinedData{})
	return joined, nil
}

// IngestToken returns the token for the URL that the driver's phone app posts to. Codes:
// ErrNotFound; ErrConflict when the driver has not joined, or the secret is another now.
func (s *Service) IngestToken(ctx context.Context, driver DriverID) (token string, err error) {
	defer s.observe(&ctx, "IngestToken").end(&err)
	err = s.op(ctx, "IngestToken", func(time.Time) error {
		d, err := s.driver(ctx, driver)
		if err != nil {
			return err
		}
		if token, err = s.ingestToken(ctx, d); err != nil {
			return err
		}
		if hashOf(token) != d.IngestToken {
			token = ""
			return conflict("The driver has to join first.")
		}
		return nil
	})
	return token, err
}

// RevokeTokens makes a driver's tokens dead, and an invite that is open, until the driver is
// invited anew and joins. Codes: ErrNotFound.
func (s *Service) RevokeTokens(ctx context.Context, driver DriverID) (err error) {
	defer s.observe(&ctx, "RevokeTokens").end(&err)
	return s.change(ctx, verb{name: "RevokeTokens"}, func(c *change) error {
		d, err := c.named(ctx, driver)
		if err == nil {
			err = s.expected(d.Version)
		}
		if err != nil {
			return err
		}
		switch inv, err := s.store.Invite(ctx, s.app, driver); {
		case err == nil:
			if inv.expire(c.now) {
				c.cs.Invites = []Invite{inv}
			}
		case !errors.Is(err, ErrNotFound):
			return err
		}
		tokens := !d.AppToken.IsZero() || !d.IngestToken.IsZero()
		if !tokens && c.empty() {
			return nil
		}
		if tokens {
			d.TokenGeneration++
			d.AppToken, d.IngestToken, d.Push = Hash{}, Hash{}, nil
		}
		c.cs.Drivers = []Driver{d}
		return nil
	})
}

// AuthenticateDriver finds whose token it is; [Service.DriverByToken] has the driver for
// [Service.AsDriver]. Codes: ErrUnauthorized.
func (s *Service) AuthenticateDriver(ctx context.Context, kind TokenKind, token string) (app AppID, driver DriverID,
	err error) {
	defer s.observe(&ctx, "AuthenticateDriver").end(&err)
	app, d, err := s.DriverByToken(ctx, kind, token)
	return app, d.ID, err
}

// DriverByToken reads the driver, of whatever application, whose token it is. Codes:
// ErrUnauthorized.
func (s *Service) DriverByToken(ctx context.Context, kind TokenKind, token string) (app AppID, d Driver, err error) {
	defer s.observe(&ctx, "DriverByToken").end(&err)
	err = s.op(ctx, "DriverByToken", func(time.Time) (err error) {
		app, d, err = s.store.DriverByToken(ctx, kind, hashOf(token))
		if errors.Is(err, ErrNotFound) {
			return &Error{Code: ErrUnauthorized, Message: "The token is not valid; join again."}
		}
		return err
	})
	return app, d, err
}

// CreateKey makes an API key. The secret is shown this once; the store keeps its hash. Codes:
// ErrInvalid.
func (s *Service) CreateKey(ctx context.Context, name string) (key Key, secret string, err error) {
	defer s.observe(&ctx, "CreateKey").end(&err)
	var k check
	k.line("name", name, 200)
	if k.err != nil {
		return Key{}, "", k.err
	}
	err = s.change(ctx, verb{name: "CreateKey"}, func(c *change) error {
		secret = s.ids.token(24)
		key = Key{ID: s.ids.next(c.now), Name: name, Hash: hashOf(secret), CreatedAt: c.now}
		c.cs.Keys = []Key{key}
		return nil
	})
	if err != nil {
		return Key{}, "", err
	}
	// the key is made, so that a failure here is none of the caller's
	if _, kept, err := s.store.KeyByHash(ctx, key.Hash); err == nil {
		key = kept
	}
	return key, secret, nil
}

// Keys lists the application's API keys, oldest first, revoked ones included.
func (s *Service) Keys(ctx context.Context) (list []Key, err error) {
	defer s.observe(&ctx, "Keys").end(&err)
	err = s.op(ctx, "Keys", func(time.Time) error { list, err = s.store.Keys(ctx, s.app); return err })
	if list = slices.DeleteFunc(list, Key.signsIn); len(list) == 0 {
		list = nil
	}
	return list, err
}

// RevokeKey makes an API key dead. Codes: ErrNotFound.
func (s *Service) RevokeKey(ctx context.Context, id string) (err error) {
	defer s.observe(&ctx, "RevokeKey").end(&err)
	return s.change(ctx, verb{name: "RevokeKey"}, func(c *change) error {
		keys, err := s.store.Keys(ctx, s.app)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(keys, func(k Key) bool { return k.ID == id && !k.signsIn() })
		if i < 0 {
			return notFound("id", "key")
		}
		if k := keys[i]; k.RevokedAt.IsZero() {
			k.RevokedAt = c.now
			c.cs.Keys = []Key{k}
		}
		return nil
	})
}

// AuthenticateKey finds whose API key it is. Codes: ErrUnauthorized, the same for unknown and
// revoked ones.
func (s *Service) AuthenticateKey(ctx context.Context, secret string) (app AppID, key Key, err error) {
	defer s.observe(&ctx, "AuthenticateKey").end(&err)
	err = s.op(ctx, "AuthenticateKey", func(time.Time) error {
		a, k, err := s.store.KeyByHash(ctx, hashOf(secret))
		if errors.Is(err, ErrNotFound) || err == nil && (!k.RevokedAt.IsZero() || k.signsIn()) {
			return &Error{Code: ErrUnauthorized, Message: "The key is not valid."}
		}
		app, key = a, k
		return err
	})
	return app, key, err
}

// SignIn returns a token by which somebody signs in to the application, once and within 10 minutes,
// to dispatch; actor is what events will name, such as "user:42". Put it in the fragment of a link,
// which no server and no log sees. [Service.UseSignIn] takes it. Codes: ErrInvalid.
func (s *Service) SignIn(ctx context.Context, actor string) (token string, err error) {
	defer s.observe(&ctx, "SignIn").end(&err)
	return s.signIn(ctx, actor, RoleDispatch)
}

// SignInToView is SignIn for somebody who may look, and change nothing.
func (s *Service) SignInToView(ctx context.Context, actor string) (token string, err error) {
	defer s.observe(&ctx, "SignInToView").end(&err)
	return s.signIn(ctx, actor, RoleView)
}

func (s *Service) signIn(ctx context.Context, actor string, role Role) (token string, err error) {
	var k check
	k.line("actor", actor, 200)
	if actor == "" {
		k.fail("actor", "is required.")
	}
	if k.err != nil {
		return "", k.err
	}
	err = s.change(ctx, verb{name: "SignIn"}, func(c *change) error {
		keys, err := s.store.Keys(ctx, s.app)
		if err != nil {
			return err
		}
		row := Key{ID: signInKey + c.ids.next(c.now), CreatedAt: c.now}
		over := func(k Key) bool { return k.signsIn() && !k.signInLive(c.now) }
		if i := slices.IndexFunc(keys, over); i >= 0 {
			row = keys[i]
		}
		token = c.ids.token(24)
		row.Name, row.Hash, row.RevokedAt = string(role)+" "+actor, hashOf(token), c.now.Add(signInTTL)
		c.cs.Keys = []Key{row}
		return nil
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// UseSignIn signs in by a token of [Service.SignIn], of any application, which is used up then. Codes:
// ErrUnauthorized, the same for unknown, used and expired ones.
func (s *Service) UseSignIn(ctx context.Context, token string) (session Session, err error) {
	defer s.observe(&ctx, "UseSignIn").end(&err)
	none := &Error{Code: ErrUnauthorized, Message: "The link to sign in is not valid any more; ask for a new one."}
	var app AppID
	err = s.op(ctx, "UseSignIn", func(now time.Time) error {
		a, k, err := s.store.KeyByHash(ctx, hashOf(token))
		if errors.Is(err, ErrNotFound) || err == nil && !k.signInLive(now) {
			return none
		}
		app = a
		return err
	})
	if err != nil {
		return Session{}, err
	}
	of := s.ForApp(app)
	err = of.change(ctx, verb{name: "UseSignIn"}, func(c *change) error {
		_, k, err := s.store.KeyByHash(ctx, hashOf(token))
		if errors.Is(err, ErrNotFound) || err == nil && !k.signInLive(c.now) {
			return none
		}
		if err != nil {
			return err
		}
		role, actor, _ := strings.Cut(k.Name, " ")
		session = Session{App: app, Actor: actor, Role: Role(role), ExpiresAt: c.now.Add(SessionTTL)}
		k.Name, k.RevokedAt = "", c.now
		c.cs.Keys = []Key{k}
		return nil
	})
	if err != nil {
		return Session{}, err
	}
	return session, nil
}

// SealSession is a session as a text, for a cookie. Nobody can make or change one without the
// secret; whoever has it is signed in. Its ExpiresAt is at most SessionTTL from now.
func (s *Service) SealSession(ctx context.Context, session Session) (text string, err error) {
	defer s.observe(&ctx, "SealSession").end(&err)
	err = s.op(ctx, "SealSession", func(now time.Time) error {
		if most := now.Add(SessionTTL); session.ExpiresAt.IsZero() || session.ExpiresAt.After(most) {
			session.ExpiresAt = most
		}
		b, err := json.Marshal(session)
		if err != nil {
			return err
		}
		body := base64.RawURLEncoding.EncodeToString(b)
		mac, err := s.mac(ctx, "session", body)
		text = body + "." + mac
		return err
	})
	if err != nil {
		return "", err
	}
	return text, nil
}

// OpenSession reads what SealSession has made, of any application. Codes: ErrUnauthorized when it is
// none, has expired, or its key was revoked.
func (s *Service) OpenSession(ctx context.Context, text string) (session Session, err error) {
	defer s.observe(&ctx, "OpenSession").end(&err)
	none := &Error{Code: ErrUnauthorized, Message: "You are not signed in any more."}
	err = s.op(ctx, "OpenSession", func(now time.Time) error {
		body, given, _ := strings.Cut(text, ".")
		mac, err := s.mac(ctx, "session", body)
		if err != nil {
			return err
		}
		if subtle.ConstantTimeCompare([]byte(mac), []byte(given)) != 1 {
			return none
		}
		b, err := base64.RawURLEncoding.DecodeString(body)
		if err != nil || json.Unmarshal(b, &session) != nil {
			return none
		}
		if !now.Before(session.ExpiresAt) || session.ExpiresAt.After(now.Add(SessionTTL)) {
			return none
		}
		if session.KeyID == "" {
			return nil
		}
		keys, err := s.store.Keys(ctx, session.App)
		live := func(k Key) bool { return k.ID == session.KeyID && k.RevokedAt.IsZero() && !k.signsIn() }
		if err == nil && !slices.ContainsFunc(keys, live) {
			return none
		}
		return err
	})
	if err != nil {
		return Session{}, err
	}
	return session, nil
}

// Hash is the SHA-256 of a secret. The zero Hash means "none" and is never found. Like a [Secret] it
// is not printed, logged or encoded by accident.
type Hash [32]byte

// IsZero reports whether there is none.
func (h Hash) IsZero() bool { return h == Hash{} }

// Format writes "[hash]", or nothing for the zero Hash, whatever the verb.
func (h Hash) Format(f fmt.State, _ rune) { formatHidden(f, "[hash]", h.IsZero()) }

// MarshalText gives nothing.
func (h Hash) MarshalText() ([]byte, error) { return []byte{}, nil }

// MarshalJSON gives an empty array, which is read as none.
func (h Hash) MarshalJSON() ([]byte, error) { return []byte("[]"), nil }

// Secret is a text that gives somebody access who reads it. A row that holds one can be printed,
// logged and encoded without telling it; string(s) is the text.
type Secret string

// Format writes "[secret]", or nothing when there is none, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { formatHidden(f, "[secret]", s == "") }

// MarshalText gives nothing.
func (s Secret) MarshalText() ([]byte, error) { return []byte{}, nil }

func formatHidden(f fmt.State, word string, none bool) {
	if !none {
		_, _ = io.WriteString(f, word) // to a printer's buffer
	}
}

func hashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// mac derives 18 bytes, URL-safe, from the secret and the parts; no part can pass for two.
func (c *core) mac(ctx context.Context, parts ...string) (string, error) {
	sum, err := c.sum(ctx, parts...)
	if err != nil {
		return "", err
	}
	var text [24]byte
	base64.RawURLEncoding.Encode(text[:], sum[:18])
	return string(text[:]), nil
}

// secret is what hashes are keyed with. To key one takes longer than to hash a text.
type secret struct {
	key  []byte
	macs sync.Pool // of *keyedHash
}

// keyedHash is a hash that is keyed, and room for what it hashes.
type keyedHash struct {
	hash.Hash
	text []byte
}

func (c *core) sum(ctx context.Context, parts ...string) (Hash, error) {
	s := c.secret.Load()
	if s == nil {
		key, err := c.store.Secret(ctx)
		if err != nil {
			return Hash{}, err
		}
		s = &secret{key: key}
		c.secret.Store(s)
	}
	m, ok := s.macs.Get().(*keyedHash)
	if ok {
		m.Reset()
	} else {
		m = &keyedHash{Hash: hmac.New(sha256.New, s.key)}
	}
	defer s.macs.Put(m)
	m.text = m.text[:0]
	for _, p := range parts {
		m.text = binary.BigEndian.AppendUint64(m.text, uint64(len(p)))
		m.text = append(m.text, p...)
	}
	m.Write(m.text)
	m.text = m.Sum(m.text[:0])
	return Hash(m.text), nil
}

// DeriveKey derives a key of 32 bytes for a purpose of the caller's from the secret: the same each
// time, of no use for anything else.
func (s *Service) DeriveKey(ctx context.Context, purpose string) (key [32]byte, err error) {
	defer s.observe(&ctx, "DeriveKey").end(&err)
	err = s.op(ctx, "DeriveKey", func(time.Time) (err error) {
		key, err = s.sum(ctx, "derived", purpose)
		return err
	})
	return key, err
}

func (s *Service) codeHash(ctx context.Context, code string) (Hash, error) {
	return s.sum(ctx, "code", code)
}

// tokens derives what joining gave: with a nonce the same each time.
func (s *Service) tokens(ctx context.Context, d Driver, inv Invite, nonce string) (Joined, error) {
	joined := Joined{App: s.app, Driver: d, Token: s.ids.token(24)}
	var err error
	if nonce != "" {
		if joined.Token, err = s.mac(ctx, "app", string(s.app), string(d.ID), string(inv.LinkHash[:]),
			nonce); err != nil {
			return Joined{}, err
		}
	}
	joined.IngestToken, err = s.ingestToken(ctx, d)
	return joined, err
}

// ingestToken derives the token for fixes that d has, or is to have at d.TokenGeneration. Persons
// are in it: generations begin anew when an id is used again. Those who joined before that was so
// keep the token they have.
func (s *Service) ingestToken(ctx context.Context, d Driver) (string, error) {
	generation := strconv.Itoa(d.TokenGeneration)
	former, err := s.mac(ctx, "ingest", string(s.app), string(d.ID), generation)
	if err != nil || hashOf(former) == d.IngestToken {
		return former, err
	}
	return s.mac(ctx, "ingest", string(s.app), string(d.ID), d.Person, generation)
}

// Link is the state of a task's or trip's tracking link. Only the token's hash is kept; the token
// itself is derived again when asked for.
type Link struct {
	Generation int       // raised when the link is revoked or made anew
	Hash       Hash      // zero: revoked, no link is live
	MadeAt     time.Time // when this generation was made
}

// live reports whether the link is valid: until ttl after the end, or after it was made, whichever
// is later. An end that is zero has not come yet.
func (l Link) live(ended time.Time, ttl time.Duration, now time.Time) bool {
	if l.Hash.IsZero() {
		return false
	}
	return ended.IsZero() || within(ended, now, ttl) || within(l.MadeAt, now, ttl)
}

func (l *Link) revoke() (changed bool) {
	changed = !l.Hash.IsZero()
	l.Hash = Hash{}
	return changed
}

func (s *Service) linkToken(ctx context.Context, subject Subject, generation int) (string, error) {
	return s.mac(ctx, "link", string(s.app), string(subject.Kind), subject.ID, strconv.Itoa(generation))
}

// LinkToken returns the token of the tracking link that a task had when it was created or read, and
// "" where that was revoked. Nothing is asked for or made, as [Service.TaskLink] does where the link
// is dead.
func (s *Service) LinkToken(ctx context.Context, t Task) (token string, err error) {
	defer s.observe(&ctx, "LinkToken").end(&err)
	if token = s.links.token(s.app, t.Link.Hash); token != "" && ctx.Err() == nil {
		return token, nil
	}
	err = s.op(ctx, "LinkToken", func(time.Time) (err error) {
		if token, err = s.linkToken(ctx, t.subject(), t.Link.Generation); hashOf(token) != t.Link.Hash {
			token = ""
		}
		return err
	})
	return token, err
}

// newLink is the link that follows old.
func (s *Service) newLink(ctx context.Context, subject Subject, old Link, now time.Time) (Link, error) {
	token, err := s.linkToken(ctx, subject, old.Generation+1)
	if err != nil {
		return Link{}, err
	}
	hash := hashOf(token)
	s.links.keep(s.app, hash, token)
	return Link{Generation: old.Generation + 1, Hash: hash, MadeAt: now}, nil
}

// madeLinks are the tokens of some of the links made last: who creates a task asks for its token at once,
// which takes a tenth of creating it to work out anew.
type madeLinks [64]atomic.Pointer[madeLink]

type madeLink struct {
	app   AppID
	hash  Hash
	token string
}

func (l *madeLinks) keep(app AppID, hash Hash, token string) {
	l[hash[0]%64].Store(&madeLink{app, hash, token})
}

// token is "" where it is not known.
func (l *madeLinks) token(app AppID, hash Hash) string {
	if made := l[hash[0]%64].Load(); made != nil && made.hash == hash && made.app == app {
		return made.token
	}
	return ""
}

// link returns the token of l; when that is no longer valid it makes l anew, for the caller to put
// in.
func (c *change) link(ctx context.Context, subject Subject, l *Link, ended time.Time) (token string, made bool,
	err error) {
	token, err = c.linkToken(ctx, subject, l.Generation)
	if err != nil || l.live(ended, c.opts.LinkTTL, c.now) && hashOf(token) == l.Hash {
		return token, false, err
	}
	if *l, err = c.newLink(ctx, subject, *l, c.now); err != nil {
		return "", false, err
	}
	token, err = c.linkToken(ctx, subject, l.Generation)
	return token, err == nil, err
}

// noteGuard limits what the holders of links write: notesADay a link in any 24 hours. It knows what
// this process has seen, and of at most notesKept links: with more, the one that has been quiet the
// longest is forgotten, which only lets its holder write more.
type noteGuard struct {
	mu   sync.Mutex
	sent map[Hash]notesSent
}

const (
	notesADay = 10
	notesKept = 20_000
)

// notesSent are the notes of a link in the last 24 hours, the oldest first.
type notesSent []time.Time

// take counts a note; it returns how long to wait when there is none left. A clock that was put back
// prolongs no wait.
func (sent notesSent) take(now time.Time) (next notesSent, wait time.Duration) {
	for i := range sent {
		sent[i] = earlier(sent[i], now)
	}
	sent = slices.DeleteFunc(sent, func(at time.Time) bool { return now.Sub(at) >= day })
	if len(sent) >= notesADay {
		return sent, sent[0].Add(day).Sub(now)
	}
	return append(sent, now), 0
}

// giveBack takes back a note of that time, which was not kept.
func (sent notesSent) giveBack(at time.Time) notesSent {
	if i := slices.IndexFunc(sent, at.Equal); i >= 0 {
		return slices.Delete(sent, i, i+1)
	}
	return sent
}

func (g *noteGuard) take(link Hash, now time.Time) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sent, wait := g.sent[link].take(now)
	if wait > 0 {
		g.sent[link] = sent
		return wait
	}
	if g.sent == nil {
		g.sent = map[Hash]notesSent{}
	}
	if len(sent) == 1 {
		delete(g.sent, link)
		g.makeRoom(now)
	}
	g.sent[link] = sent
	return 0
}

// makeRoom forgets links when there is no room for another one: all that have been quiet for 24
// hours, and at least the one that has been quiet the longest.
func (g *noteGuard) makeRoom(now time.Time) {
	if len(g.sent) < notesKept {
		return
	}
	var quietest Hash
	var last time.Time
	for link, sent := range g.sent {
		newest := sent[len(sent)-1]
		if now.Sub(newest) >= day {
			delete(g.sent, link)
		} else if last.IsZero() || newest.Before(last) {
			quietest, last = link, newest
		}
	}
	if len(g.sent) >= notesKept {
		delete(g.sent, quietest)
	}
}

func (g *noteGuard) giveBack(link Hash, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sent[link] = g.sent[link].giveBack(at); len(g.sent[link]) == 0 {
		delete(g.sent, link)
	}
}

// takeNote counts a note of a link, for all processes where the store does so.
func (s *Service) takeNote(ctx context.Context, link Hash, now time.Time) (wait time.Duration, err error) {
	l, ok := s.store.(Limiter)
	if !ok {
		return s.notes.take(link, now), nil
	}
	err = limit(ctx, l, "note/"+hexOf(link), day, func(sent notesSent) notesSent {
		sent, wait = sent.take(now)
		return sent
	})
	return wait, err
}

// giveBackNote takes back a note that was not kept.
func (s *Service) giveBackNote(ctx context.Context, link Hash, at time.Time) {
	l, ok := s.store.(Limiter)
	if !ok {
		s.notes.giveBack(link, at)
		return
	}
	s.notCounted(ctx, limit(ctx, l, "note/"+hexOf(link), day, func(sent notesSent) notesSent { return sent.giveBack(at) }))
}

func hexOf(h Hash) string { return hex.EncodeToString(h[:]) }

// notCounted logs that what was counted too much could not be taken back: that only lets somebody do
// less.
func (s *Service) notCounted(ctx context.Context, err error) {
	if err != nil {
		s.opts.Logger.WarnContext(ctx, "a count is one too high", "err", err)
	}
}

// limit has a Limiter count in a value of that type. What cannot be read, of another version of this
// library, counts as nothing.
func limit[T any](ctx context.Context, l Limiter, name string, keep time.Duration, count func(T) T) error {
	return l.Limit(ctx, name, keep, func(value []byte) []byte {
		var v T
		if len(value) > 0 && json.Unmarshal(value, &v) != nil {
			v = *new(T)
		}
		next, err := json.Marshal(count(v))
		if err != nil {
			return value
		}
		return next
	})
}

// codeGuard limits guesses at codes. A guess counts as wrong until it has been found right, so that
// many at once gain nothing.
type codeGuard struct {
	mu      sync.Mutex
	sources map[string]*codeSource
	all     codeGuesses
	swept   time.Time // when sources were last forgotten
}

// codeSource is who guesses.
type codeSource struct {
	Wrong  int       `json:"wrong"`  // since the last wait
	Waits  int       `json:"waits"`  // that it has earned
	Until  time.Time `json:"until"`  // the wait lasts
	Active time.Time `json:"active"` // last guess
}

// codeGuesses are the wrong ones of the last minute, over all sources.
type codeGuesses []time.Time

var codeWaits = [...]time.Duration{15 * time.Minute, time.Hour, day}

// codeWait is how long the n-th wait lasts.
func codeWait(n int) time.Duration { return codeWaits[min(max(n-1, 0), len(codeWaits)-1)] }

const (
	codeTries    = 5
	codesAMinute = 20
)

// wait is how long the source has to wait. A clock that was put back prolongs no wait.
func (s *codeSource) wait(now time.Time) time.Duration {
	s.Until = earlier(s.Until, now.Add(codeWait(s.Waits)))
	return max(s.Until.Sub(now), 0)
}

// guess counts one.
func (s *codeSource) guess(now time.Time) {
	s.Active = now
	if s.Wrong++; s.Wrong >= codeTries {
		s.Wrong = 0
		s.Waits++
		s.Until = now.Add(codeWait(s.Waits))
	}
}

// forgive takes back a guess that was not wrong.
func (s *codeSource) forgive() {
	switch {
	case s.Wrong > 0:
		s.Wrong--
	case s.Waits > 0: // it was the one that began the wait
		s.Waits--
		s.Wrong, s.Until = codeTries-1, time.Time{}
	}
}

// guess counts one; it returns how long to wait when there is none left.
func (all codeGuesses) guess(now time.Time) (next codeGuesses, wait time.Duration) {
	if all = all.prune(now); len(all) >= codesAMinute {
		return all, all[0].Add(time.Minute).Sub(now)
	}
	return append(all, now), 0
}

func (all codeGuesses) forgive(at time.Time) codeGuesses {
	if i := slices.IndexFunc(all, at.Equal); i >= 0 {
		return slices.Delete(all, i, i+1)
	}
	return all
}

// prune forgets those of more than a minute ago.
func (all codeGuesses) prune(now time.Time) codeGuesses {
	for i := range all {
		all[i] = earlier(all[i], now)
	}
	i := 0
	for i < len(all) && now.Sub(all[i]) >= time.Minute {
		i++
	}
	return slices.Delete(all, 0, i)
}

// look takes one guess; it returns how long to wait when there is none left.
func (g *codeGuard) look(source string, now time.Time) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prune(now)
	if s := g.sources[source]; s != nil {
		if wait := s.wait(now); wait > 0 {
			return wait
		}
	}
	if g.all, wait = g.all.guess(now); wait > 0 {
		return wait
	}
	s := g.sources[source]
	if s == nil {
		s = &codeSource{}
		g.sources[source] = s
	}
	s.guess(now)
	return 0
}

// forgive takes back a guess, made at at, that was not wrong.
func (g *codeGuard) forgive(source string, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all = g.all.forgive(at)
	if s := g.sources[source]; s != nil {
		s.forgive()
	}
}

// prune forgets what no longer counts: wrong codes after a minute, sources a day after their last
// guess and their wait. Since a new source comes only with a guess that is looked at, there are
// never more than two days' worth.
func (g *codeGuard) prune(now time.Time) {
	g.all = g.all.prune(now)
	if within(g.swept, now, time.Hour) {
		return
	}
	g.swept = now
	for name, s := range g.sources {
		s.Active = earlier(s.Active, now)
		if s.wait(now) == 0 && now.Sub(s.Active) >= day {
			delete(g.sources, name)
		}
	}
}

// guess counts a guess at a code, for all processes where the store does so; it returns how long to
// wait when there is none left.
func (s *Service) guess(ctx context.Context, source string, now time.Time) (wait time.Duration, err error) {
	l, ok := s.store.(Limiter)
	if !ok {
		return s.guard.look(source, now), nil
	}
	who := "code/" + hexOf(hashOf(source))
	err = limit(ctx, l, who, 2*day, func(c codeSource) codeSource {
		if wait = c.wait(now); wait == 0 {
			c.guess(now)
		}
		return c
	})
	if err != nil || wait > 0 {
		return wait, err
	}
	err = limit(ctx, l, "codes", time.Minute, func(all codeGuesses) codeGuesses {
		all, wait = all.guess(now)
		return all
	})
	if wait > 0 { // it was not looked at
		err = limit(ctx, l, who, 2*day, func(c codeSource) codeSource { c.forgive(); return c })
	}
	return wait, err
}

// forgive takes back a guess that was not wrong.
func (s *Service) forgive(ctx context.Context, source string, at time.Time) {
	l, ok := s.store.(Limiter)
	if !ok {
		s.guard.forgive(source, at)
		return
	}
	s.notCounted(ctx, errors.Join(
		limit(ctx, l, "codes", time.Minute, func(all codeGuesses) codeGuesses { return all.forgive(at) }),
		limit(ctx, l, "code/"+hexOf(hashOf(source)), 2*day, func(c codeSource) codeSource { c.forgive(); return c }),
	))
}
