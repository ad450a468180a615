package tracking

import (
	"context"
	"fmt"
	"maps"
	"math"
	"time"
)

// AppID names an application, the tenant that rows belong to. A Service works for [DefaultApp] unless [Service.ForApp] says otherwise.
type AppID string

// DefaultApp is the application of a Service that was not scoped by [Service.ForApp].
const DefaultApp AppID = "default"

// LngLat is a place on the Earth in degrees (WGS 84).
type LngLat struct {
	Lng float64 // −180 … 180, east positive
	Lat float64 // −90 … 90, north positive
}

// Valid reports whether both numbers are finite and in range.
func (p LngLat) Valid() bool {
	return p.Lng >= -180 && p.Lng <= 180 && p.Lat >= -90 && p.Lat <= 90
}

// EarthRadius is the mean radius R1 = (2a + b) / 3 of the GRS 80 ellipsoid in metres (IUGG; Moritz 2000, Geodetic Reference System 1980).
const EarthRadius = 6371008.8

// Distance is the great-circle distance in metres by the haversine formula (Sinnott 1984) on a sphere of [EarthRadius].
// Every store and every rule uses this one function, so that their orders agree to the last bit.
func Distance(a, b LngLat) float64 {
	const rad = math.Pi / 180
	sy, sx := math.Sin((b.Lat-a.Lat)*rad/2), math.Sin((b.Lng-a.Lng)*rad/2)
	h := sy*sy + math.Cos(a.Lat*rad)*math.Cos(b.Lat*rad)*sx*sx
	return 2 * EarthRadius * math.Asin(math.Min(1, math.Sqrt(h)))
}

// ErrorCode is the kind of an error. Its values are errors themselves: errors.Is(err, tracking.ErrNotFound).
type ErrorCode string

const (
	ErrInvalid      ErrorCode = "invalid"      // the input is wrong; Error.Field names it
	ErrUnauthorized ErrorCode = "unauthorized" // no valid key or token
	ErrNotFound     ErrorCode = "not_found"    // nothing of this application (or this driver) has that id
	ErrConflict     ErrorCode = "conflict"     // the present state forbids it
	ErrTooLarge     ErrorCode = "too_large"    // more than one call may carry
	ErrRateLimited  ErrorCode = "rate_limited" // too many tries; Error.RetryAfter says when to come again
	ErrUnavailable  ErrorCode = "unavailable"  // the store cannot answer now; the outcome of a write may be unknown
	ErrInternal     ErrorCode = "internal"     // a fault of ours
)

func (c ErrorCode) Error() string { return string(c) }

// Error is what every Service method returns when it fails. Message and Field are for the caller and never hold a value
// that the caller sent; Err is for the log only.
type Error struct {
	Code       ErrorCode
	Message    string        // a sentence the caller can act on
	Field      string        // the input to blame, as its JSON path ("drop.lnglat"); "" when none is
	RetryAfter time.Duration // for ErrRateLimited and ErrUnavailable: when to try again
	Err        error         // the cause
}

func (e *Error) Error() string {
	s := e.Message
	if s == "" {
		s = string(e.Code)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is this error's [ErrorCode].
func (e *Error) Is(target error) bool { c, ok := target.(ErrorCode); return ok && c == e.Code }

// Hash is the SHA-256 of a secret. The zero Hash means "none" and is never found.
type Hash [32]byte

// IsZero reports whether there is none.
func (h Hash) IsZero() bool { return h == Hash{} }

// Link is the state of a task's or trip's tracking link. Only the token's hash is kept; the token itself is derived again when asked for.
type Link struct {
	Generation int       // raised when the link is revoked or made anew
	Hash       Hash      // zero: revoked, no link is live
	MadeAt     time.Time // when this generation was made
}

// Page picks a part of a list. The zero Page is the first one with the default length.
type Page struct {
	Number int // from 1; 0 means 1
	Limit  int // 1 … 1000; 0 means the list's default
}

// Offset is the number of rows before the page; it saturates instead of overflowing.
func (p Page) Offset() int {
	n, l := max(p.Number, 1)-1, max(p.Limit, 1)
	if n > math.MaxInt/l {
		return math.MaxInt
	}
	return n * l
}

// A Store keeps the rows. It is a strongly consistent notebook without opinions: every rule is in [Service], and a store never
// interprets a status, with the few exceptions that the comments below name.
//
// The application is an argument of every method but the look-ups by a secret (which return it) and the sweeps of [Service.Run].
// A row of one application is invisible and unreachable from another.
//
// All methods may be called at once from many goroutines. A read sees every Commit and RecordFixes that returned before it began.
// What a caller passes in or gets back is the caller's: a store copies what it keeps, and hands out copies.
// Times are kept as whole milliseconds and returned in UTC; the zero time stays the zero time. Texts come back byte for byte and compare byte for byte.
// Empty slices and maps come back as nil.
//
// Reads of one row that is not there return an error for which errors.Is(err, ErrNotFound) holds. Lists are nil then.
// A store that cannot answer returns an error for which errors.Is(err, ErrUnavailable) holds; a context that ended, its error.
type Store interface {
	TaskReader
	TripReader
	DriverReader
	InviteReader
	KeyReader
	EventReader

	// Commit applies cs, all or nothing. See [Changeset]. A nil error means that it is durable.
	//
	// It returns a *ConflictError when a row is not at the version that cs names or when a unique value is taken; then nothing is changed.
	// When ctx ends during the call, either all of cs is applied or nothing.
	Commit(ctx context.Context, app AppID, cs *Changeset) error

	// RecordFixes keeps b's fixes by [FixBatch.Record], in one atomic step, and moves the driver's last sign of life to b.SeenAt if that is newer.
	// It touches neither the driver's version nor UpdatedAt. No fixes is a sign of life only. It returns the driver as he is afterwards,
	// and what became of each fix, in b's order. ErrNotFound when there is no such driver.
	RecordFixes(ctx context.Context, app AppID, b FixBatch) (Recorded, error)

	// LeaseEvents hands out undelivered events of any application, oldest subject first, at most l.Limit, and leases the whole queue of each
	// subject they belong to until l.Until: no other owner gets an event of that subject before then, or before FinishEvents ends the lease.
	// The events of a subject come in order of Seq, without a gap, beginning with its first undelivered one. A subject whose first undelivered
	// event is to be tried again later (Delivery.RetryAt after l.Now) is passed over.
	LeaseEvents(ctx context.Context, l Lease) ([]Leased, error)

	// FinishEvents says what became of leased events, and ends the owner's lease on each subject named. A delivery whose lease
	// has meanwhile gone to another owner is ignored, except that Delivered is always noted: the receiver has it.
	FinishEvents(ctx context.Context, done []Delivery) error

	// Due lists, across applications unless q.App is set, what has come due by q.Before, the longest due first, at most q.Limit.
	Due(ctx context.Context, q DueQuery) ([]Due, error)

	// Waiting lists tasks with Waiting set, across applications unless app is given, oldest first (by CreatedAt, then insertion),
	// those after the cursor, at most n.
	Waiting(ctx context.Context, app AppID, after Cursor, n int) ([]AppTask, error)

	// Purge removes at most b.Limit rows that are older than b says: fixes by their time, delivered and dead events and all notices by RecordedAt,
	// requests and invites that are long over. What is undelivered stays. It never changes which of the remaining fixes are good.
	Purge(ctx context.Context, b Before) (Purged, error)

	// Secret returns the store's own random secret of 32 bytes, made when first asked for and the same ever after.
	Secret(ctx context.Context) ([]byte, error)

	// Close releases what the store holds. Calls after it return ErrUnavailable.
	Close() error
}

// A Changeset is one change of state: rows and the events they cause, applied all or nothing by [Store.Commit].
//
// A row whose Version is 0 is inserted with version 1, and gets the next Seq; an id that exists is a conflict. Any other row replaces
// the row that has exactly that version, which becomes Version + 1; Seq and CreatedAt stay as they were. A Changeset holds a row at most once.
// Updates apply before inserts, so that one Changeset can end a trip and start another with the same tracking id.
//
// Unique, else a *ConflictError with Unique set: the idempotency key among an application's tasks ("key"), the tracking id among an application's
// active trips ("tracking_id"), an invite's code hash over the whole store ("code"), the hash of an API key ("hash").
//
// Invites, requests and fixes belong to a driver: without his row (after the inserts of this Changeset) they are a conflict on that driver.
type Changeset struct {
	Tasks   []Task
	Trips   []Trip
	Drivers []Driver // the Position inside is ignored; positions come from fixes only

	// DeleteDrivers removes the drivers at exactly these versions with their invites, requests, notices, position and fixes. Tasks, trips and events stay.
	DeleteDrivers []Driver

	Invites []Invite  // one a driver: Version 0 replaces whatever was there
	Keys    []Key     // API keys
	Push    []Request // trip requests, one a driver and tracking id: each replaces what was there

	// CloseRequests removes requests; one that is not there is ignored.
	CloseRequests []RequestID

	Fixes []FixBatch // recorded by the rule of RecordFixes, in the same step

	// Events are appended in this order. The store gives each its Seq: 1, 2, 3 … for its subject, without gaps, also after a purge;
	// and each of its Notices the next ID of its driver's feed. Notices for a driver without a row are dropped.
	Events []Event

	// Deliver: the events go to the outbox, for LeaseEvents. Else they count as delivered.
	Deliver bool
}

// ConflictError says which row had moved, or which unique value is taken, when Commit refused a Changeset. The caller reads again and decides again.
type ConflictError struct {
	Kind   SubjectKind // task, trip, driver, invite, key
	ID     string      // "" where Unique says it all
	Unique string      // "", or the unique value that is taken: key, tracking_id, code, hash
}

func (e *ConflictError) Error() string {
	if e.Unique != "" {
		return fmt.Sprintf("%s: the %s is taken", e.Kind, e.Unique)
	}
	return fmt.Sprintf("%s has changed meanwhile", e.Kind)
}

// Is makes errors.Is(err, ErrConflict) hold.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// Cursor is a place in a list ordered by creation and then insertion. The zero Cursor is before everything.
type Cursor struct {
	CreatedAt time.Time
	Seq       int64
}

// DueKind is a kind of thing that comes due.
type DueKind int

const (
	DueTrips    DueKind = iota + 1 // active trips whose TTL is at or before Before
	DueGeocodes                    // tasks and trips whose GeocodeAt is set and at or before Before
	DueSilence                     // drivers, Available and not Silent, whose last sign of life and DutyAt are both at or before Before
)

// DueQuery asks for what has come due.
type DueQuery struct {
	Kind   DueKind
	App    AppID // "" for all
	Before time.Time
	Limit  int
}

// Due names a row that has come due.
type Due struct {
	App     AppID
	Subject Subject
}

// AppTask is a task and the application it belongs to.
type AppTask struct {
	App  AppID
	Task Task
}

// Before says what Purge may remove. A zero time removes nothing of that kind.
type Before struct {
	Fixes  time.Time
	Events time.Time
	Limit  int
}

// Purged counts what a Purge removed.
type Purged struct {
	Fixes, Events, Notices, Requests, Invites int
}

// Total is the number of rows removed.
func (p Purged) Total() int { return p.Fixes + p.Events + p.Notices + p.Requests + p.Invites }

// SubjectKind is the kind of thing an event is about.
type SubjectKind string

const (
	KindTask   SubjectKind = "task"
	KindTrip   SubjectKind = "trip"
	KindDriver SubjectKind = "driver"
	KindInvite SubjectKind = "invite" // in conflicts only
	KindKey    SubjectKind = "key"    // in conflicts only
)

// Subject is the thing an event is about.
type Subject struct {
	Kind SubjectKind
	ID   string
}

// EventType says what happened.
type EventType string

const (
	TaskCreated       EventType = "task.created"
	TaskUpdated       EventType = "task.updated"
	TaskAssigned      EventType = "task.assigned" // also when it moves from one driver to another: data.previous_driver_id
	TaskUnassigned    EventType = "task.unassigned"
	TaskDeclined      EventType = "task.declined"
	TaskStarted       EventType = "task.started"
	TaskPickedUp      EventType = "task.picked_up"
	TaskCompleted     EventType = "task.completed" // data.outcome: succeeded, failed, cancelled
	TripRequested     EventType = "trip.requested" // its subject is the driver: there is no trip yet
	TripStarted       EventType = "trip.started"
	TripStopped       EventType = "trip.stopped"
	TripDiscarded     EventType = "trip.discarded"
	DriverAvailable   EventType = "driver.available"
	DriverUnavailable EventType = "driver.unavailable"
	DriverSilent      EventType = "driver.silent"
	DriverJoined      EventType = "driver.joined"
)

// Event is one change of state, written in the same step as the change.
type Event struct {
	ID         string
	Type       EventType
	Time       time.Time // when it happened
	RecordedAt time.Time // when it reached us
	Actor      string    // key:<id>, driver:<id>, system, or what [Service.As] said
	Subject    Subject
	Seq        int64             // 1, 2, 3 … for its subject; given by the store
	Data       map[string]string // ids, words and times; no personal data
	Notices    []Notice          // the drivers who are told
}

// Clone returns a deep copy.
func (e Event) Clone() Event {
	e.Data = maps.Clone(e.Data)
	if len(e.Data) == 0 {
		e.Data = nil
	}
	e.Notices = append([]Notice(nil), e.Notices...)
	return e
}

// NoticeKind is what a driver is told.
type NoticeKind string

const (
	NoticeAssigned   NoticeKind = "assigned"
	NoticeUnassigned NoticeKind = "unassigned"
	NoticeUpdated    NoticeKind = "updated"
	NoticeCancelled  NoticeKind = "cancelled"
	NoticeRequest    NoticeKind = "trip_request"
)

// Notice is one entry of a driver's feed. It names what it is about; what to say is read from the rows when it is shown.
type Notice struct {
	ID         int64 // strictly growing for the driver; given by the store
	DriverID   DriverID
	Kind       NoticeKind
	EventID    string // of the event that caused it; set by the store
	TaskID     TaskID
	TrackingID TrackingID // of a trip request
	Time       time.Time  // the event's RecordedAt; set by the store
}

// EventReader reads events and notices.
type EventReader interface {
	// Events lists in order of commit (and within one in the order of Changeset.Events); see [EventFilter]. More tells whether there are further ones.
	// An After that names no event there is ErrNotFound.
	Events(ctx context.Context, app AppID, f EventFilter) (list []Event, more bool, err error)

	// Notices lists a driver's notices with an ID greater than after, in order of ID, at most limit. Lost tells that the caller's place is gone:
	// a notice greater than after has been purged, or after is greater than any ID that was given.
	Notices(ctx context.Context, app AppID, driver DriverID, after int64, limit int) (list []Notice, lost bool, err error)
}

// EventFilter picks events.
type EventFilter struct {
	Subject Subject // zero: all; the Notices of an event do not count
	After   string  // only those after this event's ID
	Dead    bool    // only those whose delivery was given up
	Limit   int
}

// Lease asks for events to deliver.
type Lease struct {
	Owner string
	Now   time.Time
	Until time.Time
	Limit int
}

// Leased is an event to deliver.
type Leased struct {
	App     AppID
	Event   Event
	Attempt int // 1 for the first
}

// DeliveryState is what became of a delivery.
type DeliveryState string

const (
	Delivered DeliveryState = "delivered"
	Retry     DeliveryState = "retry"    // try again at RetryAt; counts as an attempt
	Dead      DeliveryState = "dead"     // given up; the next event of the subject is free to go
	Released  DeliveryState = "released" // not tried; RetryAt is ignored and no attempt counted. A dead event given back like this is tried anew from attempt 1, whoever owns a lease
)

// Delivery says what became of one leased event.
type Delivery struct {
	App     AppID
	EventID string
	Owner   string
	State   DeliveryState
	RetryAt time.Time
}
