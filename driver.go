package tracking

import (
	"context"
	"maps"
	"time"
)

// DriverID identifies a driver (operator). The application chooses it, or one is made.
type DriverID string

// Driver is a person who carries out tasks and trips.
type Driver struct {
	ID         DriverID
	Name       string
	Mobile     string
	Email      string
	Available  bool // on duty
	Properties map[string]string

	OpenTasks int       // tasks assigned to or in progress with him
	Silent    bool      // available, but not heard of for Options.MaxFixAge
	DutyAt    time.Time // when Available last changed; zero: never
	OffDutyAt time.Time // when he last went off duty; zero: never. With Available, he was off duty from here to DutyAt

	TokenGeneration int  // raised by joining and by revoking
	AppToken        Hash // of the token his app acts with; zero: none
	IngestToken     Hash // of the token in the URL that his phone app posts to; zero: none

	CreatedAt time.Time
	UpdatedAt time.Time

	Seq     int64 // order of insertion; given by the store
	Version int64 // raised by each change; given by the store; fixes do not touch it

	// Position is filled in by reads and ignored by Commit.
	Position Position

	// Distance in metres is filled in by lists with a point, and 0 elsewhere.
	Distance float64
}

// Clone returns a deep copy.
func (d Driver) Clone() Driver {
	d.Properties = maps.Clone(d.Properties)
	if len(d.Properties) == 0 {
		d.Properties = nil
	}
	return d
}

// DriverFilter picks drivers. Zero fields do not filter.
type DriverFilter struct {
	Page               // default limit 20
	Near       *LngLat // only drivers with a position, nearest first
	Available  *bool
	Properties map[string]string // all of these, exactly
}

// Offer picks drivers for automatic assignment.
type Offer struct {
	At        LngLat
	MaxOpen   int       // only drivers with fewer open tasks; negative: no limit
	SeenSince time.Time // only drivers whose last sign of life is at or after this
	Within    float64   // metres; 0: no limit
	Exclude   []DriverID
	Limit     int
}

// TokenKind tells a driver's two tokens apart.
type TokenKind int

const (
	AppToken    TokenKind = 1 // acts as the driver
	IngestToken TokenKind = 2 // can only record the driver's fixes
)

// DriverReader reads drivers. The Position of each is as of now.
type DriverReader interface {
	// Driver reads one.
	Driver(ctx context.Context, app AppID, id DriverID) (Driver, error)

	// Drivers lists oldest first, by CreatedAt and then insertion; with f.Near nearest first by [Distance], ties by ID, and only those that have a position,
	// each with its Distance. More tells whether a further page exists. Page.Limit is given, 1 or more.
	Drivers(ctx context.Context, app AppID, f DriverFilter) (list []Driver, more bool, err error)

	// Offers lists drivers that are Available, not Silent, have a position and pass o, nearest first by [Distance], ties by ID, each with its Distance.
	// It costs the number of drivers that it looks at near o.At, not the number of drivers that are not to be offered anything.
	Offers(ctx context.Context, app AppID, o Offer) ([]Driver, error)

	// DriverByToken finds the driver, of any application, whose token's hash this is.
	DriverByToken(ctx context.Context, kind TokenKind, hash Hash) (AppID, Driver, error)
}

// offDuty reports whether the driver is off duty now, or is known to have been so at t.
func (d Driver) offDuty(t time.Time) bool {
	if !d.Available {
		return true
	}
	return !d.OffDutyAt.IsZero() && !t.Before(d.OffDutyAt) && t.Before(d.DutyAt)
}
