package tracking

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Invite lets a driver join, once. A driver has at most one; a new one replaces it.
type Invite struct {
	DriverID      DriverID
	LinkHash      Hash // of the token in the link
	CodeHash      Hash // of the 6-digit code, keyed by the secret
	CreatedAt     time.Time
	LinkExpiresAt time.Time
	CodeExpiresAt time.Time

	JoinedAt   time.Time // zero: not yet used
	NonceHash  Hash      // of the nonce it was used with; zero: none
	Generation int       // the driver's TokenGeneration that joining gave

	Version int64
}

// InviteReader reads invites.
type InviteReader interface {
	// Invite reads a driver's.
	Invite(ctx context.Context, app AppID, driver DriverID) (Invite, error)

	// InviteByHash finds the invite, of any application, whose LinkHash or CodeHash this is.
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
	DriverID      DriverID
	Token         string // for the link; lives until LinkExpiresAt
	Code          int    // 100000 to 999999; lives until CodeExpiresAt
	LinkExpiresAt time.Time
	CodeExpiresAt time.Time
}

// InviteDriver invites a driver, who exists from then on, and kills an older invite of the same driver. Codes: ErrInvalid.
//
// A code is one of 900,000: a guess hits one of n live codes with a chance of n / 900,000. See [Service.Join] for how guesses are limited.
func (s *Service) InviteDriver(ctx context.Context, n NewInvite) (Invitation, error) {
	var c check
	if n.DriverID != "" {
		c.name("user_id", string(n.DriverID))
	}
	c.person(n.Name, n.Mobile, n.Email)
	if c.err != nil {
		return Invitation{}, c.err
	}
	var made Invitation
	err := s.op(ctx, "InviteDriver", func(now time.Time) error {
		id := n.DriverID
		if id == "" {
			id = DriverID(s.ids.next(now))
		}
		cs := &Changeset{}
		d, err := s.store.Driver(ctx, s.app, id)
		switch {
		case errors.Is(err, ErrNotFound):
			d = Driver{ID: id, OffDutyAt: now, CreatedAt: now, UpdatedAt: now}
			d.describe(n.Name, n.Mobile, n.Email)
			cs.Drivers = []Driver{d}
		case err != nil:
			return err
		case d.describe(n.Name, n.Mobile, n.Email):
			d.UpdatedAt = now
			cs.Drivers = []Driver{d}
		}
		made = Invitation{
			DriverID: id, Token: s.ids.token(18), Code: 100000 + int(s.ids.below(900000)),
			LinkExpiresAt: now.Add(s.opts.InviteTTL), CodeExpiresAt: now.Add(s.opts.CodeTTL),
		}
		code, err := s.codeHash(ctx, fmt.Sprint(made.Code))
		if err != nil {
			return err
		}
		cs.Invites = []Invite{{
			DriverID: id, LinkHash: hashOf(made.Token), CodeHash: code, CreatedAt: now, LinkExpiresAt: made.LinkExpiresAt, CodeExpiresAt: made.CodeExpiresAt,
		}}
		return s.commit(ctx, cs) // a code that is taken is a conflict: the next try makes another
	})
	if err != nil {
		return Invitation{}, err
	}
	return made, nil
}

func (s *Service) codeHash(ctx context.Context, code string) (Hash, error) {
	return s.sum(ctx, "code", code)
}

// Join is how a driver takes up an invite: by its link's token or by its code.
type Join struct {
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

var errNoInvite = &Error{Code: ErrNotFound, Message: "This invite or code is not valid, or no longer."}

// Join ties a phone to the driver who was invited. It works across applications: the invite says which one.
//
// Wrong codes are counted: after 5 a source waits 15 minutes, after 5 more an hour, then a day; over all sources at most 20 wrong codes a minute are looked at.
// Links are never limited. Codes: ErrNotFound, the same for wrong, expired and used ones; ErrRateLimited; ErrInvalid.
func (s *Service) Join(ctx context.Context, j Join) (Joined, error) {
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
		if wait := s.guard.look(j.Source, now); wait > 0 {
			return Joined{}, &Error{Code: ErrRateLimited, Message: "Too many wrong codes; try again later, or use the link.", RetryAfter: wait}
		}
		joined, err := s.join(ctx, j)
		if !errors.Is(err, ErrNotFound) {
			s.guard.forgive(j.Source, now)
		}
		return joined, err
	}
	return s.join(ctx, j)
}

func (s *Service) join(ctx context.Context, j Join) (Joined, error) {
	var joined Joined
	err := s.op(ctx, "Join", func(now time.Time) error {
		hash := hashOf(j.Token)
		if j.Code != "" {
			var err error
			if hash, err = s.codeHash(ctx, j.Code); err != nil {
				return err
			}
		}
		app, inv, err := s.store.InviteByHash(ctx, hash)
		if errors.Is(err, ErrNotFound) {
			return errNoInvite
		}
		if err != nil {
			return err
		}
		expires := inv.LinkExpiresAt
		if j.Code != "" {
			expires = inv.CodeExpiresAt
		}
		if (j.Code != "") != (hash == inv.CodeHash) {
			return errNoInvite
		}
		svc := s.ForApp(app)
		d, err := s.store.Driver(ctx, app, inv.DriverID)
		if errors.Is(err, ErrNotFound) {
			return errNoInvite
		}
		if err != nil {
			return err
		}
		if !inv.JoinedAt.IsZero() { // used: only the same client may have its answer again
			if j.Nonce == "" || hashOf(j.Nonce) != inv.NonceHash || !now.Before(inv.JoinedAt.Add(nonceFor)) || d.TokenGeneration != inv.Generation {
				return errNoInvite
			}
			joined, err = svc.tokens(ctx, d, inv, j.Nonce)
			return err
		}
		if !now.Before(expires) {
			return errNoInvite
		}
		d.TokenGeneration++
		inv.JoinedAt, inv.Generation, inv.NonceHash = now, d.TokenGeneration, Hash{}
		if j.Nonce != "" {
			inv.NonceHash = hashOf(j.Nonce)
		}
		if joined, err = svc.tokens(ctx, d, inv, j.Nonce); err != nil {
			return err
		}
		d.AppToken, d.IngestToken, d.Push = hashOf(joined.Token), hashOf(joined.IngestToken), nil
		if err := svc.commit(ctx, &Changeset{
			Drivers: []Driver{d}, Invites: []Invite{inv}, Fixes: []FixBatch{{DriverID: d.ID, SeenAt: now}},
			Events: []Event{s.event(DriverJoined, d.subject(), now, now, driverActor(d.ID))},
		}); err != nil {
			return err
		}
		if d, err := s.store.Driver(ctx, app, d.ID); err == nil {
			joined.Driver = d
		}
		return nil
	})
	if err != nil {
		return Joined{}, err
	}
	return joined, nil
}

// tokens derives what joining gave: with a nonce the same each time.
func (s *Service) tokens(ctx context.Context, d Driver, inv Invite, nonce string) (Joined, error) {
	joined := Joined{App: s.app, Driver: d, Token: s.ids.token(24)}
	var err error
	if nonce != "" {
		if joined.Token, err = s.mac(ctx, "app", string(s.app), string(d.ID), string(inv.LinkHash[:]), nonce); err != nil {
			return Joined{}, err
		}
	}
	joined.IngestToken, err = s.ingestToken(ctx, d.ID, inv.Generation)
	return joined, err
}

func (s *Service) ingestToken(ctx context.Context, d DriverID, generation int) (string, error) {
	return s.mac(ctx, "ingest", string(s.app), string(d), fmt.Sprint(generation))
}

// IngestToken returns the token for the URL that the driver's phone app posts to. Codes: ErrNotFound; ErrConflict when the driver has not joined, or the secret is another now.
func (s *Service) IngestToken(ctx context.Context, driver DriverID) (token string, err error) {
	err = s.op(ctx, "IngestToken", func(time.Time) error {
		d, err := s.driver(ctx, driver)
		if err != nil {
			return err
		}
		if token, err = s.ingestToken(ctx, d.ID, d.TokenGeneration); err != nil {
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

// RevokeTokens makes a driver's tokens dead, until the next joining. Codes: ErrNotFound.
func (s *Service) RevokeTokens(ctx context.Context, driver DriverID) error {
	return s.op(ctx, "RevokeTokens", func(time.Time) error {
		d, err := s.driver(ctx, driver)
		if err != nil || d.AppToken.IsZero() && d.IngestToken.IsZero() {
			return err
		}
		d.TokenGeneration++
		d.AppToken, d.IngestToken, d.Push = Hash{}, Hash{}, nil
		return s.commit(ctx, &Changeset{Drivers: []Driver{d}})
	})
}

// AuthenticateDriver finds whose token it is. Codes: ErrUnauthorized.
func (s *Service) AuthenticateDriver(ctx context.Context, kind TokenKind, token string) (app AppID, driver DriverID, err error) {
	err = s.op(ctx, "AuthenticateDriver", func(time.Time) error {
		a, d, err := s.store.DriverByToken(ctx, kind, hashOf(token))
		if errors.Is(err, ErrNotFound) {
			return &Error{Code: ErrUnauthorized, Message: "The token is not valid; join again."}
		}
		app, driver = a, d.ID
		return err
	})
	return app, driver, err
}

// CreateKey makes an API key. The secret is shown this once; the store keeps its hash. Codes: ErrInvalid.
func (s *Service) CreateKey(ctx context.Context, name string) (key Key, secret string, err error) {
	var c check
	c.line("name", name, 200)
	if c.err != nil {
		return Key{}, "", c.err
	}
	err = s.op(ctx, "CreateKey", func(now time.Time) error {
		secret = s.ids.token(24)
		key = Key{ID: s.ids.next(now), Name: name, Hash: hashOf(secret), CreatedAt: now}
		return s.commit(ctx, &Changeset{Keys: []Key{key}})
	})
	if err != nil {
		return Key{}, "", err
	}
	key.Version = 1
	return key, secret, nil
}

// Keys lists the application's API keys, oldest first, revoked ones included.
func (s *Service) Keys(ctx context.Context) (list []Key, err error) {
	err = s.op(ctx, "Keys", func(time.Time) error { list, err = s.store.Keys(ctx, s.app); return err })
	return list, err
}

// RevokeKey makes an API key dead. Codes: ErrNotFound.
func (s *Service) RevokeKey(ctx context.Context, id string) error {
	return s.op(ctx, "RevokeKey", func(now time.Time) error {
		keys, err := s.store.Keys(ctx, s.app)
		if err != nil {
			return err
		}
		for _, k := range keys {
			if k.ID != id {
				continue
			}
			if !k.RevokedAt.IsZero() {
				return nil
			}
			k.RevokedAt = now
			return s.commit(ctx, &Changeset{Keys: []Key{k}})
		}
		return notFound("id", "key")
	})
}

// AuthenticateKey finds whose API key it is. Codes: ErrUnauthorized, the same for unknown and revoked ones.
func (s *Service) AuthenticateKey(ctx context.Context, secret string) (app AppID, key Key, err error) {
	err = s.op(ctx, "AuthenticateKey", func(time.Time) error {
		a, k, err := s.store.KeyByHash(ctx, hashOf(secret))
		if errors.Is(err, ErrNotFound) || err == nil && !k.RevokedAt.IsZero() {
			return &Error{Code: ErrUnauthorized, Message: "The key is not valid."}
		}
		app, key = a, k
		return err
	})
	return app, key, err
}

// codeGuard limits guesses at codes. A guess counts as wrong until it has been found right, so that many at once gain nothing.
type codeGuard struct {
	mu      sync.Mutex
	sources map[string]*codeSource
	all     []time.Time // of the wrong ones of the last minute, over all sources
	swept   time.Time   // when sources were last forgotten
}

type codeSource struct {
	wrong  int       // since the last wait
	waits  int       // that it has earned
	until  time.Time // the wait lasts
	active time.Time // last guess
}

var codeWaits = [...]time.Duration{15 * time.Minute, time.Hour, day}

const (
	codeTries    = 5
	codesAMinute = 20
)

// look takes one guess; it returns how long to wait when there is none left.
func (g *codeGuard) look(source string, now time.Time) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.prune(now)
	if s := g.sources[source]; s != nil && now.Before(s.until) {
		return s.until.Sub(now)
	}
	if len(g.all) >= codesAMinute {
		return g.all[0].Add(time.Minute).Sub(now)
	}
	s := g.sources[source]
	if s == nil {
		s = &codeSource{}
		g.sources[source] = s
	}
	s.active = now
	if s.wrong++; s.wrong >= codeTries {
		s.until = now.Add(codeWaits[min(s.waits, len(codeWaits)-1)])
		s.wrong = 0
		s.waits++
	}
	g.all = append(g.all, now)
	return 0
}

// forgive takes back a guess, made at at, that was not wrong.
func (g *codeGuard) forgive(source string, at time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.IndexFunc(g.all, at.Equal); i >= 0 {
		g.all = slices.Delete(g.all, i, i+1)
	}
	s := g.sources[source]
	switch {
	case s == nil:
	case s.wrong > 0:
		s.wrong--
	default: // it was the one that began the wait
		s.waits--
		s.wrong, s.until = codeTries-1, time.Time{}
	}
}

// prune forgets what no longer counts: wrong codes after a minute, sources a day after their last guess and their wait.
// Since a new source comes only with a guess that is looked at, there are never more than two days' worth.
func (g *codeGuard) prune(now time.Time) {
	i := 0
	for i < len(g.all) && now.Sub(g.all[i]) >= time.Minute {
		i++
	}
	g.all = slices.Delete(g.all, 0, i)
	if now.Sub(g.swept) < time.Hour {
		return
	}
	g.swept = now
	for name, s := range g.sources {
		if !now.Before(s.until) && now.Sub(s.active) >= day {
			delete(g.sources, name)
		}
	}
}
