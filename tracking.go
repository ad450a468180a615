// Package tracking is a delivery-tracking service that a Go program embeds: tasks (pickups, drops, or both), trips that are followed live, drivers,
// assignment to the nearest driver, invites, and tracking links for customers. It runs in process, over a [Store] in memory or in a SQLite file;
// package httpadapter puts it on the web.
//
// # Beginning
//
//	store := memory.New()                     // store/memory, or sqlite.Open("deliveries.db", nil)
//	svc, err := tracking.New(store, nil)      // nil options work
//	go svc.Run(ctx)                           // delivers events, serves waiting tasks, ends trips
//
//	svc.SaveDriver(ctx, tracking.SaveDriver{ID: "asha", Available: new(true), LngLat: &tracking.LngLat{Lng: 80.27, Lat: 13.08}})
//	task, err := svc.CreateTask(ctx, tracking.NewTask{
//		Type:       tracking.Drop,
//		Drop:       &tracking.Place{LngLat: &tracking.LngLat{Lng: 80.25, Lat: 13.06}, Address: "12 Anna Salai"},
//		AutoAssign: true,
//	})
//	// task.Status is assigned, task.DriverID is asha
//
// # Tasks
//
// A task is created, assigned, in_progress and completed; a completed one has an [Outcome]. The application creates it ([Service.CreateTask]), gives it to a driver
// ([Service.AssignTask]), takes it back ([Service.UnassignTask]), changes it ([Service.UpdateTask]) and ends it ([Service.CancelTask], [Service.CompleteTask]).
// Its driver starts it ([Service.StartTask]), notes the pickup ([Service.PickUpTask]), finishes it ([Service.FinishTask]) or declines it ([Service.DeclineTask]).
// Every verb may be repeated: what is so already is left as it is, and fires nothing. What the present state forbids is ErrConflict; another driver's task is ErrNotFound.
//
// With NewTask.AutoAssign the task goes to the nearest driver, by great circle to the pickup (for a drop: to the drop), who is available, was heard of within
// Options.MaxFixAge, has fewer open tasks than Options.MaxOpenTasks, is within Options.MaxAssignDistance, and has neither declined the task nor had it taken away.
// Equally near ones are told apart by fewer open tasks, then by id. When there is none the task waits; those that wait are served oldest first, and before newer tasks,
// as soon as a driver becomes available, free, or near. However many programs and goroutines assign at once, no driver gets more than the limit automatically;
// by hand anything may be given to anyone.
//
// # Fixes and trips
//
// A fix is what a phone measured: a place and a time. It belongs to its driver. Fixes come in any order, doubled and late ([Service.RecordFixes]); each is kept once, and
// [FixOutcome] says what became of it. A fix that could not have been reached from the good fix before it at [MaxSpeed] is a jump: it is kept aside until the next one agrees with it.
// Which fixes are good depends on the kept fixes alone and not on the order they came in. The live position is the newest good fix by its own time.
//
// A trip is a window of time over its driver's fixes; its path is the good fixes within. So two trips at once share their fixes, a late fix joins the trips that were
// active at its time, and one after the end touches none. A trip ends when its driver says so, with its task, or Options.TripTTL after its last fix; then it is stopped, or discarded
// if it holds no fix at all. That holds from the very instant for every reader.
//
// Steps that a driver reports carry the time on the phone ([Step].At), so that what was done offline is put where it belongs. It is clamped to between the step before and now.
// Off duty and on no trip, nothing of a driver is kept. What was measured between going off duty and 2 minutes before coming back is dropped even when it comes later.
//
// # Drivers and invites
//
// A driver is made by [Service.SaveDriver] or by an invite ([Service.InviteDriver]). With its link or its 6-digit code the driver joins, once ([Service.Join]), and gets two tokens: one acts as the driver,
// one can only record fixes. Joining again, or [Service.RevokeTokens], makes the older ones dead. A sign of life is any fix, however old, and any step, change of duty, or joining.
// The completed tasks of the last 24 hours are what the driver app calls today's.
//
// # Tracking links
//
// [Service.TaskLink] and [Service.TripLink] give the token of a link for the customer; [Service.Tracking] and [Service.Follow] say what its holder may see: the driver only
// between start and end of that task or trip, never a phone number, a note or another stop, and after the end the final state without any position.
//
// # Events
//
// Every change writes its [Event] in the same atomic step: Seq counts 1, 2, 3 … for its subject. [Service.Events] reads them; a [Notifier] is told of each by [Service.Run], at least once
// and in order for each subject. There may be several: each has an outbox of its own, so that one whose receiver is down holds up none of the others. Moving a task from one driver to another is one event, task.assigned with data.previous_driver_id; a request to start a trip is an event of the driver, since
// there is no trip yet. What a driver is told is a feed of notices, [Service.Notices].
//
// # Applications
//
// A Service works for one application. [Service.ForApp] returns a copy for another, which shares everything but the rows; [Service.As] one whose events name an actor.
//
// # Errors
//
// Methods return *[Error], with a code, a message for the caller, and the field to blame. Codes are errors: errors.Is(err, tracking.ErrNotFound).
//
// # Security
//
// Keys, tokens and codes are stored as hashes. Options.Secret keys links, codes and ingest tokens; without it the store keeps one of its own, and who copies the store's file can make its live links.
// A code is one of 900,000, so that a guess hits with a chance of the number of live codes / 900,000; see [Service.Join] for how guesses are limited.
package tracking

import (
	"cmp"
	"context"
	"crypto/hmac"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
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
	// It touches neither the driver's version nor UpdatedAt. No fixes is a sign of life only. It returns the driver as of afterwards,
	// and what became of each fix, in b's order. ErrNotFound when there is no such driver.
	RecordFixes(ctx context.Context, app AppID, b FixBatch) (Recorded, error)

	// LeaseEvents hands out the undelivered events of one outbox, of any application, oldest subject first, at most l.Limit, and leases the whole queue of each
	// subject they belong to until l.Until: no other owner gets an event of that subject from that outbox before then, or before FinishEvents ends the lease.
	// The events of a subject come in order of Seq, beginning with its first undelivered one, and none that the outbox has undelivered is left out. A subject
	// whose first undelivered event is to be tried again later (Delivery.RetryAt after l.Now) is passed over, and so are the applications in l.Except.
	//
	// Outboxes know nothing of each other: leases, attempts, retries and what is dead in one are nothing to another.
	LeaseEvents(ctx context.Context, l Lease) ([]Leased, error)

	// FinishEvents says what became of leased events, and ends the owner's lease on each subject named, in the outbox named. A delivery whose lease
	// has meanwhile gone to another owner is ignored, except that Delivered is always noted: the receiver has it. Nothing becomes of an event that never went to that outbox.
	FinishEvents(ctx context.Context, done []Delivery) error

	// Due lists, across applications unless q.App is set, what has come due by q.Before, the longest due first, at most q.Limit.
	Due(ctx context.Context, q DueQuery) ([]Due, error)

	// Waiting lists tasks with Waiting set, across applications unless app is given, oldest first (by CreatedAt, then insertion),
	// those after the cursor, at most n.
	Waiting(ctx context.Context, app AppID, after Cursor, n int) ([]AppTask, error)

	// Purge removes at most b.Limit rows that are older than b says: fixes by their time, events that are delivered or dead in every outbox and all notices
	// by RecordedAt, requests and invites that are long over. What is undelivered in an outbox stays. It never changes which of the remaining fixes are good.
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
// Invites, requests and fixes belong to a driver: without that row (after the inserts of this Changeset) they are a conflict on that driver.
type Changeset struct {
	Tasks   []Task
	Trips   []Trip
	Drivers []Driver // the Position inside is ignored; positions come from fixes only

	// DeleteDrivers removes the drivers at exactly these versions with their invites, requests, notices, position and fixes. Tasks, trips and events stay.
	DeleteDrivers []Driver

	Invites []Invite  // one a driver: Version 0 replaces whatever was there, and goes on from its version
	Keys    []Key     // API keys
	Push    []Request // trip requests, one a driver and tracking id: each replaces what was there

	// CloseRequests removes requests; one that is not there is ignored.
	CloseRequests []RequestID

	Fixes []FixBatch // recorded by the rule of RecordFixes, in the same step

	// Events are appended in this order. The store gives each its Seq: 1, 2, 3 … for its subject, without gaps, also after a purge;
	// and each of its Notices the next ID of its driver's feed. Notices for a driver without a row are dropped.
	Events []Event

	// Deliver names the outboxes that the events go to, each once, for LeaseEvents. With none they count as delivered.
	// An outbox needs no making: its name is any text, also "".
	Deliver []string
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
	Dead    bool    // only those whose delivery was given up, in the outbox of this name
	Outbox  string  // for Dead; "" is that of Options.Notifier
	Limit   int
}

// Lease asks for events to deliver.
type Lease struct {
	Outbox string
	Owner  string
	Now    time.Time
	Until  time.Time
	Except []AppID // pass over these applications
	Limit  int
}

// Leased is an event to deliver.
type Leased struct {
	Outbox  string
	App     AppID
	Event   Event
	Attempt int // 1 for the first
}

// DeliveryState is what became of a delivery.
type DeliveryState string

const (
	Delivered DeliveryState = "delivered"
	Retry     DeliveryState = "retry"    // try again at RetryAt; counts as an attempt
	Dead      DeliveryState = "dead"     // given up; the outbox's next event of the subject is free to go
	Released  DeliveryState = "released" // not tried; RetryAt is ignored and no attempt counted. A dead event given back like this is tried anew from attempt 1, whoever owns a lease
)

// Delivery says what became of one leased event.
type Delivery struct {
	Outbox  string
	App     AppID
	EventID string
	Owner   string
	State   DeliveryState
	RetryAt time.Time
}

// Notification is an event on its way to the embedder.
type Notification struct {
	App     AppID
	Event   Event
	Attempt int // 1 for the first
}

// A Notifier is told of every event, at least once, in order for each subject; Event.ID is the same each time. [Service.Run] calls it, outside of any
// commit, with a context that ends after Options.NotifyTimeout. It may be called at once for different subjects. An error means that the event is
// tried again after the next of Options.RetryWaits, and with the last of them that it is given up; a *[NotifyError] can say more.
type Notifier interface {
	Notify(ctx context.Context, n Notification) error
}

// NotifyError says how a failed delivery is to go on.
type NotifyError struct {
	Permanent  bool          // do not try again
	RetryAfter time.Duration // wait at least this long
	Err        error
}

func (e *NotifyError) Error() string {
	if e.Err == nil {
		return "the delivery failed"
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *NotifyError) Unwrap() error { return e.Err }

// A Geocoder turns addresses into points and back. [Service.Run] asks it, outside of any commit; its failure never fails an operation, and is tried again later.
// An answer that it does not have is ErrNotFound.
type Geocoder interface {
	Point(ctx context.Context, address string) (LngLat, error)
	Address(ctx context.Context, p LngLat) (string, error)
}

// A Router knows how long a way takes. It is asked when somebody looks at a tracking link, at most once in 30 seconds for each task or trip, with a time limit;
// when it fails there is an estimate.
type Router interface {
	// TravelTime is how long the way through these points takes, two or more, by now's traffic.
	TravelTime(ctx context.Context, points []LngLat) (time.Duration, error)
}

// Options set up a Service. The zero value of each field means its default.
type Options struct {
	MaxFixAge         time.Duration // how long after a sign of life a driver still counts as there; default 10 min
	MaxOpenTasks      int           // how many open tasks a driver may get automatically; default 1; negative: no limit
	MaxAssignDistance float64       // metres to a driver who gets a task automatically; default 0, no limit

	TripTTL   time.Duration // how long a trip lives without a fix; default 2 h
	LinkTTL   time.Duration // how long a tracking link outlives the end; default 24 h
	InviteTTL time.Duration // how long an invite's link lives; default 24 h
	CodeTTL   time.Duration // how long an invite's code lives; default 1 h

	KeepFixes   time.Duration // default 90 days; negative: for ever
	KeepEvents  time.Duration // finished events and notices; default 30 days; negative: for ever
	KeepOffDuty bool          // keep the fixes of drivers who are off duty and on no trip

	// Secret keys links, codes, ingest tokens and app tokens joined with a nonce; at least 32 bytes, the same for all Services on one store.
	// Without it the store makes and keeps one: then a copy of the store's file reveals the live links.
	Secret []byte

	Notifier Notifier // is told of every event; default none

	// Notifiers are each told of every event by themselves: one that fails, or is slow, holds up none of the others. The name stands in the store with what is yet
	// to be told, so keep it the same, and give the same names to all Services on one store; a new name is told of the events from then on.
	// A name that is left out keeps what it has not been told, for ever; with a Notifier that only returns nil it lets go of it.
	// Options.Notifier is the one named "". Default none.
	Notifiers map[string]Notifier

	NotifyTimeout time.Duration   // for one call; default 15 s
	RetryWaits    []time.Duration // before the first, second … try; the first is taken as 0, whatever it says; default 0 s, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h, each with up to 10 % added
	Geocoder      Geocoder        // default none
	Router        Router          // for expected times on tracking links; default none: an estimate

	Now    func() time.Time // the clock; default time.Now
	Rand   io.Reader        // for ids and secrets; it must not fail; default crypto/rand
	Logger *slog.Logger     // default slog.Default()
}

func defaultTo[T comparable](v *T, d T) {
	if *v == *new(T) {
		*v = d
	}
}

const day = 24 * time.Hour

func (o Options) withDefaults() (Options, error) {
	for name, v := range map[string]time.Duration{"MaxFixAge": o.MaxFixAge, "TripTTL": o.TripTTL, "LinkTTL": o.LinkTTL, "InviteTTL": o.InviteTTL, "CodeTTL": o.CodeTTL, "NotifyTimeout": o.NotifyTimeout} {
		if v < 0 {
			return o, fmt.Errorf("tracking: Options.%s is %v; it must be positive, or 0 for the default", name, v)
		}
		if v > 0 && v < time.Millisecond {
			return o, fmt.Errorf("tracking: Options.%s is %v; it must be at least 1 ms", name, v)
		}
	}
	if n := len(o.Secret); n > 0 && n < 32 {
		return o, fmt.Errorf("tracking: Options.Secret has %d bytes; it needs at least 32", n)
	}
	if !(o.MaxAssignDistance >= 0) || math.IsInf(o.MaxAssignDistance, 0) {
		return o, fmt.Errorf("tracking: Options.MaxAssignDistance is %v; it must be a number of metres, or 0 for no limit", o.MaxAssignDistance)
	}
	o.Notifiers = maps.Clone(o.Notifiers)
	for name, n := range o.Notifiers {
		switch {
		case n == nil:
			return o, fmt.Errorf("tracking: Options.Notifiers has nil under %q; leave the name out, or give it a Notifier", name)
		case name == "" && o.Notifier != nil:
			return o, errors.New(`tracking: Options.Notifier and Options.Notifiers[""] are one and the same; set only one of them`)
		case name != "" && !lookup(name):
			return o, fmt.Errorf("tracking: Options.Notifiers has the name %.40q; it must be valid UTF-8 without NUL, of at most 1024 bytes", name)
		}
	}
	defaultTo(&o.MaxFixAge, 10*time.Minute)
	defaultTo(&o.MaxOpenTasks, 1)
	defaultTo(&o.TripTTL, 2*time.Hour)
	defaultTo(&o.LinkTTL, day)
	defaultTo(&o.InviteTTL, day)
	defaultTo(&o.CodeTTL, time.Hour)
	defaultTo(&o.KeepFixes, 90*day)
	defaultTo(&o.KeepEvents, 30*day)
	defaultTo(&o.NotifyTimeout, 15*time.Second)
	if o.RetryWaits == nil {
		o.RetryWaits = []time.Duration{0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}
	}
	if len(o.RetryWaits) == 0 {
		return o, errors.New("tracking: Options.RetryWaits is empty; it needs at least one wait, before the first try")
	}
	o.Secret, o.RetryWaits = slices.Clone(o.Secret), slices.Clone(o.RetryWaits)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = crand.Reader
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}

// Service is the delivery-tracking service of one application over a [Store]. It is safe for concurrent use.
//
// Its methods return *[Error]; the doc of each names the codes that are its own. Besides them every method may return
// ErrUnavailable (the store cannot answer, or ctx ended: a change may or may not have happened, and asking again is safe) and ErrInternal.
type Service struct {
	*core
	app   AppID
	actor string
}

// core is what all scoped copies of a Service share.
type core struct {
	store  Store
	opts   Options
	owner  string // of event leases
	ids    idSource
	locks  stripes
	taken  reservations
	hub    hub
	guard  codeGuard
	etas   etas
	paths  drivens
	secret atomic.Pointer[[]byte]

	waiting chan struct{} // there may be a driver for a waiting task

	outboxes []*outbox // in order of their names
	deliver  []string  // their names
}

// outbox is what one Notifier is told by.
type outbox struct {
	name     string
	notifier Notifier
	wake     chan struct{} // there is an event to deliver
}

// outboxes makes one for each Notifier.
func (o *Options) outboxes() (list []*outbox) {
	all := map[string]Notifier{}
	maps.Copy(all, o.Notifiers)
	if o.Notifier != nil {
		all[""] = o.Notifier
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, &outbox{name, all[name], make(chan struct{}, 1)})
	}
	return list
}

// New makes a Service over store. Nil options work. It starts nothing: see [Service.Run].
func New(store Store, opts *Options) (*Service, error) {
	if store == nil {
		return nil, errors.New("tracking: New needs a Store, for instance memory.New()")
	}
	if opts == nil {
		opts = &Options{}
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &core{store: store, opts: o, waiting: make(chan struct{}, 1), outboxes: o.outboxes()}
	for _, b := range c.outboxes {
		c.deliver = append(c.deliver, b.name)
	}
	c.ids.rand = o.Rand
	c.locks.init()
	c.taken.count = map[appDriver]int{}
	c.hub.init()
	c.guard.sources = map[string]*codeSource{}
	c.etas.of = map[etaKey]standing{}
	c.paths.of = map[appDriver]map[TripID]driven{}
	c.owner = c.ids.token(12)
	if o.Secret != nil {
		c.secret.Store(&o.Secret)
	}
	return &Service{core: c, app: DefaultApp, actor: "system"}, nil
}

// ForApp returns a copy of s that works for another application; "" means [DefaultApp]. It shares everything else, as [log/slog.Logger.With] does.
func (s *Service) ForApp(app AppID) *Service {
	c := *s
	c.app = cmp.Or(app, DefaultApp)
	return &c
}

// As returns a copy of s whose events name this actor, for instance "user:42".
func (s *Service) As(actor string) *Service { c := *s; c.actor = actor; return &c }

// App is the application s works for.
func (s *Service) App() AppID { return s.app }

// Options returns the options in force, defaults filled in, without the secret.
func (s *Service) Options() Options {
	o := s.opts
	o.Secret, o.RetryWaits, o.Notifiers = nil, slices.Clone(o.RetryWaits), maps.Clone(o.Notifiers)
	return o
}

// Close ends every [Service.Follow], so that servers can shut down. The store stays open.
func (s *Service) Close(context.Context) error { s.hub.close(); return nil }

// now is the time of one step: UTC, whole milliseconds.
func (c *core) now() time.Time { return stamp(c.opts.Now()) }

func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// op runs one operation. attempt decides on what it reads and commits; it is run anew, with a new now, as long as somebody else was faster.
// Every operation passes here: the place for a hook that counts or traces.
func (s *Service) op(ctx context.Context, name string, attempt func(now time.Time) error) error {
	for n := 0; ; n++ {
		err := ctx.Err()
		if err == nil {
			err = attempt(s.now())
		}
		var moved *ConflictError
		if err == nil {
			return nil
		}
		if !errors.As(err, &moved) {
			return s.failure(ctx, name, err)
		}
		if n > 0 { // the first time the other one has just finished
			wait := time.Duration(rand.Int64N(int64(min(time.Millisecond<<min(n, 6), 50*time.Millisecond))))
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	}
}

// failure is what the caller gets to see of err.
func (s *Service) failure(ctx context.Context, name string, err error) error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: ErrUnavailable, Message: "The call was ended before it was answered.", Err: err}
	case errors.Is(err, ErrNotFound):
		return &Error{Code: ErrNotFound, Message: "There is no such thing.", Err: err}
	case errors.Is(err, ErrUnavailable):
		s.opts.Logger.ErrorContext(ctx, "store unavailable", "op", name, "err", err)
		return &Error{Code: ErrUnavailable, Message: "The store cannot answer now; try again.", RetryAfter: time.Second, Err: err}
	}
	s.opts.Logger.ErrorContext(ctx, "operation failed", "op", name, "err", err)
	return &Error{Code: ErrInternal, Message: "Something went wrong on our side.", Err: err}
}

func notFound(field, what string) error {
	return &Error{Code: ErrNotFound, Field: field, Message: "There is no such " + what + "."}
}

func conflict(message string) error { return &Error{Code: ErrConflict, Message: message} }

func invalid(field, message string) error {
	return &Error{Code: ErrInvalid, Field: field, Message: field + " " + message}
}

// orNotFound turns the store's ErrNotFound into one that names the field.
func orNotFound(err error, field, what string) error {
	if errors.Is(err, ErrNotFound) {
		return notFound(field, what)
	}
	return err
}

// commit applies cs and tells who follows.
func (s *Service) commit(ctx context.Context, cs *Changeset) error {
	cs.Deliver = s.deliver
	back, err := s.endSilence(ctx, cs)
	if err != nil {
		return err
	}
	if err := s.store.Commit(ctx, s.app, cs); err != nil {
		return err
	}
	if back {
		kick(s.waiting)
	}
	if len(cs.Events) > 0 {
		for _, b := range s.outboxes {
			kick(b.wake)
		}
	}
	for _, e := range cs.Events {
		s.hub.publish(s.app, e.Subject)
		for _, n := range e.Notices {
			s.hub.publish(s.app, Subject{KindDriver, string(n.DriverID)})
		}
	}
	for _, t := range cs.Tasks { // also what has no event, as when a link is revoked
		s.hub.publish(s.app, t.subject())
	}
	for _, t := range cs.Trips {
		s.hub.publish(s.app, t.subject())
		if t.TaskID != "" {
			s.hub.publish(s.app, Subject{KindTask, string(t.TaskID)})
		}
	}
	for _, b := range cs.Fixes {
		if len(b.Fixes) > 0 {
			s.forget(b.DriverID)
		}
		s.hub.publish(s.app, Subject{KindDriver, string(b.DriverID)})
	}
	return nil
}

// endSilence adds to cs that the drivers whose signs of life it holds are silent no longer, and reports whether one was.
func (s *Service) endSilence(ctx context.Context, cs *Changeset) (back bool, err error) {
	for _, b := range cs.Fixes {
		i := slices.IndexFunc(cs.Drivers, func(d Driver) bool { return d.ID == b.DriverID })
		if i < 0 {
			d, err := s.store.Driver(ctx, s.app, b.DriverID)
			switch {
			case errors.Is(err, ErrNotFound) || err == nil && !d.Silent:
				continue
			case err != nil:
				return false, err
			}
			i, cs.Drivers = len(cs.Drivers), append(cs.Drivers, d)
		}
		back = back || cs.Drivers[i].Silent
		cs.Drivers[i].Silent = false
	}
	return back, nil
}

func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// event makes one; what happened at at, by actor.
func (s *Service) event(typ EventType, subject Subject, at, now time.Time, actor string, data ...string) Event {
	e := Event{ID: s.ids.next(now), Type: typ, Time: at, RecordedAt: now, Actor: actor, Subject: subject}
	for i := 0; i < len(data); i += 2 {
		if data[i+1] != "" {
			if e.Data == nil {
				e.Data = map[string]string{}
			}
			e.Data[data[i]] = data[i+1]
		}
	}
	return e
}

// clampAt is when a step happened: at, but not before the step before it and not after now; now if not given.
func clampAt(at, before, now time.Time) time.Time {
	at = stamp(at)
	if at.IsZero() || at.After(now) {
		return now
	}
	if at.Before(before) {
		return before
	}
	return at
}

// idSource makes ids that sort by age: 48 bits of milliseconds and 80 random bits in base 32, lower case. Within a millisecond each is greater than the one before.
type idSource struct {
	mu   sync.Mutex
	rand io.Reader
	last [16]byte
}

const idDigits = "0123456789abcdefghjkmnpqrstvwxyz" // Crockford's base 32

func (s *idSource) next(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(max(now.UnixMilli(), 0))<<16)
	if string(b[:6]) <= string(s.last[:6]) {
		b = s.last
		for i := 15; i >= 0; i-- {
			if b[i]++; b[i] != 0 {
				break
			}
		}
	} else {
		s.read(b[6:])
		b[6] &= 0x7f // room to count up
	}
	s.last = b
	out := make([]byte, 0, 26)
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	for shift := 125; shift >= 0; shift -= 5 {
		var v uint64
		switch {
		case shift >= 64:
			v = hi >> (shift - 64)
		case shift > 59:
			v = hi<<(64-shift) | lo>>shift
		default:
			v = lo >> shift
		}
		out = append(out, idDigits[v&31])
	}
	return string(out)
}

func (s *idSource) read(b []byte) {
	if _, err := io.ReadFull(s.rand, b); err != nil {
		panic(fmt.Sprintf("tracking: Options.Rand failed: %v", err))
	}
}

// token is a random secret of n bytes, URL-safe.
func (s *idSource) token(n int) string {
	b := make([]byte, n)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// below is a random number in [0, n).
func (s *idSource) below(n uint32) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var b [4]byte
		s.read(b[:])
		if v := binary.BigEndian.Uint32(b[:]); v < math.MaxUint32/n*n { // else some would come more often
			return v % n
		}
	}
}

func hashOf(secret string) Hash { return sha256.Sum256([]byte(secret)) }

// mac derives 18 bytes, URL-safe, from the secret and the parts; no part can pass for two.
func (c *core) mac(ctx context.Context, parts ...string) (string, error) {
	sum, err := c.sum(ctx, parts...)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(sum[:18]), nil
}

func (c *core) sum(ctx context.Context, parts ...string) (Hash, error) {
	key := c.secret.Load()
	if key == nil {
		made, err := c.store.Secret(ctx)
		if err != nil {
			return Hash{}, err
		}
		key = &made
		c.secret.Store(key)
	}
	m := hmac.New(sha256.New, *key)
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		m.Write(n[:])
		io.WriteString(m, p)
	}
	return Hash(m.Sum(nil)), nil
}

// DeriveKey derives a key of 32 bytes for a purpose of the caller's from the secret: the same each time, of no use for anything else.
func (s *Service) DeriveKey(ctx context.Context, purpose string) (key [32]byte, err error) {
	err = s.op(ctx, "DeriveKey", func(time.Time) (err error) {
		key, err = s.sum(ctx, "derived", purpose)
		return err
	})
	return key, err
}

// stripes are locks by name, in the order of their index, so that whoever takes several never waits in a ring. They only spare lost races: the store's versions guarantee.
type stripes struct {
	seed maphash.Seed
	lock [256]chan struct{}
}

func (s *stripes) init() {
	s.seed = maphash.MakeSeed()
	for i := range s.lock {
		s.lock[i] = make(chan struct{}, 1)
	}
}

// take locks the names, or fails when ctx ends first.
func (s *stripes) take(ctx context.Context, names ...string) (release func(), err error) {
	held := make([]int, 0, len(names))
	for _, n := range names {
		held = append(held, int(maphash.String(s.seed, n)%uint64(len(s.lock))))
	}
	slices.Sort(held)
	held = slices.Compact(held)
	for n, i := range held {
		select {
		case s.lock[i] <- struct{}{}:
		case <-ctx.Done():
			for _, j := range held[:n] {
				<-s.lock[j]
			}
			return nil, ctx.Err()
		}
	}
	return func() {
		for _, i := range held {
			<-s.lock[i]
		}
	}, nil
}

type appDriver struct {
	app    AppID
	driver DriverID
}

// reservations count the assignments of each driver that are on their way to the store, so that others choose somebody else.
type reservations struct {
	mu    sync.Mutex
	count map[appDriver]int
}

// first reserves the first of the candidates who stays below limit.
func (r *reservations) first(app AppID, limit int, candidates []Driver) (d Driver, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range candidates {
		k := appDriver{app, d.ID}
		if limit < 0 || d.OpenTasks+r.count[k] < limit {
			r.count[k]++
			return d, true
		}
	}
	return Driver{}, false
}

func (r *reservations) release(app AppID, d DriverID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := appDriver{app, d}
	if r.count[k]--; r.count[k] <= 0 {
		delete(r.count, k)
	}
}

// hub wakes those who follow something. A wake-up carries nothing: who is woken reads the store again.
type hub struct {
	mu     sync.Mutex
	subs   map[hubKey]map[chan struct{}]bool
	closed chan struct{}
	once   sync.Once
}

type hubKey struct {
	app     AppID
	subject Subject
}

func (h *hub) init() {
	h.subs = map[hubKey]map[chan struct{}]bool{}
	h.closed = make(chan struct{})
}

func (h *hub) close() { h.once.Do(func() { close(h.closed) }) }

func (h *hub) publish(app AppID, s Subject) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.subs[hubKey{app, s}] {
		kick(c)
	}
}

func (h *hub) subscribe(c chan struct{}, app AppID, subjects ...Subject) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range subjects {
		k := hubKey{app, s}
		if h.subs[k] == nil {
			h.subs[k] = map[chan struct{}]bool{}
		}
		h.subs[k][c] = true
	}
}

func (h *hub) unsubscribe(c chan struct{}, app AppID, subjects ...Subject) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range subjects {
		k := hubKey{app, s}
		if delete(h.subs[k], c); len(h.subs[k]) == 0 {
			delete(h.subs, k)
		}
	}
}

// Wakeups returns a channel that gets a value, at some time after, when one of the subjects may have changed in this process; for a driver also after a move or
// a notice. It is a hint for who would else poll: read again, and poll slowly as a net under it. Call stop when done.
// Done is closed when the Service is closed.
func (s *Service) Wakeups(subjects ...Subject) (wake <-chan struct{}, done <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	s.hub.subscribe(c, s.app, subjects...)
	return c, s.hub.closed, func() { s.hub.unsubscribe(c, s.app, subjects...) }
}

// check collects the first thing that is wrong with an input.
type check struct{ err error }

func (c *check) fail(field, message string) {
	if c.err == nil {
		c.err = invalid(field, message)
	}
}

// text checks a free text: valid UTF-8, no U+0000, at most max characters.
func (c *check) text(field, v string, max int) {
	switch {
	case !utf8.ValidString(v):
		c.fail(field, "is not valid UTF-8.")
	case strings.ContainsRune(v, 0):
		c.fail(field, "must not hold the character U+0000.")
	case len(v) > max && utf8.RuneCountInString(v) > max:
		c.fail(field, fmt.Sprintf("is longer than %d characters.", max))
	}
}

func isControl(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// line checks a text that holds no control character.
func (c *check) line(field, v string, max int) {
	c.text(field, v, max)
	if strings.ContainsFunc(v, isControl) {
		c.fail(field, "must not hold control characters.")
	}
}

// name checks an id that makes something: 1 to 128 characters, no control character, no comma, no blank at either end.
func (c *check) name(field, v string) {
	c.line(field, v, 128)
	switch {
	case v == "":
		c.fail(field, "is required.")
	case strings.TrimSpace(v) != v:
		c.fail(field, "must not begin or end with a blank.")
	case strings.Contains(v, ","):
		c.fail(field, "must not hold a comma.")
	}
}

func (c *check) lnglat(field string, p *LngLat) {
	if p != nil && !p.Valid() {
		c.fail(field, "must be a longitude from -180 to 180 and a latitude from -90 to 90.")
	}
}

// point checks a position that becomes a fix.
func (c *check) point(field string, p *LngLat) {
	c.lnglat(field, p)
	if p != nil && *p == (LngLat{}) {
		c.fail(field, "must not be 0,0, which phones send when they do not know.")
	}
}

func (c *check) place(field string, p *Place) {
	if p == nil {
		return
	}
	c.lnglat(field+".lnglat", p.LngLat)
	c.text(field+".address", p.Address, 1000)
	if p.LngLat == nil && p.Address == "" {
		c.fail(field, "needs lnglat or an address.")
	}
	c.contact(field+".customer", p.Customer)
}

func (c *check) contact(field string, p *Contact) {
	if p != nil {
		c.text(field+".name", p.Name, 200)
		c.text(field+".mobile", p.Mobile, 32)
	}
}

// page checks a page and fills in its default.
func (c *check) page(p *Page, limit int) {
	if p.Number < 0 {
		c.fail("page", "must be 1 or more.")
	}
	if p.Limit < 0 || p.Limit > 1000 {
		c.fail("limit", "must be from 1 to 1000.")
	}
	defaultTo(&p.Number, 1)
	defaultTo(&p.Limit, limit)
}

// time checks an instant: zero, or in the years 1 to 9999 UTC, which RFC 3339 can write.
func (c *check) time(field string, t time.Time) {
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		c.fail(field, "must be in the years 1 to 9999.")
	}
}

// lookup reports whether an id that looks something up can name anything at all; what can't is not asked of the store.
func lookup(id string) bool {
	return id != "" && len(id) <= 1024 && utf8.ValidString(id) && strings.IndexByte(id, 0) < 0
}

// live reports whether the link is valid: until ttl after the end, or after it was made, whichever is later. An end that is zero has not come yet.
func (l Link) live(ended time.Time, ttl time.Duration, now time.Time) bool {
	if l.Hash.IsZero() {
		return false
	}
	return ended.IsZero() || now.Before(ended.Add(ttl)) || now.Before(l.MadeAt.Add(ttl))
}

func (l *Link) revoke() (changed bool) {
	changed = !l.Hash.IsZero()
	l.Hash = Hash{}
	return changed
}

func (s *Service) linkToken(ctx context.Context, subject Subject, generation int) (string, error) {
	return s.mac(ctx, "link", string(s.app), string(subject.Kind), subject.ID, fmt.Sprint(generation))
}

// newLink is the link that follows old.
func (s *Service) newLink(ctx context.Context, subject Subject, old Link, now time.Time) (Link, error) {
	token, err := s.linkToken(ctx, subject, old.Generation+1)
	return Link{Generation: old.Generation + 1, Hash: hashOf(token), MadeAt: now}, err
}

// link returns the token of l; when that is no longer valid it makes l anew, for the caller to commit.
func (s *Service) link(ctx context.Context, subject Subject, l *Link, ended, now time.Time) (token string, made bool, err error) {
	token, err = s.linkToken(ctx, subject, l.Generation)
	if err != nil || l.live(ended, s.opts.LinkTTL, now) && hashOf(token) == l.Hash {
		return token, false, err
	}
	if *l, err = s.newLink(ctx, subject, *l, now); err != nil {
		return "", false, err
	}
	token, err = s.linkToken(ctx, subject, l.Generation)
	return token, true, err
}

// Tracking is what the holder of a tracking link may see: one task or one trip, and of its driver only what lies between start and end.
type Tracking struct {
	App        AppID       // whose task or trip it is
	Kind       SubjectKind // KindTask or KindTrip
	Type       TaskType    // 0 for a trip
	Status     string      // a task's status in words, a trip's as digit
	Outcome    Outcome
	OrderID    string
	DriverName string         // the first name, while on the way
	Place      *TrackingPlace // the next one; nil when there is none
	Time       time.Time      // of the task
	StartedAt  time.Time
	PickedUpAt time.Time
	EndedAt    time.Time
	Position   *TrackingPosition
	Path       []LngLat // driven so far, thinned to at most 500 points
	ETA        *ETA     // when the driver is expected at Place; nil when that can't be said
	Ended      bool     // this is the final state
}

// TrackingPlace is a place without its contact.
type TrackingPlace struct {
	Address string
	LngLat  *LngLat
}

// TrackingPosition is where the driver was last.
type TrackingPosition struct {
	LngLat  LngLat
	Time    time.Time
	Bearing Reading
	Live    bool // not older than 5 minutes
}

const (
	liveFor   = 5 * time.Minute
	pathLimit = 500
)

var errNoLink = &Error{Code: ErrNotFound, Message: "This link is not valid, or no longer."}

// Tracking resolves a link's token, of whatever application, to what its holder may see now. Codes: ErrNotFound for unknown, expired and revoked ones alike.
func (s *Service) Tracking(ctx context.Context, token string) (Tracking, error) {
	var v Tracking
	err := s.op(ctx, "Tracking", func(now time.Time) (err error) {
		v, _, err = s.tracking(ctx, token, now)
		return err
	})
	return v, err
}

// watched is what a view was made of.
type watched struct {
	app      AppID
	subjects []Subject
}

func (s *Service) tracking(ctx context.Context, token string, now time.Time) (Tracking, watched, error) {
	hash := hashOf(token)
	app, task, err := s.store.TaskByLink(ctx, hash)
	if err == nil {
		if !task.Link.live(task.CompletedAt, s.opts.LinkTTL, now) {
			return Tracking{}, watched{}, errNoLink
		}
		return s.ForApp(app).taskTracking(ctx, task, now)
	}
	if !errors.Is(err, ErrNotFound) {
		return Tracking{}, watched{}, err
	}
	app, trip, err := s.store.TripByLink(ctx, hash)
	if errors.Is(err, ErrNotFound) {
		return Tracking{}, watched{}, errNoLink
	}
	if err != nil {
		return Tracking{}, watched{}, err
	}
	svc := s.ForApp(app)
	if trip, err = svc.currentTrip(ctx, trip.ID, now); err != nil {
		return Tracking{}, watched{}, err
	}
	if !trip.Link.live(trip.EndedAt, s.opts.LinkTTL, now) || trip.Link.Hash != hash {
		return Tracking{}, watched{}, errNoLink
	}
	v := Tracking{App: app, Kind: KindTrip, Status: fmt.Sprint(int(trip.Status)), StartedAt: trip.StartedAt, EndedAt: trip.EndedAt, Ended: trip.Status != Active, Place: viewPlace(trip.Dest)}
	w := watched{app, []Subject{trip.subject(), {KindDriver, string(trip.DriverID)}}}
	return v, w, svc.showDriver(ctx, &v, trip, now)
}

func (s *Service) taskTracking(ctx context.Context, t Task, now time.Time) (Tracking, watched, error) {
	v := Tracking{
		App: s.app, Kind: KindTask, Type: t.Type, Status: string(t.Status), Outcome: t.Outcome, OrderID: t.OrderID, Time: t.Time,
		StartedAt: t.StartedAt, PickedUpAt: t.PickedUpAt, EndedAt: t.CompletedAt, Ended: t.Status == StatusCompleted,
	}
	v.Place = viewPlace(t.nextPlace())
	w := watched{s.app, []Subject{t.subject()}}
	if t.Status != StatusInProgress {
		return v, w, nil
	}
	w.subjects = append(w.subjects, Subject{KindDriver, string(t.DriverID)})
	trip, err := s.store.ActiveTrip(ctx, s.app, t.trackingID())
	if errors.Is(err, ErrNotFound) {
		return v, w, nil
	}
	if err != nil {
		return v, w, err
	}
	if trip, err = s.currentTrip(ctx, trip.ID, now); err != nil || trip.DriverID != t.DriverID {
		return v, w, err
	}
	return v, w, s.showDriver(ctx, &v, trip, now)
}

func viewPlace(p *Place) *TrackingPlace {
	if p == nil {
		return nil
	}
	return &TrackingPlace{Address: p.Address, LngLat: clonePtr(p.LngLat)}
}

// showDriver adds what only an active trip shows.
func (s *Service) showDriver(ctx context.Context, v *Tracking, trip Trip, now time.Time) error {
	if trip.Status != Active {
		return nil
	}
	d, err := s.store.Driver(ctx, s.app, trip.DriverID)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if words := strings.Fields(d.Name); len(words) > 0 {
		v.DriverName = words[0]
	}
	if f := d.Position.Fix; d.Position.Located() && !f.Time.Before(trip.StartedAt) {
		v.Position = &TrackingPosition{LngLat: f.LngLat, Time: f.Time, Bearing: f.Bearing, Live: now.Sub(f.Time) <= liveFor}
	}
	driven, err := s.driven(ctx, trip, d.Position, now)
	if err != nil {
		return err
	}
	v.Path = slices.Clone(driven.line)
	if v.Position != nil && v.Place != nil && v.Place.LngLat != nil {
		stops, err := s.stopsBefore(ctx, trip)
		if err != nil {
			return err
		}
		points := append(append([]LngLat{v.Position.LngLat}, stops...), *v.Place.LngLat)
		eta := s.expect(ctx, etaKey{s.app, trip.ID, *v.Place.LngLat, len(stops)}, points, driven.recent, now)
		v.ETA = &eta
	}
	return nil
}

// drivens remember the paths of the trips that are looked at, so that each new fix costs itself and not the whole path.
type drivens struct {
	mu    sync.Mutex
	of    map[appDriver]map[TripID]driven
	swept time.Time
}

// driven is an active trip's path so far.
type driven struct {
	read    time.Time // when it was read from its beginning
	through time.Time // of its newest fix
	line    []LngLat  // at most pathLimit points; never changed
	recent  []Fix     // of the last minutes
}

// reread is how long a remembered path stands: what other processes have put into its past shows after that.
const reread = time.Minute

func (s *Service) driven(ctx context.Context, trip Trip, pos Position, now time.Time) (driven, error) {
	key := appDriver{s.app, trip.DriverID}
	s.paths.mu.Lock()
	trips := s.paths.of[key]
	if trips == nil {
		trips = map[TripID]driven{}
		s.paths.of[key] = trips
	}
	d, ok := trips[trip.ID]
	s.paths.mu.Unlock()
	if !ok || now.Sub(d.read) >= reread || pos.Fix.Time.Before(d.through) { // the last: what was the newest has turned out to be a jump
		d = driven{read: now, through: trip.StartedAt.Add(-time.Millisecond)}
	}
	from := d.through.Add(time.Millisecond)
	line := slices.Clip(d.line)
	recent := slices.DeleteFunc(slices.Clone(d.recent), func(f Fix) bool { return now.Sub(f.Time) > recentFor })
	for f, err := range s.store.Fixes(ctx, s.app, trip.DriverID, FixRange{From: from}) {
		if err != nil {
			return driven{}, err
		}
		if n := len(line); n == 0 || line[n-1] != f.LngLat {
			line = append(line, f.LngLat)
		}
		if now.Sub(f.Time) <= recentFor {
			recent = append(recent, f)
		}
		d.through = f.Time
	}
	if len(line) > pathLimit { // well below, or each further point would have it thinned again
		line = thin(line, pathLimit*3/4)
	}
	d.line, d.recent = line, recent
	s.paths.mu.Lock()
	defer s.paths.mu.Unlock()
	trips[trip.ID] = d // lost, as it must be, if the driver has been forgotten meanwhile
	if now.Sub(s.paths.swept) >= reread {
		s.paths.swept = now
		maps.DeleteFunc(s.paths.of, func(_ appDriver, trips map[TripID]driven) bool {
			maps.DeleteFunc(trips, func(_ TripID, d driven) bool { return now.Sub(d.read) >= reread })
			return len(trips) == 0
		})
	}
	return d, nil
}

// forget drops the remembered paths of a driver, whose past has changed.
func (s *Service) forget(driver DriverID) {
	s.paths.mu.Lock()
	defer s.paths.mu.Unlock()
	delete(s.paths.of, appDriver{s.app, driver})
}

// stopsBefore are the next stops of the driver's other tasks that were started before this trip.
func (s *Service) stopsBefore(ctx context.Context, trip Trip) (stops []LngLat, err error) {
	tasks, _, err := s.store.Tasks(ctx, s.app, TaskFilter{Page: Page{1, 50}, DriverID: trip.DriverID, Status: []TaskStatus{StatusInProgress}})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(tasks, func(a, b Task) int { return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID)) })
	for _, t := range tasks {
		if t.ID == trip.TaskID || !t.StartedAt.Before(trip.StartedAt) {
			continue
		}
		if p := t.nextPlace(); p != nil && p.LngLat != nil {
			stops = append(stops, *p.LngLat)
		}
	}
	return stops, nil
}

// ETA is when a driver is expected.
type ETA struct {
	Time       time.Time // never before ComputedAt
	ComputedAt time.Time
	Source     string // "router" or "estimate"
}

const (
	routerFor = 5 * time.Second  // how long the Router may take
	etaFor    = 30 * time.Second // how long an expected time stands
	recentFor = 10 * time.Minute // how far back the driver's own speed is looked at
	stopTime  = 120 * time.Second
	detour    = 1.3       // of a way through streets over the straight line
	citySpeed = 25 / 3.6  // m/s
	slowest   = 8 / 3.6   // m/s
	fastest   = 100 / 3.6 // m/s
)

// estimate is how long the way through points takes: 120 s and 1.3 times the straight line for each leg, at 25 km/h, which the driver's own speed of the last
// minutes makes faster or slower: by half once it has been seen for 10 minutes. On 682 taxi trips in New York (January 2013) its median error is 27 %.
func estimate(points []LngLat, recent []Fix) time.Duration {
	speed := citySpeed
	if n := len(recent); n > 1 {
		metres := 0.0
		for i := 1; i < n; i++ {
			metres += Distance(recent[i-1].LngLat, recent[i].LngLat)
		}
		if seen := recent[n-1].Time.Sub(recent[0].Time); seen >= time.Minute {
			weight := 0.5 * min(seen.Seconds()/recentFor.Seconds(), 1)
			speed = min(max((1-weight)*citySpeed+weight*metres/seen.Seconds(), slowest), fastest)
		}
	}
	total := time.Duration(0)
	for i := 1; i < len(points); i++ {
		total += stopTime + time.Duration(detour*Distance(points[i-1], points[i])/speed*float64(time.Second))
	}
	return total
}

// etas are the expected times that stand. One stands for etaFor, and longer while a new one would hardly differ, so that it does not jump at every red light.
type etas struct {
	mu    sync.Mutex
	of    map[etaKey]standing
	swept time.Time
}

// etaKey is what an expected time is good for: another driver, another next place, or another stop before it makes a new one.
type etaKey struct {
	app   AppID
	trip  TripID
	place LngLat
	stops int
}

type standing struct {
	ETA
	checked time.Time
}

func (s *Service) expect(ctx context.Context, of etaKey, points []LngLat, recent []Fix, now time.Time) ETA {
	s.etas.mu.Lock()
	last, stands := s.etas.of[of]
	s.etas.mu.Unlock()
	if stands && now.Sub(last.checked) < etaFor && last.Time.After(now) {
		return last.ETA
	}
	eta := ETA{ComputedAt: now, Source: "estimate"}
	way := time.Duration(-1)
	if s.opts.Router != nil {
		var d time.Duration
		err := guarded(ctx, routerFor, func(ctx context.Context) (err error) {
			d, err = s.opts.Router.TravelTime(ctx, points)
			return err
		})
		if err != nil || d < 0 {
			s.opts.Logger.WarnContext(ctx, "router failed; the expected time is an estimate", "err", err)
		} else {
			way, eta.Source = d, "router"
		}
	}
	if way < 0 {
		way = estimate(points, recent)
	}
	eta.Time = now.Add(max(way, time.Minute)).Truncate(time.Second)
	if stands && last.Source == eta.Source && last.Time.After(now.Add(time.Minute)) && last.Time.Sub(eta.Time).Abs() < max(time.Minute, way/10) {
		eta = last.ETA
	}
	s.etas.mu.Lock()
	defer s.etas.mu.Unlock()
	s.etas.of[of] = standing{eta, now}
	if now.Sub(s.etas.swept) > time.Hour {
		s.etas.swept = now
		maps.DeleteFunc(s.etas.of, func(_ etaKey, e standing) bool { return now.Sub(e.checked) > time.Hour })
	}
	return eta
}

// thin leaves at most n points of a line, first and last among them: those without which the line would be off by the most
// (Ramer 1972, Douglas and Peucker 1973; the tolerance doubles from 2 m until n suffice).
func thin(line []LngLat, n int) []LngLat {
	for tolerance := 2.0; len(line) > n; tolerance *= 2 {
		keep := make([]bool, len(line))
		keep[0], keep[len(line)-1] = true, true
		type span struct{ from, to int }
		for stack := []span{{0, len(line) - 1}}; len(stack) > 0; {
			sp := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			worst, at := tolerance, -1
			for i := sp.from + 1; i < sp.to; i++ {
				if d := offLine(line[i], line[sp.from], line[sp.to]); d > worst {
					worst, at = d, i
				}
			}
			if at >= 0 {
				keep[at] = true
				stack = append(stack, span{sp.from, at}, span{at, sp.to})
			}
		}
		left := make([]LngLat, 0, n)
		for i, k := range keep {
			if k {
				left = append(left, line[i])
			}
		}
		line = left
	}
	return line
}

// offLine is the distance in metres of p from the line between a and b, on the plane that touches the Earth at p; good enough to thin a drawn line.
func offLine(p, a, b LngLat) float64 {
	const m = EarthRadius * math.Pi / 180
	cos := math.Cos(p.Lat * math.Pi / 180)
	xy := func(q LngLat) (x, y float64) {
		return math.Remainder(q.Lng-p.Lng, 360) * m * cos, (q.Lat - p.Lat) * m
	}
	ax, ay := xy(a)
	bx, by := xy(b)
	dx, dy := bx-ax, by-ay
	t := 0.0
	if l := dx*dx + dy*dy; l > 0 {
		t = min(max(-(ax*dx+ay*dy)/l, 0), 1)
	}
	return math.Hypot(ax+t*dx, ay+t*dy)
}

// followPoll is how often a follower reads without being woken: the net under wake-ups, for other processes and for what changes by time alone.
const followPoll = 10 * time.Second

// Follow yields what the holder of a link may see, now and whenever it changes; who is slow skips to the newest. It ends after the final state,
// after an error (ErrNotFound when the link has died), when ctx ends, and when the Service is closed.
func (s *Service) Follow(ctx context.Context, token string) iter.Seq2[Tracking, error] {
	return func(yield func(Tracking, error) bool) {
		wake := make(chan struct{}, 1)
		var last *Tracking
		var on watched
		defer func() { s.hub.unsubscribe(wake, on.app, on.subjects...) }()
		for {
			var v Tracking
			var w watched
			err := s.op(ctx, "Follow", func(now time.Time) (err error) {
				v, w, err = s.tracking(ctx, token, now)
				return err
			})
			if err != nil {
				if ctx.Err() == nil {
					yield(Tracking{}, err)
				}
				return
			}
			if w.app != on.app || !slices.Equal(w.subjects, on.subjects) { // listen first, then read, or a change falls between
				s.hub.unsubscribe(wake, on.app, on.subjects...)
				s.hub.subscribe(wake, w.app, w.subjects...)
				on = w
				continue
			}
			if last == nil || !reflect.DeepEqual(*last, v) {
				if !yield(v, nil) {
					return
				}
				last = &v
			}
			if v.Ended {
				return
			}
			poll := time.NewTimer(followPoll)
			select {
			case <-wake:
			case <-poll.C:
			case <-ctx.Done():
				poll.Stop()
				return
			case <-s.hub.closed:
				poll.Stop()
				return
			}
			poll.Stop()
		}
	}
}

// Events lists an application's events in order of commit, and tells whether there are further ones. Limit is at most 1000; 0 means 100.
// Codes: ErrInvalid; ErrNotFound when f.After is no event that is still kept.
func (s *Service) Events(ctx context.Context, f EventFilter) (list []Event, more bool, err error) {
	if f.Limit < 0 || f.Limit > 1000 {
		return nil, false, invalid("limit", "must be from 1 to 1000.")
	}
	defaultTo(&f.Limit, 100)
	if f.After != "" && !lookup(f.After) {
		return nil, false, notFound("after", "event")
	}
	if f.Subject != (Subject{}) && !lookup(f.Subject.ID) {
		return nil, false, nil
	}
	err = s.op(ctx, "Events", func(time.Time) (err error) {
		list, more, err = s.store.Events(ctx, s.app, f)
		return orNotFound(err, "after", "event")
	})
	return list, more, err
}

// Replay gives events whose delivery from this outbox was given up back to be delivered anew from there; "" is that of Options.Notifier, and any other that of
// the same name in Options.Notifiers. An event that is not dead there is left as it is.
func (s *Service) Replay(ctx context.Context, outbox string, ids ...string) error {
	back := make([]Delivery, 0, len(ids))
	for _, id := range ids {
		back = append(back, Delivery{Outbox: outbox, App: s.app, EventID: id, State: Released})
	}
	err := s.op(ctx, "Replay", func(time.Time) error { return s.store.FinishEvents(ctx, back) })
	if err != nil {
		return err
	}
	for _, b := range s.outboxes {
		if b.name == outbox {
			kick(b.wake)
		}
	}
	return nil
}

// leaseFor is how long a worker may keep a subject's events to itself; longer where one call may take longer.
const leaseFor = 2 * time.Minute

// DeliverEvents hands the events that are due to each Notifier, and reports how many that were, an event for each Notifier that it was due to. It returns when all
// have answered. [Service.Run] does this for each Notifier by itself, and without waiting for slow receivers.
func (s *Service) DeliverEvents(ctx context.Context) (n int, err error) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, b := range s.outboxes {
		d := newDispatch(leaseAtMost)
		took, failed := s.deliverFrom(ctx, b, d)
		n, err = n+took, cmp.Or(err, failed)
		all.Go(d.wait.Wait)
	}
	return n, err
}

const (
	leaseAtMost = 100 // events in one lease
	appAtMost   = 32  // subjects of one application under way at once to one Notifier under Run
)

// dispatch counts the subjects whose events are on their way to one Notifier, so that one application with a slow receiver does not hold up the others.
type dispatch struct {
	mu      sync.Mutex
	running map[AppID]int
	each    int // of one application at most
	wait    sync.WaitGroup
}

func newDispatch(each int) *dispatch { return &dispatch{running: map[AppID]int{}, each: each} }

func (d *dispatch) full() (list []AppID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for app, n := range d.running {
		if n >= d.each {
			list = append(list, app)
		}
	}
	return list
}

// take reserves a place, if there is one.
func (d *dispatch) take(app AppID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running[app] >= d.each {
		return false
	}
	d.running[app]++
	return true
}

func (d *dispatch) done(app AppID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running[app]--; d.running[app] == 0 {
		delete(d.running, app)
	}
}

// deliverFrom leases events of one outbox and has each subject's delivered, in order, by a goroutine of its own; it does not wait for them.
func (s *Service) deliverFrom(ctx context.Context, b *outbox, d *dispatch) (int, error) {
	now := s.now()
	until := now.Add(max(leaseFor, 2*s.opts.NotifyTimeout))
	leased, err := s.store.LeaseEvents(ctx, Lease{Outbox: b.name, Owner: s.owner, Now: now, Until: until, Except: d.full(), Limit: leaseAtMost})
	if err != nil {
		return 0, s.failure(ctx, "DeliverEvents", err)
	}
	queues := map[hubKey][]Leased{}
	var order []hubKey
	for _, l := range leased {
		k := hubKey{l.App, l.Event.Subject}
		if queues[k] == nil {
			order = append(order, k)
		}
		queues[k] = append(queues[k], l)
	}
	for _, k := range order {
		free := d.take(k.app)
		d.wait.Go(func() {
			defer kick(b.wake) // after a release, too: whoever looked meanwhile found it leased
			if free {
				defer d.done(k.app)
			}
			done := s.deliverQueue(ctx, b, queues[k], until, free)
			// What was sent is to be noted even when ctx has ended meanwhile.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.NotifyTimeout)
			defer cancel()
			if err := s.store.FinishEvents(ctx, done); err != nil {
				s.opts.Logger.ErrorContext(ctx, "noting deliveries failed; they will be sent again", "notifier", b.name, "err", err)
			}
		})
	}
	return len(leased), nil
}

// deliverQueue delivers one subject's events up to the first that fails; when there is no place for it, it gives them back.
func (s *Service) deliverQueue(ctx context.Context, b *outbox, queue []Leased, until time.Time, free bool) []Delivery {
	var done []Delivery
	stopped := !free
	for _, l := range queue {
		d := Delivery{Outbox: b.name, App: l.App, EventID: l.Event.ID, Owner: s.owner, State: Released}
		if !stopped && ctx.Err() == nil && s.now().Add(s.opts.NotifyTimeout).Before(until) {
			err := s.notify(ctx, b.notifier, l)
			switch {
			case err == nil:
				d.State = Delivered
			case ctx.Err() == nil:
				d.State, d.RetryAt = s.retryOf(l.Attempt, err)
				level := slog.LevelWarn
				if d.State == Dead {
					level = slog.LevelError
				}
				s.opts.Logger.Log(ctx, level, "delivery failed", "notifier", b.name, "event", l.Event.ID, "type", l.Event.Type, "attempt", l.Attempt, "state", d.State, "err", err)
			}
		}
		stopped = stopped || d.State == Retry || d.State == Released
		done = append(done, d)
	}
	return done
}

// notify calls a Notifier.
func (s *Service) notify(ctx context.Context, to Notifier, l Leased) error {
	return guarded(ctx, s.opts.NotifyTimeout, func(ctx context.Context) error {
		return to.Notify(ctx, Notification{App: l.App, Event: l.Event.Clone(), Attempt: l.Attempt})
	})
}

// guarded calls code of the embedder's, with a time limit; a panic of it is an error like any other.
func guarded(ctx context.Context, limit time.Duration, call func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a panic: %v\n%s", p, debug.Stack())
		}
	}()
	return call(ctx)
}

// retryOf says how a delivery goes on after its n-th try failed.
func (s *Service) retryOf(n int, err error) (DeliveryState, time.Time) {
	var e *NotifyError
	said := errors.As(err, &e)
	if said && e.Permanent || n >= len(s.opts.RetryWaits) {
		return Dead, time.Time{}
	}
	wait := s.opts.RetryWaits[n]
	if wait > 10 {
		wait += time.Duration(rand.Int64N(int64(wait / 10)))
	}
	if said {
		wait = max(wait, e.RetryAfter)
	}
	return Retry, s.now().Add(wait)
}

// Purge removes a small step of what is older than Options.KeepFixes and KeepEvents, and reports how many rows. [Service.Run] calls it.
func (s *Service) Purge(ctx context.Context) (Purged, error) {
	now := s.now()
	b := Before{Limit: 1000}
	if s.opts.KeepFixes > 0 {
		b.Fixes = now.Add(-s.opts.KeepFixes)
	}
	if s.opts.KeepEvents > 0 {
		b.Events = now.Add(-s.opts.KeepEvents)
	}
	p, err := s.store.Purge(ctx, b)
	if err != nil {
		return p, s.failure(ctx, "Purge", err)
	}
	return p, nil
}

// Run does what nobody asks for: it delivers events, serves waiting tasks, ends trips whose time is up, notices drivers who have fallen silent, geocodes, and purges.
// It loops over the exported single steps, and returns, with ctx's error, only when ctx ends: a store that is away is logged and tried again.
// Run it once in each process; several processes on one store share the work.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	loop := func(name string, every time.Duration, wake <-chan struct{}, step func(context.Context) (int, error)) {
		wg.Go(func() { s.loop(ctx, name, every, wake, step) })
	}
	for _, b := range s.outboxes {
		d := newDispatch(appAtMost)
		defer d.wait.Wait()
		loop("DeliverEvents", time.Second, b.wake, func(ctx context.Context) (int, error) { return s.deliverFrom(ctx, b, d) })
	}
	loop("AssignWaiting", 500*time.Millisecond, s.waiting, s.AssignWaiting)
	loop("EndDueTrips", time.Second, nil, s.EndDueTrips)
	loop("MarkSilent", time.Second, nil, s.MarkSilent)
	loop("Geocode", time.Second, nil, s.Geocode)
	loop("Purge", time.Minute, nil, func(ctx context.Context) (int, error) { p, err := s.Purge(ctx); return p.Total(), err })
	wg.Wait()
	return ctx.Err()
}

// each does something about each row that is due, on behalf of the system, and counts for how many do says that it was done. One that fails holds up no other;
// one that has gone meanwhile is none.
func (s *Service) each(ctx context.Context, due []Due, do func(svc *Service, subject Subject) (bool, error)) (n int, err error) {
	var errs []error
	for _, d := range due {
		done, err := do(s.ForApp(d.App).As("system"), d.Subject)
		switch {
		case ctx.Err() != nil:
			return n, s.failure(ctx, "Run", ctx.Err())
		case errors.Is(err, ErrNotFound):
		case err != nil:
			errs = append(errs, err)
		case done:
			n++
		}
	}
	return n, errors.Join(errs...)
}

// loop runs a step again at once while it finds something to do, else when woken, and at least each time that every has passed.
func (s *Service) loop(ctx context.Context, name string, every time.Duration, wake <-chan struct{}, step func(context.Context) (int, error)) {
	wait := time.Duration(0)
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
		n, err := step(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			s.opts.Logger.ErrorContext(ctx, "step failed; it will be tried again", "step", name, "err", err)
			wait = min(max(2*wait, every), 30*time.Second)
		case n > 0:
			wait = 0
		default:
			wait = every
		}
	}
}
