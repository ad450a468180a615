package tracking

import (
	"context"
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
