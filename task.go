package tracking

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// TaskID identifies a task.
type TaskID string

// TaskType says what a task consists of.
type TaskType int

const (
	TypePickup        TaskType = 1
	TypeDrop          TaskType = 2
	TypePickupAndDrop TaskType = 3
)

// TaskStatus is the state of a task.
type TaskStatus string

const (
	StatusCreated    TaskStatus = "created"
	StatusAssigned   TaskStatus = "assigned"
	StatusInProgress TaskStatus = "in_progress"
	StatusCompleted  TaskStatus = "completed"
)

// Outcome is how a completed task ended; "" before.
type Outcome string

const (
	OutcomeSucceeded Outcome = "succeeded"
	OutcomeFailed    Outcome = "failed"
	OutcomeCancelled Outcome = "cancelled"
)

// TaskStep is a step of a task's driver that can be taken back.
type TaskStep string

const (
	StepStart    TaskStep = "start"
	StepPickup   TaskStep = "pickup"
	StepComplete TaskStep = "complete"
)

// Leg is one of the ways that a task consists of.
type Leg string

const (
	LegPickup Leg = "pickup" // to the pickup
	LegDrop   Leg = "drop"   // to the drop
)

// Contact is a person to meet at a place.
type Contact struct {
	Name   string
	Mobile string
}

// Place is where a task happens. It has a point, an address, or both.
type Place struct {
	LngLat   *LngLat
	Address  string
	Customer *Contact
}

func (p *Place) clone() *Place {
	if p == nil {
		return nil
	}
	all := struct { // in one piece of memory
		place Place
		at    LngLat
		whom  Contact
	}{place: *p}
	if p.LngLat != nil {
		all.at, all.place.LngLat = *p.LngLat, &all.at
	}
	if p.Customer != nil {
		all.whom, all.place.Customer = *p.Customer, &all.whom
	}
	return &all.place
}

func samePlace(a, b Place) bool {
	return same(a.LngLat, b.LngLat) && a.Address == b.Address && same(a.Customer, b.Customer)
}

func pointOf(p *Place) *LngLat {
	if p == nil {
		return nil
	}
	return p.LngLat
}

// Window is when a task is to be done, as told to the customer: between two times, or after or
// before one. A zero time is no limit.
type Window struct {
	From, To time.Time
}

// At is when the window begins, or else ends; zero: there is none.
func (w Window) At() time.Time {
	if w.From.IsZero() {
		return w.To
	}
	return w.From
}

// ReasonCode says why a task failed, was declined or was cancelled, in a word that programs and
// pages know: one of these, or of Options.Reasons.
type ReasonCode string

const (
	ReasonNotHome      ReasonCode = "not_home"
	ReasonRefused      ReasonCode = "refused"
	ReasonWrongAddress ReasonCode = "wrong_address"
	ReasonDamaged      ReasonCode = "damaged"
	ReasonClosed       ReasonCode = "closed"
	ReasonTooLate      ReasonCode = "too_late"
	ReasonOther        ReasonCode = "other"
)

// valid reports whether the word has a form that the embedder's own may have.
func (r ReasonCode) valid() bool {
	return r != "" && len(r) <= 32 && strings.Trim(string(r), "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// usualReasons are the words that may be given anywhere.
var usualReasons = []ReasonCode{
	ReasonNotHome, ReasonRefused, ReasonWrongAddress, ReasonDamaged, ReasonClosed, ReasonTooLate, ReasonOther,
}

// Usual reports whether every Service knows the word.
func (r ReasonCode) Usual() bool { return slices.Contains(usualReasons, r) }

// Reason is why a task failed, was declined, or was cancelled. The zero Reason says nothing.
type Reason struct {
	Code ReasonCode // a word of [Service.Reasons], which customers see; "" for none
	Text string     // in whose words it is, up to 200 characters; no customer ever sees it
}

// reason checks a Reason against the words that may be given.
func (c *check) reason(r Reason, words []ReasonCode) {
	c.text("reason", r.Text, 200)
	if r.Code != "" && !slices.Contains(words, r.Code) {
		list := make([]string, len(words))
		for i, w := range words {
			list[i] = string(w)
		}
		c.fail("reason_code", "must be one of "+strings.Join(list, ", ")+".")
	}
}

// ProofKind is a kind of evidence that a task was done.
type ProofKind string

const (
	ProofPhoto     ProofKind = "photo"
	ProofSignature ProofKind = "signature"
	ProofName      ProofKind = "name" // of who received it
	ProofPIN       ProofKind = "pin"  // that the customer sees on the link
)

// proofKinds are all kinds, in the order in which a task has them.
var proofKinds = []ProofKind{ProofPhoto, ProofSignature, ProofName, ProofPIN}

// Proof is a file that was given as evidence. Its bytes are kept apart from the task, in [Files].
type Proof struct {
	ID   string
	Kind ProofKind // photo or signature
	At   time.Time // when it was given, by our clock
	Type string    // the media type of its bytes
	Size int       // how many bytes
	Sum  Hash      // of its bytes, by which they are known when they come again
}

const (
	MaxProofs    = 10      // files of one task
	MaxProofSize = 2 << 20 // bytes of a file
)

// StuckStep is a step that the phone of a driver could not deliver.
type StuckStep struct {
	DriverID DriverID
	Step     string    // start, arrive, pickup, complete, fail, decline, undo, proof
	At       time.Time // when it was done, by the phone
	Why      string    // a word of the driver app's: gone, changed, pin, …; "": it did not say
}

// same reports whether it is said again, as a phone does that has had no answer. A zero At, of a
// phone that did not say when or whose clock is ahead, is any.
func (s StuckStep) same(o StuckStep) bool {
	return s.DriverID == o.DriverID && s.Step == o.Step && s.Why == o.Why &&
		(s.At.IsZero() || s.At.UnixMilli() == o.At.UnixMilli())
}

var stuckSteps = []string{"start", "arrive", "pickup", "complete", "fail", "decline", "undo", "proof"}

// Whereabouts is where the driver was when a task was completed.
type Whereabouts struct {
	LngLat LngLat
	Source string  // "driver": the step said it; "last_fix": the newest good fix by then
	OffBy  float64 // metres from the task's place; 0 where that has no point
}

// Task is a piece of work for a driver: a pickup, a drop, or both, from its creation to its
// outcome.
type Task struct {
	ID TaskID

	// Type says which of the two places there are. It never changes.
	Type TaskType

	// Status is where the task stands; see the package doc for the ways from one to the next.
	Status TaskStatus

	// Outcome is how it ended; "" while it has not.
	Outcome Outcome

	// Reason is why it failed, was cancelled, or was declined last, in the words of whoever did
	// that. No customer sees it.
	Reason string

	// ReasonCode is the same in a word.
	ReasonCode ReasonCode

	// Time is when it is to be done; nothing acts on it.
	Time time.Time

	// Window is when it is to be done, as agreed with the customer.
	Window Window

	// Promise is the time told to the customer where the Window has no end; see [Task.Promised].
	Promise time.Time

	// LateFor is the promise of which was told that it is not kept; zero: of none. See [Task.Late].
	LateFor time.Time

	// AssignAt is when to begin looking for a driver automatically; till then the task is not
	// Waiting. Zero: at once, if it is Waiting, or not at all.
	AssignAt time.Time

	// DueAt is when something is to be done about it: to look for a driver, or to say that it is
	// late; zero: never. It follows from the rest of the row.
	DueAt time.Time

	// Requires are the properties that a driver must have to get it automatically.
	Requires map[string]string

	// Properties are free-form, by key.
	Properties map[string]string

	// Notes are for the driver.
	Notes string

	// CustomerNote is what the holder of its link wrote to the driver.
	CustomerNote string

	// OrderID is the application's own reference.
	OrderID string

	// Pickup is where goods are fetched; nil for a drop.
	Pickup *Place

	// Drop is where goods are brought; nil for a pickup.
	Drop *Place

	// DriverID is who has it; "" while nobody does. It stays when the task is completed.
	DriverID DriverID

	// Person tells that driver from others who have the id before or after; see [Driver].
	Person string

	// AutoAssigned says that nobody chose the present driver by hand.
	AutoAssigned bool

	// Waiting says that a driver is to be found automatically.
	Waiting bool

	// WaitsSince is since when it is Waiting, or waits for AssignAt; zero: it does not wait, or
	// since it was created.
	WaitsSince time.Time

	// Excluded are not to be offered the task automatically: they declined it, or it was taken from
	// them. Sorted, without repeats.
	Excluded []DriverID

	// Proof are the kinds of evidence that its driver must give to complete it as succeeded: each
	// once, in the order photo, signature, name, pin.
	Proof []ProofKind

	// Proofs are the files that were given, in order.
	Proofs []Proof

	// ReceivedBy is who took it, as its driver noted.
	ReceivedBy string

	// DriverNote is what its driver noted at the end, which no customer sees.
	DriverNote string

	// PIN is what the customer tells its driver, 4 digits; "" when no PIN is asked for.
	PIN Secret

	// WrongPINs counts the wrong ones that its driver has tried; at 10 of them no PIN is taken any
	// more. That the application completes it, and another PIN, begin anew.
	WrongPINs int

	// CompletedFrom is where its driver was at the end; nil: not known.
	CompletedFrom *Whereabouts

	// Stuck are steps of drivers' that their phones could not deliver, the oldest first: of each
	// driver and step the last one.
	Stuck []StuckStep

	// Settled are those that somebody has seen to, or the end, the oldest first: said again, they
	// are Stuck no more.
	Settled []StuckStep

	// RetryOf is the task that this one tries again, and RetriedBy the one that tries this one
	// again.
	RetryOf, RetriedBy TaskID

	// Key is the idempotency key of its creation; "" for none.
	Key string

	// KeySum is the hash of the content it was created with, if it has a Key.
	KeySum Hash

	// GeocodeAt is when to ask the Geocoder for its points; zero: not.
	GeocodeAt time.Time

	// Link is its tracking link.
	Link Link

	// CreatedAt and those below are when each step happened: by the driver's phone, where it was
	// the driver's step; zero while it has not.
	CreatedAt       time.Time
	AssignedAt      time.Time
	StartedAt       time.Time
	PickupArrivedAt time.Time // at the pickup
	PickedUpAt      time.Time
	ArrivedAt       time.Time // at the drop
	CompletedAt     time.Time

	// PickupArrivingAt and ArrivingAt are when its driver came near.
	PickupArrivingAt time.Time
	ArrivingAt       time.Time

	// StepAt is when, by our clock, its driver took the last step, if that can be taken back.
	StepAt time.Time

	// ErasedAt is when what it said of persons was erased last; zero: it was not.
	ErasedAt time.Time

	// UpdatedAt is when it last changed, by our clock.
	UpdatedAt time.Time

	// Seq is the order of insertion. The store gives it.
	Seq int64

	// Version is raised by each change. The store gives it.
	Version int64
}

// Clone returns a deep copy.
func (t Task) Clone() Task {
	t.Pickup, t.Drop = t.Pickup.clone(), t.Drop.clone()
	t.Excluded = append([]DriverID(nil), t.Excluded...)
	t.Proof, t.Proofs = append([]ProofKind(nil), t.Proof...), append([]Proof(nil), t.Proofs...)
	t.CompletedFrom = clonePtr(t.CompletedFrom)
	t.Stuck, t.Settled = append([]StuckStep(nil), t.Stuck...), append([]StuckStep(nil), t.Settled...)
	for _, m := range []*map[string]string{&t.Requires, &t.Properties} {
		if *m = maps.Clone(*m); len(*m) == 0 {
			*m = nil
		}
	}
	return t
}

// Promised is the time told to the customer: the end of the Window, or else the Promise; zero: none.
func (t Task) Promised() time.Time {
	if !t.Window.To.IsZero() {
		return t.Window.To
	}
	return t.Promise
}

// Late reports whether what was promised is not kept at now: while the task waits for a driver or
// is somebody's work, from the moment that [Task.Promised] has passed, or at which task.late has
// told that it will.
func (t Task) Late(now time.Time) bool {
	from := t.LateFrom()
	return !from.IsZero() && !now.Before(from)
}

// LateFrom is from when on the task is late, as it is now; zero: it is not and will not be. That it
// was told before its time counts unless the clock that told it was ahead.
func (t Task) LateFrom() time.Time {
	p := t.Promised()
	switch {
	case !t.owed():
		return time.Time{}
	case t.LateFor.Equal(p):
		return earlier(p, t.UpdatedAt.Add(-maxAhead))
	}
	return p
}

// Personal reports whether the task says anything of a person: contacts, addresses, what people
// have written, and what was given as proof.
func (t Task) Personal() bool {
	for _, p := range []*Place{t.Pickup, t.Drop} {
		if p != nil && (p.Address != "" || p.Customer != nil) {
			return true
		}
	}
	return t.Notes != "" || t.CustomerNote != "" || t.Reason != "" || t.ReceivedBy != "" || t.DriverNote != "" ||
		len(t.Proofs) > 0
}

// Open reports whether the task is somebody's work: assigned or in progress.
func (t Task) Open() bool { return t.Status == StatusAssigned || t.Status == StatusInProgress }

// Point is where a driver for the task is looked for: at the pickup, for a drop at the drop; nil
// while that is not known.
func (t Task) Point() *LngLat {
	p := t.Pickup
	if t.Type == TypeDrop {
		p = t.Drop
	}
	if p == nil {
		return nil
	}
	return p.LngLat
}

// TaskFilter picks tasks, and says in which order. Zero fields do not filter.
type TaskFilter struct {
	Page           // default limit 10
	DriverID       DriverID
	Person         string       // of a driver; with DriverID
	Status         []TaskStatus // any of these
	OrderID        string
	CompletedSince time.Time         // CompletedAt at or after
	Query          string            // what a person types to find a task, 2 to 100 characters; see [Search]
	CreatedFrom    time.Time         // CreatedAt at or after …
	CreatedTo      time.Time         // … and before
	WindowFrom     time.Time         // [Window.At] at or after …
	WindowTo       time.Time         // … and before
	Late           bool              // only those that are late, at Now
	Now            time.Time         // the Service gives it
	Waiting        bool              // only those that a driver is to be found for, now or later
	Properties     map[string]string // all of these, exactly
	Sort           TaskSort          // "": by creation; in a Service as Order says
	After          *TaskMark         // only what comes behind it; not together with a page
	// memory that a store may put the list into, over whatever is there, for who keeps nothing of it
	// for long: what is kept may keep whole rows in memory
	Into []Task
}

// Order is the order of a Service's list: the Sort, else by window where windows are asked for, else
// by creation.
func (f TaskFilter) Order() TaskSort {
	switch {
	case f.Sort != "":
		return f.Sort
	case !f.WindowFrom.IsZero() || !f.WindowTo.IsZero():
		return SortWindow
	}
	return SortCreated
}

// TaskSort is an order of tasks.
type TaskSort string

const (
	SortCreated TaskSort = "created" // the newest first, by CreatedAt and then insertion
	// SortWindow has the one whose Window begins soonest first, those without one last, and what is
	// equal there by creation and insertion, the oldest first.
	SortWindow TaskSort = "window"
)

// TaskMark is a place in a list of tasks, right behind one of them. Who goes on from there meets
// every task that stays in the list once, whatever comes and goes meanwhile.
type TaskMark struct {
	Sort      TaskSort
	Window    time.Time // [Window.At], with SortWindow
	CreatedAt time.Time
	Seq       int64
}

// Mark is the place behind a task.
func (t Task) Mark(sort TaskSort) TaskMark {
	if sort != SortWindow {
		return TaskMark{Sort: SortCreated, CreatedAt: t.CreatedAt, Seq: t.Seq}
	}
	return TaskMark{sort, t.Window.At(), t.CreatedAt, t.Seq}
}

// String is the mark as a text; see [ParseTaskMark].
func (m TaskMark) String() string {
	text := []byte("c")
	if m.Sort == SortWindow {
		text[0] = 'w'
		if !m.Window.IsZero() {
			text = strconv.AppendInt(text, m.Window.UnixMilli(), 10)
		}
	}
	text = strconv.AppendInt(append(text, '_'), m.CreatedAt.UnixMilli(), 10)
	return string(strconv.AppendInt(append(text, '_'), m.Seq, 10))
}

// ParseTaskMark reads what String has written.
func ParseTaskMark(text string) (m TaskMark, ok bool) {
	parts := strings.Split(text, "_")
	if len(parts) != 3 || len(text) > 100 {
		return m, false
	}
	created, err1 := strconv.ParseInt(parts[1], 10, 64)
	seq, err2 := strconv.ParseInt(parts[2], 10, 64)
	m = TaskMark{Sort: SortCreated, CreatedAt: time.UnixMilli(created).UTC(), Seq: seq}
	if window, by := strings.CutPrefix(parts[0], "w"); by {
		m.Sort = SortWindow
		if window != "" {
			at, err := strconv.ParseInt(window, 10, 64)
			m.Window, err1 = time.UnixMilli(at).UTC(), first(err1, err)
		}
	} else if parts[0] != "c" {
		return TaskMark{}, false
	}
	if err1 != nil || err2 != nil || m.String() != text {
		return TaskMark{}, false
	}
	return m, true
}

// Compare orders marks as the list by their Sort does.
func (m TaskMark) Compare(o TaskMark) int {
	byAge := cmp.Or(m.CreatedAt.Compare(o.CreatedAt), cmp.Compare(m.Seq, o.Seq))
	switch {
	case m.Sort != SortWindow:
		return -byAge
	case m.Window.IsZero() != o.Window.IsZero():
		if m.Window.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(m.Window.Compare(o.Window), byAge)
}

// Holds reports whether the filter lets the task pass. It is the rule for every store; Page is no
// part of it.
func (f TaskFilter) Holds(t Task) bool {
	within := func(at, from, to time.Time) bool {
		return (from.IsZero() || !at.Before(from)) && (to.IsZero() || at.Before(to))
	}
	if f.After != nil && t.Mark(f.Sort).Compare(*f.After) <= 0 {
		return false
	}
	if at := t.Window.At(); at.IsZero() && !(f.WindowFrom.IsZero() && f.WindowTo.IsZero()) ||
		!within(at, f.WindowFrom, f.WindowTo) {
		return false
	}
	for k, v := range f.Properties {
		if has, ok := t.Properties[k]; !ok || has != v {
			return false
		}
	}
	return (f.DriverID == "" || t.DriverID == f.DriverID) && (f.Person == "" || t.Person == f.Person) &&
		(f.OrderID == "" || t.OrderID == f.OrderID) &&
		(len(f.Status) == 0 || slices.Contains(f.Status, t.Status)) &&
		(f.CompletedSince.IsZero() || !t.CompletedAt.Before(f.CompletedSince)) &&
		within(t.CreatedAt, f.CreatedFrom, f.CreatedTo) &&
		(!f.Late || t.Late(f.Now)) && (!f.Waiting || t.Seeks()) &&
		(f.Query == "" || ParseSearch(f.Query).Finds(t))
}

// Search is what a person types to find a task: words, each of which begins a word of its order id,
// of a contact's name or of an address; or 3 or more digits that its order id ends with, or the
// mobile of a contact. Of a word the first 24 letters and digits count, of digits the last 15.
type Search struct {
	Words []string // folded
	Tail  string   // digits; "": there are none, or something else too
}

// ParseSearch reads a text. Of nothing that counts is made a search that finds nothing.
func ParseSearch(text string) Search {
	s := Search{Words: searchWords(nil, text)}
	more := func(r rune) bool { return !isDigit(r) && !strings.ContainsRune(" +-()/.\u00a0", r) }
	if !strings.ContainsFunc(asciiDigits(text), more) {
		s.Tail = digitsOf(text)
	}
	return s
}

// Finds reports whether the task is one that is searched for.
func (s Search) Finds(t Task) bool {
	words, tails := t.SearchTerms()
	missing := func(begin string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, begin) })
	}
	return len(s.Words) > 0 && !slices.ContainsFunc(s.Words, missing) ||
		s.Tail != "" && slices.ContainsFunc(tails, func(d string) bool { return strings.HasSuffix(d, s.Tail) })
}

// SearchTerms are what a [Search] finds the task by: words, folded, and the digits at the end of
// numbers, each once and sorted. What keeps them in an index has to build it anew when they become
// others for the same task.
func (t Task) SearchTerms() (words, tails []string) {
	words = searchWords(make([]string, 0, 16), t.OrderID)
	if id := asciiDigits(t.OrderID); id != "" && isDigit(rune(id[len(id)-1])) {
		tails = append(tails, digitsOf(t.OrderID))
	}
	for _, p := range []*Place{t.Pickup, t.Drop} {
		if p == nil {
			continue
		}
		words = searchWords(words, p.Address)
		if p.Customer != nil {
			words = searchWords(words, p.Customer.Name)
			tails = append(tails, digitsOf(p.Customer.Mobile))
		}
	}
	slices.Sort(words)
	slices.Sort(tails)
	tails = slices.DeleteFunc(tails, func(d string) bool { return d == "" })
	return slices.Compact(words), slices.Compact(tails)
}

const (
	maxSearchWord = 24 // letters and digits
	maxSearchTail = 15 // digits, as many as a number in international form has
)

// searchWords appends the words of a text, folded and cut, to a list.
func searchWords(list []string, text string) []string {
	for word := range strings.FieldsFuncSeq(fold(text), apart) {
		if len(word) > maxSearchWord {
			if letters := []rune(word); len(letters) > maxSearchWord {
				word = string(letters[:maxSearchWord])
			}
		}
		list = append(list, word)
	}
	return list
}

// apart reports whether r is of no word.
func apart(r rune) bool {
	if r < 0x80 {
		return !isDigit(r) && (r|0x20 < 'a' || 'z' < r|0x20)
	}
	return !unicode.In(r, unicode.Letter, unicode.Number, unicode.Mc)
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// asciiDigits is a text with 0 to 9 for the decimal digits of other scripts. Unicode has them in rows
// of ten, each from 0 to 9.
func asciiDigits(text string) string {
	if isASCII(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r < 0x80 || !unicode.Is(unicode.Nd, r) {
			return r
		}
		for _, row := range unicode.Nd.R16 {
			if r <= rune(row.Hi) {
				return '0' + (r-rune(row.Lo))%10
			}
		}
		for _, row := range unicode.Nd.R32 {
			if r <= rune(row.Hi) {
				return '0' + (r-rune(row.Lo))%10
			}
		}
		return r
	}, text)
}

// digitsOf are the last digits of a number, of whichever script, as 0 to 9; "" of fewer than 3.
func digitsOf(number string) string {
	number = asciiDigits(number)
	digits := strings.TrimFunc(number, func(r rune) bool { return !isDigit(r) })
	if strings.ContainsFunc(digits, func(r rune) bool { return !isDigit(r) }) {
		digits = strings.Map(func(r rune) rune {
			if isDigit(r) {
				return r
			}
			return -1
		}, digits)
	}
	if len(digits) < 3 {
		return ""
	}
	return digits[max(0, len(digits)-maxSearchTail):]
}

// TaskCounts are how many tasks there are.
type TaskCounts struct {
	Created    int // nobody's; those that are Waiting among them
	Waiting    int // for a driver, now or later
	Assigned   int
	InProgress int
	Late       int
	Completed  map[Outcome]int // since a time; without those of which there is none
}

// CountQuery says what is counted.
type CountQuery struct {
	Now            time.Time // what is late at this time; the Service gives it
	CompletedSince time.Time // CompletedAt at or after; in a Service zero is 24 hours ago
}

// WaitingFilter picks waiting tasks. Zero fields do not filter.
type WaitingFilter struct {
	Near   *LngLat  // with Within: only those whose Point is within so many metres of it by [Distance]
	Within float64  // metres; 0: anywhere
	Driver DriverID // only those that this driver is not Excluded from …
	// … and whose Requires are all among these, which are the driver's; with Driver
	Properties map[string]string
	Limit      int
}

// MatchQuery says which drivers may get a waiting task; see [Offer].
type MatchQuery struct {
	MaxOpen   int       // only drivers that are not [Driver.Full] by this; negative: no limit
	SeenSince time.Time // only drivers whose last sign of life is at or after this
	Within    float64   // metres; 0: no limit
	Claim     Claim
	Limit     int
}

// Fit says whether a driver could get a task automatically; if not, what is in the way. Where that
// is more than one thing it is the first of these.
type Fit string

const (
	FitOffDuty    Fit = "off_duty"
	FitNoPosition Fit = "no_position"
	FitSilent     Fit = "silent"   // not heard of within Options.MaxFixAge
	FitUnfit      Fit = "unfit"    // without a property that the task requires
	FitExcluded   Fit = "excluded" // has declined it, or it was taken away
	FitTooFar     Fit = "too_far"  // farther than Options.MaxAssignDistance
	FitBusy       Fit = "busy"     // has as many open tasks as may come automatically
	FitYes        Fit = "yes"
)

// Candidate is a driver who might be given a task.
type Candidate struct {
	Driver   Driver
	Distance *float64 // metres to the task's [Task.Point]; nil where one of the two is not known
	Fit      Fit
}

// WaitReason says why a task waits for a driver: what is in the way of the driver who comes closest
// to getting it, as of now.
type WaitReason string

const (
	WaitWindow   WaitReason = "window"    // its time has not come
	WaitNoPoint  WaitReason = "no_point"  // nobody knows where it is
	WaitNoDriver WaitReason = "no_driver" // nobody is on duty
	WaitSilent   WaitReason = "silent"    // those on duty are silent, or nobody knows where they are
	WaitUnfit    WaitReason = "unfit"
	WaitExcluded WaitReason = "excluded"
	WaitTooFar   WaitReason = "too_far"
	WaitBusy     WaitReason = "busy" // also when the driver goes to a task that has waited longer
)

// Waits says since when a task waits for a driver, and why.
type Waits struct {
	Since  time.Time  // with WaitWindow since it was created or declined, else since a driver is looked for
	Reason WaitReason // empty: it was not asked for, see [Task.Waits]
}

// TaskReader reads tasks.
type TaskReader interface {
	// Task reads one.
	Task(ctx context.Context, app AppID, id TaskID) (Task, error)

	// Tasks lists what [TaskFilter.Holds], in the order of [TaskMark.Compare]. More tells whether a
	// further page exists. Page.Limit is given, 1 or more.
	//
	// A near page in the order of creation costs its length and not the size of the store, by any one
	// filter other than of windows, by driver and status together, and behind a mark; of several
	// words and properties it costs what the rarest one does. So does a near page in the order of
	// windows, of all or of states and between two windows.
	Tasks(ctx context.Context, app AppID, f TaskFilter) (list []Task, more bool, err error)

	// TaskCounts counts. It costs what it counts, and not what has long been completed.
	TaskCounts(ctx context.Context, app AppID, q CountQuery) (TaskCounts, error)

	// TaskByKey finds the task created with that idempotency key.
	TaskByKey(ctx context.Context, app AppID, key string) (Task, error)

	// TaskByLink finds the task, of any application, whose Link.Hash this is.
	TaskByLink(ctx context.Context, hash Hash) (AppID, Task, error)
}

// pointField is the input that Point comes from.
func (t *Task) pointField() string {
	if t.Type == TypeDrop {
		return "drop.lnglat"
	}
	return "pickup.lnglat"
}

// legs are what lies before the driver of a task that is not completed, in order; to be read only.
func (t *Task) legs() []Leg {
	switch {
	case t.Type == TypePickup:
		return bothLegs[:1:1]
	case t.Type == TypePickupAndDrop && t.PickedUpAt.IsZero():
		return bothLegs[:]
	}
	return bothLegs[1:]
}

var bothLegs = [...]Leg{LegPickup, LegDrop}

// watchedLeg is the one that the holder of the task's link waits at the end of.
func (t *Task) watchedLeg() Leg {
	if t.Type == TypePickup {
		return LegPickup
	}
	return LegDrop
}

// place is where a leg leads to.
func (t *Task) place(leg Leg) *Place {
	if leg == LegPickup {
		return t.Pickup
	}
	return t.Drop
}

// lacksPoint reports whether one of the task's places has no point yet.
func (t *Task) lacksPoint() bool {
	return t.Pickup != nil && t.Pickup.LngLat == nil || t.Drop != nil && t.Drop.LngLat == nil
}

// Phase says how far a task has come, in the eyes of who waits for it.
type Phase string

const (
	PhaseCreated  Phase = "created"
	PhaseAssigned Phase = "assigned"
	PhaseToPickup Phase = "to_pickup"
	PhaseAtPickup Phase = "at_pickup"
	PhaseToDrop   Phase = "to_drop"
	PhaseArriving Phase = "arriving" // near the place of the person who watches
	PhaseAtDrop   Phase = "at_drop"
	PhaseDone     Phase = "done"
)

// Phase is how far the task has come.
func (t Task) Phase() Phase {
	switch {
	case t.Status == StatusCompleted:
		return PhaseDone
	case t.Status == StatusAssigned:
		return PhaseAssigned
	case t.Status != StatusInProgress:
		return PhaseCreated
	}
	leg := t.legs()[0]
	arriving, arrived := t.arrival(leg)
	switch {
	case !arrived.IsZero() && leg == LegPickup:
		return PhaseAtPickup
	case !arrived.IsZero():
		return PhaseAtDrop
	case !arriving.IsZero() && leg == t.watchedLeg():
		return PhaseArriving
	case leg == LegPickup:
		return PhaseToPickup
	}
	return PhaseToDrop
}

// arrival is where the task keeps when its driver came near the end of a leg, and when there.
func (t *Task) arrival(leg Leg) (arriving, arrived time.Time) {
	if leg == LegPickup {
		return t.PickupArrivingAt, t.PickupArrivedAt
	}
	return t.ArrivingAt, t.ArrivedAt
}

// trackingID is the tracking id of the task's trips.
func (t Task) trackingID() TrackingID { return TrackingID(t.ID) }

// Seeks reports whether a driver is to be found for the task automatically, now or later.
func (t Task) Seeks() bool { return t.Waiting || !t.AssignAt.IsZero() }

// owed reports whether there is a promise that somebody is to keep.
func (t Task) owed() bool { return !t.Promised().IsZero() && (t.Open() || t.Seeks()) }

// due is when something is to be done about the task: to begin looking for a driver, or to say that
// it is late; zero: never.
func (t Task) due() time.Time {
	at, p := t.AssignAt, t.Promised()
	if t.owed() && !t.LateFor.Equal(p) && (at.IsZero() || p.Before(at)) {
		return p
	}
	return at
}

// asTold is the task without the lateness that was told before its time by a clock that was wrong.
func (t Task) asTold(now time.Time) Task {
	if ahead(t.UpdatedAt, now) && now.Before(t.LateFor) {
		t.LateFor = time.Time{}
	}
	return t
}

// pinShown reports whether the holder of the task's link sees its PIN: from when the driver comes
// near on, until the end.
func pinShown(t Task) bool {
	arriving, arrived := t.arrival(t.watchedLeg())
	return t.PIN != "" && t.Status == StatusInProgress && (!arriving.IsZero() || !arrived.IsZero())
}

func (id TaskID) subject() Subject { return Subject{KindTask, string(id)} }

func (t *Task) subject() Subject { return t.ID.subject() }

// The transitions of a task. Each is a pure function of the task as it is: it returns the task as
// it is to be and whether that is a change; with an error the state forbids it. What lies around it
// (the driver's count, the trip, events and notices) follows from the two tasks.

var (
	errCompleted  = conflict("The task is completed.")
	errInProgress = conflict("The task is in progress.")
	errNotStarted = conflict("The task is not in progress.")
	errFullRoute  = conflict("The driver has 1,000 stops, which is the most there can be.")
	errRetried    = conflict("The task is tried again by another one; go on with that one.")
)

// assigned gives the task to d. Auto tells that nobody chose d by hand.
func (t Task) assigned(d Driver, auto bool, now time.Time) (Task, bool, error) {
	switch {
	case t.Status == StatusCompleted:
		return t, false, errCompleted
	case t.Open() && t.DriverID == d.ID:
		return t, false, nil
	case t.Status == StatusInProgress:
		return t, false, conflict("The task is in progress with another driver; unassign it first, or use force.")
	}
	if t.Status == StatusAssigned {
		t = t.exclude(t.DriverID)
	}
	if !auto {
		t.Excluded = slices.DeleteFunc(slices.Clone(t.Excluded), func(x DriverID) bool { return x == d.ID })
	}
	t = t.unsought()
	t.Status, t.DriverID, t.Person, t.AutoAssigned = StatusAssigned, d.ID, d.Person, auto
	t.Reason, t.ReasonCode = "", ""
	t.AssignedAt, t.UpdatedAt = now, now
	return t, true, nil
}

// assignedByHand gives the task to d, whom somebody chose.
func (t Task) assignedByHand(d Driver, now time.Time) (Task, bool, error) {
	return t.assigned(d, false, now)
}

// reassigned gives the task to d by hand, also when another driver is at it.
func (t Task) reassigned(d Driver, now time.Time) (Task, bool, error) {
	if t.Status == StatusInProgress && t.DriverID != d.ID {
		t = t.unstarted()
	}
	return t.assigned(d, false, now)
}

// sought is the task for which a driver is to be found automatically: at once, or when its Window
// begins in no more than lead.
func (t Task) sought(lead time.Duration, now time.Time) Task {
	was := t
	t.Waiting, t.AssignAt = true, time.Time{}
	if from := t.Window.From.Add(-lead); !t.Window.From.IsZero() && from.After(now) {
		t.Waiting, t.AssignAt = false, from
	}
	if !was.Seeks() || was.Waiting != t.Waiting {
		t.WaitsSince = now
	}
	return t
}

// unsought is the task for which nobody is to be found.
func (t Task) unsought() Task {
	t.Waiting, t.AssignAt, t.WaitsSince = false, time.Time{}, time.Time{}
	return t
}

// begun is the task for which a driver is looked for from now on, if the time for that has come.
func (t Task) begun(now time.Time) (Task, bool) {
	if t.AssignAt.IsZero() || t.AssignAt.After(now) {
		return t, false
	}
	t.Waiting, t.AssignAt, t.WaitsSince = true, time.Time{}, t.AssignAt
	return t, true
}

// late is the task of which is told that its promise is not kept, once for each promise. Expected
// is when it will be done, as things stand; zero: not known.
func (t Task) late(expected, now time.Time) (Task, bool) {
	p := t.Promised()
	if !t.owed() || t.LateFor.Equal(p) || now.Before(p) && !expected.After(p) {
		return t, false
	}
	t.LateFor, t.UpdatedAt = p, now
	return t, true
}

// unstarted is the task, which its driver has, as it was before the start.
func (t Task) unstarted() Task {
	t.Status, t.StepAt = StatusAssigned, time.Time{}
	t.StartedAt, t.PickupArrivingAt, t.PickupArrivedAt = time.Time{}, time.Time{}, time.Time{}
	return t.notPickedUp()
}

// notPickedUp is the task as it was before its goods were on board.
func (t Task) notPickedUp() Task {
	t.PickedUpAt, t.ArrivingAt, t.ArrivedAt = time.Time{}, time.Time{}, time.Time{}
	return t
}

// unended is the task as it was before it was completed, but for its state. What was given as proof
// stays with it.
func (t Task) unended() Task {
	t.Outcome, t.Reason, t.ReasonCode, t.DriverNote = "", "", "", ""
	t.CompletedFrom, t.CompletedAt, t.StepAt = nil, time.Time{}, time.Time{}
	return t
}

func (t Task) exclude(d DriverID) Task {
	if i, found := slices.BinarySearch(t.Excluded, d); !found {
		t.Excluded = slices.Insert(slices.Clone(t.Excluded), i, d)
	}
	return t
}

// freed is the task without its driver, who is not to get it again automatically.
func (t Task) freed(now time.Time) Task {
	t = t.exclude(t.DriverID).unstarted()
	t.Status, t.DriverID, t.Person, t.AutoAssigned = StatusCreated, "", "", false
	t.Reason, t.ReasonCode = "", ""
	t.AssignedAt, t.UpdatedAt = time.Time{}, now
	return t
}

// unassigned takes the task from its driver, and ends its waiting.
func (t Task) unassigned(now time.Time) (Task, bool, error) {
	switch {
	case t.Status == StatusCompleted:
		return t, false, errCompleted
	case t.Status == StatusCreated && !t.Seeks():
		return t, false, nil
	case t.Status == StatusCreated:
		return t.unsought(), true, nil // it is nobody's as before: no event, and UpdatedAt stays
	}
	return t.freed(now), true, nil
}

// leadsElsewhere is the task whose present leg leads to another place than that of before, further
// from it than radius: nobody has come near that one.
func (t Task) leadsElsewhere(before Task, radius float64) Task {
	if t.Status != StatusInProgress {
		return t
	}
	was, is := pointOf(before.place(t.legs()[0])), pointOf(t.place(t.legs()[0]))
	if was == nil || is != nil && Distance(*was, *is) <= radius {
		return t
	}
	if t.legs()[0] == LegPickup {
		t.PickupArrivingAt, t.PickupArrivedAt = time.Time{}, time.Time{}
	} else {
		t.ArrivingAt, t.ArrivedAt = time.Time{}, time.Time{}
	}
	return t
}

// heldBy checks that d is the task's driver; another one must not learn of it.
func (t Task) heldBy(d DriverID) error {
	if t.DriverID != d || d == "" {
		return notFound("task_id", "task")
	}
	return nil
}

// declined gives the task back; it waits again if it had been assigned automatically, as
// [Task.sought] says.
func (t Task) declined(d DriverID, why Reason, lead time.Duration, now time.Time) (Task, bool, error) {
	if err := t.heldBy(d); err != nil {
		return t, false, err
	}
	switch t.Status {
	case StatusInProgress:
		return t, false, errInProgress
	case StatusCompleted:
		return t, false, errCompleted
	}
	waits := t.AutoAssigned
	t = t.freed(now)
	t.Reason, t.ReasonCode = why.Text, why.Code
	if waits {
		t = t.sought(lead, now)
	}
	return t, true, nil
}

// started begins the task. Started again it stays as it is.
func (t Task) started(d DriverID, at, now time.Time) (Task, bool, error) {
	if err := t.heldBy(d); err != nil {
		return t, false, err
	}
	switch t.Status {
	case StatusCompleted:
		return t, false, errCompleted
	case StatusInProgress:
		return t, false, nil
	}
	t.Status, t.StartedAt = StatusInProgress, clampAt(at, stepBefore(now, t.CreatedAt, t.AssignedAt), now)
	t.StepAt, t.UpdatedAt = now, now
	return t.noStepAfter(t.StartedAt), true, nil
}

// underWayBy checks that d is the task's driver, and that it is in progress.
func (t Task) underWayBy(d DriverID) error {
	if err := t.heldBy(d); err != nil {
		return err
	}
	switch t.Status {
	case StatusCompleted:
		return errCompleted
	case StatusInProgress:
		return nil
	}
	return errNotStarted
}

// pickedUp notes that the goods are on board; done again it stays as it is.
func (t Task) pickedUp(d DriverID, at, now time.Time) (Task, bool, error) {
	if err := t.underWayBy(d); err != nil {
		return t, false, err
	}
	switch {
	case t.Type != TypePickupAndDrop:
		return t, false, conflict("Only a task with pickup and drop is picked up; complete this one.")
	case !t.PickedUpAt.IsZero():
		return t, false, nil
	}
	last := stepBefore(now, t.CreatedAt, t.AssignedAt, t.StartedAt, t.PickupArrivedAt)
	t.PickedUpAt, t.StepAt, t.UpdatedAt = clampAt(at, last, now), now, now
	return t.noStepAfter(t.PickedUpAt), true, nil
}

// arrived notes that the driver is at the end of the present leg, since at; done again it stays as it
// is.
func (t Task) arrived(d DriverID, at, now time.Time) (Task, bool, error) {
	if err := t.underWayBy(d); err != nil {
		return t, false, err
	}
	leg := t.legs()[0]
	if _, arrived := t.arrival(leg); !arrived.IsZero() {
		return t, false, nil
	}
	at = clampAt(at, stepBefore(now, t.CreatedAt, t.AssignedAt, t.StartedAt, t.PickedUpAt), now)
	if leg == LegPickup {
		t.PickupArrivedAt = at
	} else {
		t.ArrivedAt = at
	}
	t.UpdatedAt = now
	return t, true, nil
}

// approached notes when its driver came near the end of a leg, and when there, as far as that is not
// noted yet; zero: not so far.
func (t Task) approached(leg Leg, near, there, now time.Time) (next Task, arriving, arrived bool) {
	was, been := t.arrival(leg)
	if arriving = was.IsZero() && been.IsZero() && !near.IsZero(); arriving {
		was = near
	}
	if arrived = been.IsZero() && !there.IsZero(); arrived {
		been = there
	}
	if leg == LegPickup {
		t.PickupArrivingAt, t.PickupArrivedAt = was, been
	} else {
		t.ArrivingAt, t.ArrivedAt = was, been
	}
	if arriving || arrived {
		t.UpdatedAt = now
	}
	return t, arriving, arrived
}

// completed ends the task. d is the driver who ends it, "" for the application, which may end any
// open one and is the only one to cancel.
func (t Task) completed(d DriverID, how Completion, at, now time.Time) (Task, bool, error) {
	if d != "" {
		if err := t.heldBy(d); err != nil {
			return t, false, err
		}
	}
	switch {
	case t.Status == StatusCompleted && t.Outcome == how.Outcome:
		return t, false, nil
	case t.Status == StatusCompleted:
		return t, false, conflict("The task is completed already, with another outcome.")
	case d != "" && t.Status != StatusInProgress:
		return t, false, errNotStarted
	}
	if d == "" {
		t.WrongPINs = 0
	} else if how.Outcome == OutcomeSucceeded {
		if err := t.proven(how); err != nil {
			return t, false, err
		}
	}
	last := stepBefore(now, t.CreatedAt, t.AssignedAt, t.StartedAt, t.PickupArrivedAt, t.PickedUpAt, t.ArrivedAt)
	t.AutoAssigned = t.AutoAssigned || t.Seeks() // so that who tries it again knows
	t = t.unsought()
	t.Status, t.Outcome, t.GeocodeAt = StatusCompleted, how.Outcome, time.Time{}
	t.Reason, t.ReasonCode = how.Reason.Text, how.Reason.Code
	t.ReceivedBy, t.DriverNote = cmp.Or(how.ReceivedBy, t.ReceivedBy), cmp.Or(how.Note, t.DriverNote)
	t.CompletedAt, t.UpdatedAt, t.CompletedFrom = clampAt(at, last, now), now, nil
	if t.StepAt = now; d == "" {
		t.StepAt = time.Time{}
	}
	return t.seenTo("", "").noStepAfter(t.CompletedAt), true, nil
}

// retried notes that the task is tried again as another one. Once it is, it stays as it is.
func (t Task) retried(by TaskID, now time.Time) (Task, bool, error) {
	switch {
	case t.RetriedBy != "":
		return t, false, nil
	case t.Status != StatusCompleted:
		return t, false, conflict("The task has not ended; only one that failed or was cancelled is tried again.")
	case t.Outcome == OutcomeSucceeded:
		return t, false, conflict("The task has succeeded; only one that failed or was cancelled is tried again.")
	case !t.ErasedAt.IsZero():
		return t, false, errErased
	}
	t.RetriedBy, t.UpdatedAt = by, now
	return t, true, nil
}

// mayGo reports why the task cannot be deleted: only one that has ended can, or one that is nobody's
// and waits for nobody.
func (t Task) mayGo() error {
	switch {
	case t.Open():
		return conflict("The task is a driver's; complete, cancel or unassign it first.")
	case t.Status == StatusCreated && t.Seeks():
		return conflict("The task waits for a driver; cancel or unassign it first.")
	}
	return nil
}

// errErased is why an erased task cannot go on.
var errErased = conflict("What the task said of its customer was erased; create a new one.")

// erased is a task, which has ended, without what it says of the person with a number, whose digits
// these are: the contact and the address of each place where that is whom to meet, and what people
// have written or given for the task, whoever is meant. With "" it is without what it says of
// anybody. Changed tells whether it said anything.
func (t Task) erased(digits string, now time.Time) (next Task, changed bool) {
	of := func(p *Place) bool {
		return p != nil && (digits == "" || p.Customer != nil && digitsOf(p.Customer.Mobile) == digits)
	}
	if digits == "" && !t.Personal() || digits != "" && !of(t.Pickup) && !of(t.Drop) {
		return t, false
	}
	t = t.Clone()
	for _, p := range []*Place{t.Pickup, t.Drop} {
		if of(p) {
			p.Address, p.Customer = "", nil
		}
	}
	t.Notes, t.CustomerNote, t.Reason, t.ReceivedBy, t.DriverNote = "", "", "", "", ""
	t.Proofs, t.KeySum, t.StepAt = nil, Hash{}, time.Time{}
	t.ErasedAt, t.UpdatedAt = now, now
	return t, true
}

// anew describes a task with the content of this one, which has ended.
func (t Task) anew() NewTask {
	return NewTask{
		Type: t.Type, Pickup: t.Pickup.clone(), Drop: t.Drop.clone(), OrderID: t.OrderID, Notes: t.Notes,
		AutoAssign: t.AutoAssigned, Requires: t.Requires, Properties: t.Properties, Proof: t.Proof,
	}
}

// maxStuck is how many steps are kept that could not be delivered, and how many of those that were
// seen to; the oldest give way.
const maxStuck = 10

func newestStuck(steps []StuckStep) []StuckStep { return steps[max(len(steps)-maxStuck, 0):] }

// stuckAt keeps that a phone could not deliver a step. Whoever had the task may say so: that it is
// somebody else's by now is most often why.
func (t Task) stuckAt(s StuckStep, now time.Time) (Task, bool, error) {
	if t.DriverID != s.DriverID && !slices.Contains(t.Excluded, s.DriverID) {
		return t, false, notFound("task_id", "task")
	}
	if slices.ContainsFunc(t.Stuck, s.same) || slices.ContainsFunc(t.Settled, s.same) {
		return t, false, nil
	}
	if s.At.IsZero() {
		s.At = now
	}
	_, others := t.stuckOf(s.DriverID, s.Step)
	t.Stuck, t.UpdatedAt = newestStuck(append(others, s)), now
	return t, true, nil
}

// settled is the task after somebody has seen to what could not be delivered: all of it, or that of
// one driver, or one step.
func (t Task) settled(d DriverID, step string, now time.Time) (Task, bool) {
	next := t.seenTo(d, step)
	if len(next.Stuck) == len(t.Stuck) {
		return t, false
	}
	next.UpdatedAt = now
	return next, true
}

// seenTo is the task with steps that could not be delivered among those that are Settled; "" stands
// for any driver or step.
func (t Task) seenTo(d DriverID, step string) Task {
	settled, others := t.stuckOf(d, step)
	t.Stuck, t.Settled = others, newestStuck(slices.Concat(t.Settled, settled))
	return t
}

// stuckOf are the steps that could not be delivered, of one driver and step, and the others; "" stands
// for any driver or step.
func (t Task) stuckOf(d DriverID, step string) (these, others []StuckStep) {
	for _, s := range t.Stuck {
		if (d == "" || s.DriverID == d) && (step == "" || s.Step == step) {
			these = append(these, s)
		} else {
			others = append(others, s)
		}
	}
	return these, others
}

// noted keeps what the holder of its link writes to the driver; the last one stands.
func (t Task) noted(text string, now time.Time) (Task, bool, error) {
	if t.Status == StatusCompleted {
		return t, false, errCompleted
	}
	changed := t.CustomerNote != text
	if changed {
		t.CustomerNote, t.UpdatedAt = text, now
	}
	return t, changed, nil
}

// maxWrongPINs is how many wrong PINs may be tried: a guess hits once in 1,000 tasks.
const maxWrongPINs = 10

var (
	errWrongPIN = &Error{Code: ErrConflict, Field: "pin", Message: "This is not the PIN of the task."}
	errNoPIN    = &Error{ // it came by an import without secrets
		Code: ErrConflict, Field: "pin",
		Message: "The task's PIN is not known any more; only the dispatcher can complete the task now.",
	}
	errManyPINs = &Error{
		Code: ErrConflict, Field: "pin",
		Message: "Too many wrong PINs were tried; only the dispatcher can complete the task now.",
	}
)

// proven checks that with what the driver's completion brings there is all the evidence that the
// task asks for. Whether a PIN is right is not told as long as something else lacks.
func (t Task) proven(how Completion) error {
	var lacks []string
	field := ""
	lack := func(kind ProofKind, in string) {
		lacks, field = append(lacks, string(kind)), cmp.Or(field, in)
	}
	for _, kind := range t.Proof {
		switch kind {
		case ProofPhoto, ProofSignature:
			if !slices.ContainsFunc(t.Proofs, func(p Proof) bool { return p.Kind == kind }) {
				lack(kind, "proof")
			}
		case ProofName:
			if cmp.Or(how.ReceivedBy, t.ReceivedBy) == "" {
				lack(kind, "received_by")
			}
		case ProofPIN:
			if how.PIN == "" && t.WrongPINs < maxWrongPINs {
				lack(kind, "pin")
			}
		}
	}
	switch {
	case lacks != nil:
		return &Error{
			Code: ErrConflict, Field: field,
			Message: "The task needs more proof before it can succeed; it lacks: " + strings.Join(lacks, ", ") + ".",
		}
	case t.lacksPIN():
		return errNoPIN
	case t.PIN == "":
		return nil
	case t.WrongPINs >= maxWrongPINs:
		return errManyPINs
	case subtle.ConstantTimeCompare([]byte(how.PIN), []byte(t.PIN)) != 1:
		return errWrongPIN
	}
	return nil
}

// completedAt is where the task was completed, and how far that is from where it should have been.
func (t Task) completedAt(p LngLat, source string) *Whereabouts {
	w := &Whereabouts{LngLat: p, Source: source}
	if place := pointOf(t.place(t.watchedLeg())); place != nil {
		w.OffBy = Distance(p, *place)
	}
	return w
}

// proofShown reports whether the holder of the task's link may see what its driver has given.
func (t Task) proofShown() bool { return t.Outcome == OutcomeSucceeded || t.Outcome == OutcomeFailed }

// photos are the ids of its photos.
func (t Task) photos() (ids []string) {
	for _, p := range t.Proofs {
		if p.Kind == ProofPhoto {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// lateProof is for how long after the end of a task has reached us its driver may still give files:
// what was taken in time and sent later must arrive.
const lateProof = day

// endedAt is when, by our clock, the end of the task was noted; CompletedAt may be long before that,
// by its driver's phone.
func (t Task) endedAt() time.Time {
	if t.StepAt.IsZero() {
		return t.CompletedAt // by the dispatcher, who ends it now
	}
	return t.StepAt
}

// proved adds a file that its driver has given. The same bytes again are nothing new: found is the
// file that is there already.
func (t Task) proved(d DriverID, p Proof, now time.Time) (next Task, found Proof, changed bool, err error) {
	if err := t.heldBy(d); err != nil {
		return t, p, false, err
	}
	if !t.ErasedAt.IsZero() {
		return t, p, false, errErased
	}
	for _, has := range t.Proofs {
		if has.Kind == p.Kind && has.Sum == p.Sum {
			return t, has, false, nil
		}
	}
	switch {
	case t.Status == StatusCompleted && !within(t.endedAt(), now, lateProof):
		return t, p, false, conflict("The task was completed more than 24 hours ago.")
	case t.Status != StatusInProgress && t.Status != StatusCompleted:
		return t, p, false, errNotStarted
	case len(t.Proofs) >= MaxProofs:
		return t, p, false, conflict("The task has 10 files, which is the most there can be.")
	}
	t = t.Clone()
	t.Proofs, t.UpdatedAt = append(t.Proofs, p), now
	return t, p, true, nil
}

// asking is the task with the kinds of evidence that it asks for from now on. Whoever writes it
// gives it a PIN if it lacksPIN.
func (t Task) asking(kinds []ProofKind) Task {
	if t.Proof = slices.Clone(kinds); len(kinds) == 0 {
		t.Proof = nil
	}
	if !slices.Contains(kinds, ProofPIN) {
		t.PIN, t.WrongPINs = "", 0
	}
	return t
}

// lacksPIN reports whether the task asks for a PIN and has none yet.
func (t *Task) lacksPIN() bool { return t.PIN == "" && slices.Contains(t.Proof, ProofPIN) }

// reopened takes the end of the task back, for so long after it. Held tells that the driver it had
// is still there, and gets it again; else it is nobody's. One that nobody had is sought for again, if
// it was when it ended.
func (t Task) reopened(held bool, keep, lead time.Duration, now time.Time) (Task, bool, error) {
	switch {
	case t.Status != StatusCompleted:
		return t, false, nil
	case t.RetriedBy != "":
		return t, false, errRetried
	case !t.ErasedAt.IsZero():
		return t, false, errErased
	case !within(t.CompletedAt, now, keep):
		return t, false, conflict("The task ended too long ago to be reopened; create a new one.")
	}
	t = t.unended().unstarted()
	t.AssignedAt, t.UpdatedAt = now, now
	if !held {
		if t.DriverID == "" && t.AutoAssigned {
			t = t.sought(lead, now)
		}
		t.Status, t.DriverID, t.Person, t.AutoAssigned, t.AssignedAt = StatusCreated, "", "", false, time.Time{}
	}
	return t, true, nil
}

// lastStep is the last of its driver's steps that the state tells of; "" for none.
func (t Task) lastStep() TaskStep {
	switch {
	case t.Status == StatusCompleted:
		return StepComplete
	case t.Status != StatusInProgress:
		return ""
	case !t.PickedUpAt.IsZero():
		return StepPickup
	}
	return StepStart
}

// stepTime is when a step was taken; zero: it was not, or has been taken back.
func (t Task) stepTime(step TaskStep) time.Time {
	switch step {
	case StepStart:
		return t.StartedAt
	case StepPickup:
		return t.PickedUpAt
	}
	return t.CompletedAt
}

// undone takes back the last step of driver d, for so long after it, and says which one that was;
// "" when there is none. Meant is the step that d means, "" for whichever is the last: one that is
// taken back already stays so, and takes no other with it.
func (t Task) undone(d DriverID, meant TaskStep, keep time.Duration, now time.Time) (Task, TaskStep, error) {
	if err := t.heldBy(d); err != nil {
		return t, "", err
	}
	step := t.lastStep()
	switch {
	case !t.ErasedAt.IsZero():
		return t, "", errErased
	case step == "", meant != "" && t.stepTime(meant).IsZero():
		return t, "", nil
	case t.StepAt.IsZero() && step == StepComplete:
		return t, "", conflict("The task was not ended by its driver; only the dispatcher can reopen it.")
	case t.StepAt.IsZero():
		return t, "", conflict("There is no step left to take back.")
	case meant != "" && meant != step:
		return t, "", conflict("Another step was taken after that one; take that back first.")
	case t.RetriedBy != "":
		return t, "", errRetried
	case !within(t.StepAt, now, keep):
		return t, "", conflict("The step was taken too long ago to be taken back; ask the dispatcher.")
	}
	switch step {
	case StepStart:
		t = t.unstarted()
	case StepPickup:
		t = t.notPickedUp()
	case StepComplete:
		t = t.unended()
		t.Status = StatusInProgress
	}
	t.StepAt, t.UpdatedAt = time.Time{}, now
	return t, step, nil
}

// noStepAfter is the task with the steps before its last one, which was at at, brought back to that:
// they were noted by a clock that ran ahead.
func (t Task) noStepAfter(at time.Time) Task {
	t.AssignedAt, t.StartedAt = earlier(t.AssignedAt, at), earlier(t.StartedAt, at)
	t.PickedUpAt, t.PickupArrivedAt = earlier(t.PickedUpAt, at), earlier(t.PickupArrivedAt, at)
	t.PickupArrivingAt, t.ArrivingAt = earlier(t.PickupArrivingAt, at), earlier(t.ArrivingAt, at)
	t.ArrivedAt = earlier(t.ArrivedAt, at)
	return t
}

// TaskUpdate changes a task. A nil field stays as it is. A place given replaces the point and the
// address together; its customer stays unless one is given.
type TaskUpdate struct {
	Pickup, Drop *Place
	Notes        *string
	OrderID      *string
	Time         *time.Time
	Window       *Window           // replaces both ends; the zero Window removes it
	Promised     *time.Time        // see [NewTask]; the zero time takes it back
	Requires     map[string]string // replaces all; empty and not nil removes all

	// Properties replaces all of them; empty and not nil removes all.
	Properties map[string]string

	// Proof replaces what evidence is asked for; not nil and empty: none. Asked for anew, there is
	// another PIN.
	Proof []ProofKind
}

func (u *TaskUpdate) normalize() error {
	var c check
	c.place("pickup", u.Pickup)
	c.place("drop", u.Drop)
	if u.Notes != nil {
		c.text("notes", *u.Notes, 4000)
	}
	if u.OrderID != nil {
		c.line("order_id", *u.OrderID, 200)
	}
	if u.Time != nil {
		c.time("time", *u.Time)
		if u.Time.IsZero() {
			u.Time = nil
		}
	}
	if u.Window != nil {
		w := u.Window.stamped()
		c.window(w)
		u.Window = &w
	}
	if u.Promised != nil {
		at := stamp(*u.Promised)
		c.time("promised", at)
		u.Promised = &at
	}
	c.properties("requires", u.Requires)
	c.properties("properties", u.Properties)
	u.Proof = c.proof("proof", u.Proof)
	return c.err
}

// stamped is the window in whole milliseconds.
func (w Window) stamped() Window { return Window{stamp(w.From), stamp(w.To)} }

func (w Window) equal(o Window) bool { return w.From.Equal(o.From) && w.To.Equal(o.To) }

func (c *check) window(w Window) {
	c.time("window.from", w.From)
	c.time("window.to", w.To)
	if !w.To.IsZero() && w.To.Before(w.From) {
		c.fail("window.to", "must not be before window.from.")
	}
}

// updated applies u, and names the fields that change. Another window moves the moment at which to
// begin looking for a driver, as [Task.sought] says.
func (t Task) updated(u TaskUpdate, lead time.Duration, now time.Time) (Task, []string, error) {
	// What the state and the type allow.
	if t.Status == StatusCompleted {
		return t, nil, errCompleted
	}
	if t.Status == StatusInProgress &&
		(u.Pickup != nil || u.OrderID != nil || u.Time != nil || u.Requires != nil || u.Proof != nil) {
		return t, nil, conflict("The task is in progress; only its notes, its drop, its window, its properties and " +
			"what was promised can be changed now.")
	}
	var c check
	if u.Pickup != nil && t.Type == TypeDrop {
		c.fail("pickup", "is not part of a drop task.")
	}
	if u.Drop != nil && t.Type == TypePickup {
		c.fail("drop", "is not part of a pickup task.")
	}
	if c.err != nil {
		return t, nil, c.err
	}

	// Each field that is given, and is another one.
	t = t.Clone()
	var changed []string
	move := func(field string, p **Place, to *Place) {
		if to == nil {
			return
		}
		to = to.clone()
		if to.Customer == nil && *p != nil {
			to.Customer = (*p).Customer
		}
		if *p == nil || !samePlace(**p, *to) {
			*p, changed = to, append(changed, field)
		}
	}
	move("pickup", &t.Pickup, u.Pickup)
	move("drop", &t.Drop, u.Drop)
	if u.Notes != nil && *u.Notes != t.Notes {
		t.Notes, changed = *u.Notes, append(changed, "notes")
	}
	if u.OrderID != nil && *u.OrderID != t.OrderID {
		t.OrderID, changed = *u.OrderID, append(changed, "order_id")
	}
	if u.Time != nil && !stamp(*u.Time).Equal(t.Time) {
		t.Time, changed = stamp(*u.Time), append(changed, "time")
	}
	if u.Window != nil && !u.Window.equal(t.Window) {
		if t.Window, changed = *u.Window, append(changed, "window"); t.Seeks() {
			t = t.sought(lead, now)
		}
	}
	if u.Promised != nil && !u.Promised.Equal(t.Promise) {
		t.Promise, changed = *u.Promised, append(changed, "promised")
	}
	if u.Requires != nil && !maps.Equal(u.Requires, t.Requires) {
		t.Requires, changed = maps.Clone(u.Requires), append(changed, "requires")
	}
	if u.Properties != nil && !maps.Equal(u.Properties, t.Properties) {
		t.Properties, changed = maps.Clone(u.Properties), append(changed, "properties")
	}
	if u.Proof != nil && !slices.Equal(u.Proof, t.Proof) {
		t, changed = t.asking(u.Proof), append(changed, "proof")
	}
	if changed != nil {
		t.UpdatedAt = now
	}
	return t, changed, nil
}

// NewTask describes a task to create.
type NewTask struct {
	Type       TaskType
	Pickup     *Place    // for Pickup and PickupAndDrop
	Drop       *Place    // for Drop and PickupAndDrop
	Customer   *Contact  // of every place that names none
	OrderID    string    // the caller's reference, up to 200 characters
	Notes      string    // for the driver, up to 4,000 characters
	Time       time.Time // zero: now
	AutoAssign bool      // find the nearest driver who may get it; else it waits for one

	Window   Window            // when it is to be done; To may not be before From
	Promised time.Time         // the time told to the customer, where the Window has no end; zero: none
	Requires map[string]string // of the driver's Properties, to get it automatically; limits as there

	Properties map[string]string // free-form, by key; limits as a driver's

	// Proof are the kinds of evidence that the driver must give to complete it as succeeded, each
	// once, in any order.
	Proof []ProofKind

	// Key makes creation safe to repeat: the same key with the same content gives the same task
	// again. 1 to 128 characters; "" for none.
	Key string
}

// normalize checks what is to be created, and gives each place its customer.
func (n *NewTask) normalize(geocodes bool) error {
	var c check
	if n.Type < TypePickup || n.Type > TypePickupAndDrop {
		c.fail("type", "must be 1 (pickup), 2 (drop) or 3 (pickup and drop).")
		return c.err
	}
	n.Pickup = c.side("pickup", n.Pickup, n.Type != TypeDrop, n.Customer)
	n.Drop = c.side("drop", n.Drop, n.Type != TypePickup, n.Customer)
	c.contact(n.Customer)
	c.line("order_id", n.OrderID, 200)
	c.text("notes", n.Notes, 4000)
	c.line("Idempotency-Key", n.Key, 128)
	c.time("time", n.Time)
	c.window(n.Window.stamped())
	c.time("promised", n.Promised)
	c.properties("requires", n.Requires)
	c.properties("properties", n.Properties)
	// the same moment in another zone is the same content
	n.Time, n.Window, n.Promised = stamp(n.Time), n.Window.stamped(), stamp(n.Promised)
	n.Proof = c.proof("proof", n.Proof)
	if c.err == nil && n.AutoAssign && !geocodes {
		if t := (Task{Type: n.Type, Pickup: n.Pickup, Drop: n.Drop}); t.Point() == nil {
			c.fail(t.pointField(), "is required with auto_assign.")
		}
	}
	return c.err
}

// side checks one of the two places, which the type uses or not, and returns it with its customer.
func (c *check) side(field string, p *Place, used bool, customer *Contact) *Place {
	switch {
	case used && p == nil:
		c.fail(field, "is required for this type of task.")
	case !used && p != nil:
		c.fail(field, "is not part of this type of task.")
	}
	c.place(field, p)
	if p = p.clone(); p != nil && p.Customer == nil {
		p.Customer = clonePtr(customer)
	}
	return p
}

// sumVersion is the version of the encoding whose hash an idempotency key is kept with. It is the
// first byte of the hash, so that the next version knows by what to compare a sum of this one.
const sumVersion = 2

// sum is the hash of the content, for its idempotency key. The encoding is its own, and not that of
// a Go type: a sequence of fields, each with a number of its own, that leaves out what is zero. So
// the same content has the same sum in a program that knows more fields, as long as they are zero.
// Numbers are never given anew. −0 is 0.
func (n NewTask) sum() Hash {
	var b content
	b.number(1, int64(n.Type))
	b.place(2, n.Pickup)
	b.place(3, n.Drop)
	b.contact(4, n.Customer)
	b.text(5, n.OrderID)
	b.text(6, n.Notes)
	b.time(7, n.Time)
	if n.AutoAssign {
		b.number(8, 1)
	}
	if n.Window != (Window{}) {
		var of content
		of.time(1, n.Window.From)
		of.time(2, n.Window.To)
		b.field(9, of)
	}
	b.time(10, n.Promised)
	b.texts(11, n.Requires)
	b.texts(12, n.Properties)
	for _, kind := range n.Proof {
		b.text(20, string(kind))
	}
	sum := Hash(sha256.Sum256(append([]byte{sumVersion}, b...)))
	sum[0] = sumVersion
	return sum
}

// content is a sequence of fields: a number, the length, and the value.
type content []byte

func (b *content) field(number byte, value []byte) {
	*b = append(*b, number)
	*b = binary.AppendUvarint(*b, uint64(len(value)))
	*b = append(*b, value...)
}

func (b *content) text(number byte, v string) {
	if v != "" {
		b.field(number, []byte(v))
	}
}

func (b *content) number(number byte, v int64) {
	if v != 0 {
		b.field(number, binary.AppendVarint(nil, v))
	}
}

func (b *content) time(number byte, t time.Time) {
	if !t.IsZero() {
		b.field(number, binary.BigEndian.AppendUint64(nil, uint64(t.UnixMilli())))
	}
}

func (b *content) texts(number byte, m map[string]string) {
	if len(m) == 0 {
		return
	}
	var of content
	for _, k := range slices.Sorted(maps.Keys(m)) {
		of.field(1, []byte(k))
		of.field(2, []byte(m[k])) // also when it is empty: it is there
	}
	b.field(number, of)
}

func (b *content) contact(number byte, c *Contact) {
	if c == nil {
		return
	}
	var of content
	of.text(1, c.Name)
	of.text(2, c.Mobile)
	b.field(number, of) // also when all in it is zero: it is there
}

func (b *content) place(number byte, p *Place) {
	if p == nil {
		return
	}
	var of content
	if p.LngLat != nil {
		point := make([]byte, 0, 16)
		for _, degrees := range []float64{p.LngLat.Lng, p.LngLat.Lat} {
			point = binary.BigEndian.AppendUint64(point, math.Float64bits(degrees+0)) // −0 + 0 = 0
		}
		of.field(1, point)
	}
	of.text(2, p.Address)
	of.contact(3, p.Customer)
	b.field(number, of) // also when all in it is zero: it is there
}

// formerSum is the sum as version 1 of the store had it, for the tasks that were created then: the
// hash of the JSON of what NewTask was. Those of today must not change this, so it has types of its
// own. It knows no field that came later: there is no such sum of content that has one.
func (n NewTask) formerSum() Hash {
	if n.Window != (Window{}) || !n.Promised.IsZero() || len(n.Requires) > 0 || len(n.Proof) > 0 ||
		len(n.Properties) > 0 {
		return Hash{}
	}
	type contact struct{ Name, Mobile string }
	type place struct {
		LngLat   *struct{ Lng, Lat float64 }
		Address  string
		Customer *contact
	}
	person := func(c *Contact) *contact {
		if c == nil {
			return nil
		}
		return &contact{c.Name, c.Mobile}
	}
	formerly := func(p *Place) *place {
		if p == nil {
			return nil
		}
		return &place{(*struct{ Lng, Lat float64 })(p.LngLat), p.Address, person(p.Customer)}
	}
	b, err := json.Marshal(struct {
		Type       TaskType
		Pickup     *place
		Drop       *place
		Customer   *contact
		OrderID    string
		Notes      string
		Time       time.Time
		AutoAssign bool
		Key        string
	}{
		n.Type, formerly(n.Pickup), formerly(n.Drop), person(n.Customer), n.OrderID, n.Notes, n.Time, n.AutoAssign,
		n.Key,
	})
	if err != nil {
		return Hash{} // what cannot be JSON was never created
	}
	return sha256.Sum256(b)
}

// Task reads one. Codes: ErrNotFound.
func (s *Service) Task(ctx context.Context, id TaskID) (t Task, err error) {
	defer s.observe(&ctx, "Task").end(&err)
	err = s.op(ctx, "Task", func(time.Time) (err error) { t, err = s.task(ctx, id); return err })
	return t, err
}

// Tasks lists what the filter lets pass, newest first unless it has another Sort, and tells whether
// there is a further page. That goes on with f.After: the [Task.Mark] of the last one. Codes:
// ErrInvalid.
func (s *Service) Tasks(ctx context.Context, f TaskFilter) (list []Task, more bool, err error) {
	defer s.observe(&ctx, "Tasks").end(&err)
	var c check
	c.page(&f.Page, 10)
	for _, st := range f.Status {
		if !slices.Contains([]TaskStatus{StatusCreated, StatusAssigned, StatusInProgress, StatusCompleted}, st) {
			c.fail("status", "takes created, assigned, in_progress and completed.")
		}
	}
	if n := utf8.RuneCountInString(f.Query); f.Query != "" && (n < 2 || n > 100) {
		c.fail("q", "must be 2 to 100 characters.")
	}
	c.text("q", f.Query, 100)
	if len(f.Properties) > 10 {
		c.fail("properties", "may be filtered by up to 10 at once.")
	}
	c.properties("properties", f.Properties)
	f.Sort = f.Order()
	if f.Sort != SortCreated && f.Sort != SortWindow {
		c.fail("sort", "takes created and window.")
	}
	if f.After != nil && f.After.Sort != f.Sort {
		c.fail("after", "is of a list in another order.")
	}
	if f.After != nil && f.Number > 1 {
		c.fail("page", "must be left out with after.")
	}
	if c.err != nil {
		return nil, false, c.err
	}
	if f.DriverID != "" && !lookup(string(f.DriverID)) || f.OrderID != "" && !lookup(f.OrderID) {
		return nil, false, nil
	}
	err = s.op(ctx, "Tasks", func(now time.Time) (err error) {
		f.Now = now
		list, more, err = s.store.Tasks(ctx, s.app, f)
		return err
	})
	return list, more, err
}

// TaskCounts counts the application's tasks: the open ones by state, those that wait, those that
// are late, and by outcome those completed since a time; the zero time is 24 hours ago.
func (s *Service) TaskCounts(ctx context.Context, since time.Time) (n TaskCounts, err error) {
	defer s.observe(&ctx, "TaskCounts").end(&err)
	err = s.op(ctx, "TaskCounts", func(now time.Time) (err error) {
		q := CountQuery{Now: now, CompletedSince: since}
		if since.IsZero() {
			q.CompletedSince = now.Add(-24 * time.Hour)
		}
		n, err = s.store.TaskCounts(ctx, s.app, q)
		return err
	})
	return n, err
}

// Candidates lists the drivers of the application by how near they are to a task, then those
// without a position, each with whether the task could come to him automatically, and why not; and
// why the task waits, nil if it does not. By hand it may be given to any of them. Limit is at most
// 1000; 0 means 10. Nothing of it is kept: it is worked out by what is known now. Codes:
// ErrInvalid, ErrNotFound.
func (s *Service) Candidates(ctx context.Context, id TaskID, limit int) (list []Candidate, waits *Waits, err error) {
	defer s.observe(&ctx, "Candidates").end(&err)
	if limit < 0 || limit > 1000 {
		return nil, nil, invalid("limit", "must be from 1 to 1000.")
	}
	defaultTo(&limit, 10)
	err = s.op(ctx, "Candidates", func(now time.Time) error {
		t, err := s.task(ctx, id)
		if err != nil {
			return err
		}
		if waits, err = s.waits(ctx, t, now); err != nil {
			return err
		}
		drivers, err := s.driversFor(ctx, t, limit)
		list = make([]Candidate, len(drivers))
		for i, d := range drivers {
			list[i] = Candidate{Driver: d, Fit: t.fit(d, &s.opts, now)}
			if t.Point() != nil && d.Position.Located() {
				list[i].Distance = &drivers[i].Distance
			}
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return list, waits, nil
}

// driversFor lists drivers, the nearest to a task first and those without a position last.
func (s *Service) driversFor(ctx context.Context, t Task, limit int) (list []Driver, err error) {
	if near := t.Point(); near != nil {
		list, _, err = s.store.Drivers(ctx, s.app, DriverFilter{Page: Page{Limit: limit}, Near: near})
		if err != nil || len(list) == limit {
			return list, err
		}
	}
	// Those with a position are in the list already, and so many at most are passed over.
	all, _, err := s.store.Drivers(ctx, s.app, DriverFilter{Page: Page{Limit: limit + len(list)}})
	known := map[DriverID]bool{}
	for _, d := range list {
		known[d.ID] = true
	}
	for _, d := range all {
		if !known[d.ID] && len(list) < limit {
			list = append(list, d)
		}
	}
	return list, err
}

// fit says whether d could get the task automatically at now.
func (t Task) fit(d Driver, opts *Options, now time.Time) Fit {
	_, excluded := slices.BinarySearch(t.Excluded, d.ID)
	switch {
	case !d.Available:
		return FitOffDuty
	case !d.Position.Located():
		return FitNoPosition
	case d.Silent, d.Position.SeenAt.Before(now.Add(-opts.MaxFixAge)):
		return FitSilent
	case !d.Meets(t.Requires):
		return FitUnfit
	case excluded:
		return FitExcluded
	case opts.MaxAssignDistance > 0 && d.Distance > opts.MaxAssignDistance:
		return FitTooFar
	case d.Full(opts.MaxOpenTasks), len(d.Route)+len(t.legs()) > MaxStops:
		return FitBusy
	}
	return FitYes
}

// Waits says why each of some tasks waits, at its place; nil where one does not. It is what
// [Service.Candidates] says of one, for a list of up to 1000, as [Service.Tasks] returns it. Codes:
// ErrInvalid.
func (s *Service) Waits(ctx context.Context, tasks []Task) (waits []*Waits, err error) {
	defer s.observe(&ctx, "Waits").end(&err)
	if len(tasks) > 1000 {
		return nil, invalid("tasks", "has more than 1000 entries.")
	}
	err = s.op(ctx, "Waits", func(now time.Time) (err error) {
		waits = make([]*Waits, len(tasks))
		var nobody WaitReason // why nobody could have any task at all
		for i, t := range tasks {
			w := s.sinceWhen(t, now)
			switch {
			case w == nil || w.Reason != "":
			case nobody != "":
				w.Reason = nobody
			default:
				if w, err = s.waits(ctx, t, now); err != nil {
					return err
				}
				if w.Reason == WaitNoDriver || w.Reason == WaitSilent {
					nobody = w.Reason
				}
			}
			waits[i] = w
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return waits, nil
}

// Waits says since when the task waits for a driver; nil: it does not. Why is there only where that
// needs no look at the drivers (WaitWindow, WaitNoPoint); else [Service.Waits] says so.
func (t Task) Waits(now time.Time) *Waits {
	if !t.Seeks() {
		return nil
	}
	t, _ = t.begun(now)
	w := &Waits{Since: t.WaitsSince}
	defaultTo(&w.Since, t.CreatedAt)
	w.Since = earlier(w.Since, now)
	switch {
	case !t.Waiting:
		w.Reason = WaitWindow
	case t.Point() == nil:
		w.Reason = WaitNoPoint
	}
	return w
}

// sinceWhen is Task.Waits of a task as it will be once anybody looks after it: one that a wrong clock
// has begun to look for too early waits for its time.
func (s *Service) sinceWhen(t Task, now time.Time) *Waits {
	t, _ = t.begun(now)
	if later := t.sought(s.opts.AssignLead, now); t.Waiting && ahead(later.AssignAt, now) {
		t = later
	}
	return t.Waits(now)
}

// waits says why a task waits; nil: it does not. It asks for one driver at a time: who would be
// offered the task if he were free, then if he were near, and so on in the order of Fit.
func (s *Service) waits(ctx context.Context, t Task, now time.Time) (*Waits, error) {
	w := s.sinceWhen(t, now)
	if w == nil || w.Reason != "" {
		return w, nil
	}
	o := Offer{
		At: *t.Point(), Full: true, SeenSince: now.Add(-s.opts.MaxFixAge), Within: s.opts.MaxAssignDistance,
		Requires: t.Requires, Exclude: t.Excluded, Limit: 1,
	}
	for _, step := range []struct {
		reason WaitReason
		given  bool // there is something of the kind that can be in the way
		after  func()
	}{
		{WaitBusy, true, func() { o.Within = 0 }},
		{WaitTooFar, o.Within > 0, func() { o.Exclude = nil }},
		{WaitExcluded, len(o.Exclude) > 0, func() { o.Requires = nil }},
		{WaitUnfit, len(o.Requires) > 0, func() {}},
	} {
		if step.given {
			list, err := s.store.Offers(ctx, s.app, o)
			if err != nil || len(list) > 0 {
				w.Reason = step.reason
				return w, err
			}
		}
		step.after()
	}
	onDuty, _, err := s.store.Drivers(ctx, s.app, DriverFilter{Page: Page{Limit: 1}, Available: new(true)})
	if w.Reason = WaitNoDriver; len(onDuty) > 0 {
		w.Reason = WaitSilent
	}
	return w, err
}

// CreateTask creates a task. With AutoAssign it comes back assigned when there was a driver for it,
// and else waits for one. Codes: ErrInvalid; ErrConflict when n.Key was used with other content.
func (s *Service) CreateTask(ctx context.Context, n NewTask) (_ Task, err error) {
	defer s.observe(&ctx, "CreateTask").end(&err)
	if err := n.normalize(s.opts.Geocoder != nil); err != nil {
		return Task{}, err
	}
	var sum Hash
	if n.Key != "" {
		sum = n.sum()
	}
	var t Task
	err = s.change(ctx, verb{name: "CreateTask"}, func(c *change) (err error) {
		if n.Key != "" {
			var repeated bool
			if t, repeated, err = c.createdBefore(ctx, n, sum); repeated || err != nil {
				return err
			}
		}
		if t, err = c.newTask(ctx, n, sum); err != nil {
			return err
		}
		return c.putNew(ctx, &t, n.AutoAssign)
	}, func(c *change) { c.asKept(&t) })
	if err != nil {
		return Task{}, err
	}
	return t, nil
}

// TaskResult is what became of one of many: the task, or why there is none.
type TaskResult struct {
	Task Task
	Err  error
}

// MaxTasks is how many tasks CreateTasks takes.
const MaxTasks = 500

// CreateTasks creates tasks, one after the other, as CreateTask does: each is created or not, whatever
// becomes of the others, and has its result at its place. With a Key each, all of them can be asked
// for again. Codes: ErrInvalid where there are more than MaxTasks.
func (s *Service) CreateTasks(ctx context.Context, list []NewTask) (_ []TaskResult, err error) {
	defer s.observe(&ctx, "CreateTasks").end(&err)
	if len(list) > MaxTasks {
		return nil, invalid("tasks", fmt.Sprintf("has more than %d entries.", MaxTasks))
	}
	results := make([]TaskResult, len(list))
	for i, n := range list {
		results[i].Task, results[i].Err = s.CreateTask(ctx, n)
	}
	return results, nil
}

// putNew puts in a task that is created now, and makes it what it is then: with auto it goes to a driver,
// or waits for one.
func (c *change) putNew(ctx context.Context, t *Task, auto bool) error {
	c.event(t.subject(), "", c.now, TaskCreatedData{t.RetryOf})

	// A driver for it, if nobody comes before it. Else it goes behind those who wait, whom
	// AssignWaiting serves.
	if auto {
		*t = t.sought(c.opts.AssignLead, c.now)
	}
	if t.Waiting && t.Point() != nil && c.tx == nil {
		k, err := c.claim(ctx, t)
		if err != nil {
			return err
		}
		if k.driver != nil {
			return c.assignTo(ctx, t, k.driver)
		}
	}
	return c.putTask(ctx, &Task{}, t) // a driver may have come free between the look and the commit
}

// maxTries is how many tasks there can be that each try the one before again.
const maxTries = 100

// Retry says when a task is tried again.
type Retry struct {
	Window   Window    // of the new task; zero: none
	Promised time.Time // the time told to the customer where the Window has no end; zero: none
}

func (r Retry) check() error {
	var c check
	c.window(r.Window.stamped())
	c.time("promised", r.Promised)
	return c.err
}

// RetryTask creates a task with the content of one that failed or was cancelled: type, places with
// their contacts, notes, order id, what it requires and the proof that it asks for. It is for now,
// and begins anew in all else: nobody is excluded from it, and it has no idempotency key, no
// customer's note, and only the window and promise given here. It goes to drivers automatically if
// the first one did when it ended: if it waited, or nobody had chosen its driver by hand.
//
// From then on the links of the first task show the new one, and live as it does. A task is tried
// again once: repeated, the same task comes back, as it is now. Codes: ErrInvalid, ErrNotFound;
// ErrConflict when it has not ended, has succeeded, or is the 100th try.
func (s *Service) RetryTask(ctx context.Context, id TaskID, r Retry) (_ Task, err error) {
	defer s.observe(&ctx, "RetryTask").end(&err)
	if err := r.check(); err != nil {
		return Task{}, err
	}
	var t Task
	// Without a lock: claim takes its driver's, and who holds one could wait for himself there.
	err = s.change(ctx, verb{name: "RetryTask"}, func(c *change) error {
		first, err := s.task(ctx, id)
		if err == nil {
			err = s.expected(first.Version)
		}
		if err != nil {
			return err
		}
		next, tried, err := s.nextTry(ctx, first)
		if err != nil {
			return err
		}
		if !tried {
			first.RetriedBy = "" // who tried it again is no longer there
		}

		// The new row, and whether there is to be one.
		n := first.anew()
		n.Window, n.Promised = r.Window.stamped(), stamp(r.Promised)
		if t, err = c.newTask(ctx, n, Hash{}); err != nil {
			return err
		}
		after, changed, err := first.retried(t.ID, c.now)
		if err != nil {
			return err
		}
		if !changed {
			t = next
			return nil
		}
		if err := s.mayTryAgain(ctx, first); err != nil {
			return err
		}
		t.RetryOf = first.ID

		// Both in one step.
		c.event(first.subject(), "", c.now, TaskRetriedData{t.ID})
		if err := c.putTask(ctx, &first, &after); err != nil {
			return err
		}
		return c.putNew(ctx, &t, n.AutoAssign)
	}, func(c *change) { c.asKept(&t) })
	if err != nil {
		return Task{}, err
	}
	return t, nil
}

// nextTry reads the task that t is tried again as; tried is false if there is none.
func (s *Service) nextTry(ctx context.Context, t Task) (next Task, tried bool, err error) {
	if t.RetriedBy == "" {
		return Task{}, false, nil
	}
	next, err = s.store.Task(ctx, s.app, t.RetriedBy)
	if errors.Is(err, ErrNotFound) {
		return Task{}, false, nil
	}
	return next, err == nil, err
}

// lastTry reads the task that t is tried again as in the end, or t itself.
func (s *Service) lastTry(ctx context.Context, t Task) (Task, error) {
	for range maxTries {
		next, tried, err := s.nextTry(ctx, t)
		if !tried || err != nil {
			return t, err
		}
		t = next
	}
	return t, nil
}

// earlierTries reads the tasks that t tries again, the last one first.
func (s *Service) earlierTries(ctx context.Context, t Task) (list []Task, err error) {
	for t.RetryOf != "" && len(list) < maxTries {
		t, err = s.store.Task(ctx, s.app, t.RetryOf)
		if errors.Is(err, ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return list, nil
}

// mayTryAgain checks that there is a try left: links follow no more than that.
func (s *Service) mayTryAgain(ctx context.Context, t Task) error {
	tries, err := s.earlierTries(ctx, t)
	if err == nil && len(tries)+1 >= maxTries {
		err = conflict(fmt.Sprintf("This is the %dth try, and the last there can be; create a new task.", maxTries))
	}
	return err
}

// createdBefore finds the task that was created with the same key, and refuses other content.
func (c *change) createdBefore(ctx context.Context, n NewTask, sum Hash) (was Task, found bool, err error) {
	was, err = c.store.TaskByKey(ctx, c.app, n.Key)
	switch {
	case errors.Is(err, ErrNotFound):
		return Task{}, false, nil
	case err == nil && was.KeySum != sum && was.KeySum != n.formerSum():
		err = &Error{
			Code: ErrConflict, Field: "Idempotency-Key",
			Message: "This key was used for a task with other content.",
		}
	}
	return was, err == nil, err
}

// newTask is the row of a task that is created now. It has n's places.
func (c *change) newTask(ctx context.Context, n NewTask, sum Hash) (t Task, err error) {
	t = Task{
		ID: TaskID(c.ids.next(c.now)), Type: n.Type, Status: StatusCreated, Time: stamp(n.Time), Notes: n.Notes,
		OrderID: n.OrderID, Pickup: n.Pickup, Drop: n.Drop, Key: n.Key,
		Window: n.Window, Promise: n.Promised, CreatedAt: c.now, UpdatedAt: c.now,
	}
	if len(n.Requires) > 0 {
		t.Requires = maps.Clone(n.Requires)
	}
	if len(n.Properties) > 0 {
		t.Properties = maps.Clone(n.Properties)
	}
	if n.Key != "" {
		t.KeySum = sum
	}
	if t = t.asking(n.Proof); t.lacksPIN() {
		t.PIN = c.newPIN()
	}
	defaultTo(&t.Time, c.now)
	if t.lacksPoint() && c.opts.Geocoder != nil {
		t.GeocodeAt = c.now
	}
	t.Link, err = c.newLink(ctx, t.subject(), Link{}, c.now)
	return t, err
}

// newPIN is 4 digits.
func (c *core) newPIN() Secret { return Secret(fmt.Sprintf("%04d", c.ids.below(10_000))) }

// AssignTask gives a task to a driver, who is told; so is the one who had it. Any driver of the
// application may get it, on duty or off, free or full. To the same driver again changes nothing. A
// task that was given by hand waits for nobody when it is declined. Codes: ErrNotFound; ErrConflict
// when it is completed, in progress with another, for which there is [Service.ForceAssignTask], or
// the driver's route is full.
func (s *Service) AssignTask(ctx context.Context, id TaskID, driver DriverID) (_ Task, err error) {
	defer s.observe(&ctx, "AssignTask").end(&err)
	return s.assign(ctx, Assignment{Task: id, Driver: driver})
}

// ForceAssignTask gives a task to a driver as [Service.AssignTask] does, also when it is in progress
// with another: in the same step its trip is stopped. Whoever gets it begins it anew. Codes:
// ErrNotFound; ErrConflict when it is completed, or the driver's route is full.
func (s *Service) ForceAssignTask(ctx context.Context, id TaskID, driver DriverID) (_ Task, err error) {
	defer s.observe(&ctx, "ForceAssignTask").end(&err)
	return s.assign(ctx, Assignment{Task: id, Driver: driver, Force: true})
}

// Assignment says who is to have a task.
type Assignment struct {
	Task   TaskID
	Driver DriverID
	Force  bool // also when it is in progress with another, as [Service.ForceAssignTask]

	// Stops is the order that the driver's stops are to have then, those of the task among them; nil:
	// they come last.
	Stops []Stop
}

// Assign gives a task to a driver as [Service.AssignTask] does, there where it is to come among his
// stops. It is one change, of which he is told once. He who has the task already has his stops put
// in that order, as by [Service.SetRoute]. Codes: as AssignTask; ErrInvalid for a leg that there is
// not, and ErrConflict when Stops are not those that he would have.
func (s *Service) Assign(ctx context.Context, a Assignment) (_ Task, err error) {
	defer s.observe(&ctx, "Assign").end(&err)
	if err := checkStops(a.Stops); err != nil {
		return Task{}, err
	}
	return s.assign(ctx, a)
}

func (s *Service) assign(ctx context.Context, a Assignment) (Task, error) {
	v := verb{name: "AssignTask", locks: []Subject{a.Driver.subject()}}
	return s.changeTask(ctx, v, a.Task, func(c *change, t Task) (Task, bool, error) {
		d, err := c.named(ctx, a.Driver)
		if err != nil {
			return t, false, err
		}
		rule := Task.assignedByHand
		if a.Force {
			rule = Task.reassigned
		}
		next, changed, err := rule(t, d, c.now)
		if err != nil {
			return next, false, err
		}
		if a.Stops != nil {
			mine := routed(d.Route, t.ID, next.legs(), false)
			if !changed && slices.Equal(mine, a.Stops) {
				return next, false, nil
			}
			if err := reordered(mine, a.Stops); err != nil {
				return t, false, err
			}
			if d, err = c.inOrder(ctx, d, a.Stops); err != nil {
				return t, false, err
			}
			if !changed {
				c.routed(d)
			}
		} else if !changed {
			return next, false, nil
		}
		// putTask changes the route, at the version that the rule has looked at
		c.cs.Drivers = append(c.cs.Drivers, d)
		if changed {
			c.assigned(&t, &next)
			_, err = c.endTaskTrip(ctx, t, TripStopped, c.now)
		}
		return next, changed, err
	})
}

// HandOverRequest says which tasks of a driver another one is to have.
type HandOverRequest struct {
	From, To DriverID
	Tasks    []TaskID // nil: all that are open; else 1 to 1,000 of them
	Force    bool     // also those in progress
}

func (h HandOverRequest) check() error {
	var c check
	if h.From == "" {
		c.fail("from", "is required.")
	}
	if h.To == "" {
		c.fail("to", "is required.")
	}
	if h.From == h.To {
		c.fail("to", "must be another driver than from.")
	}
	if h.Tasks != nil && len(h.Tasks) == 0 {
		c.fail("task_ids", "must name a task; leave it out for all of them.")
	}
	if len(h.Tasks) > MaxStops {
		c.fail("task_ids", "must not have more than 1,000 ids.")
	}
	return c.err
}

// HandOver gives the open tasks of one driver to another, all or none of them: those named, or all.
// They come at the end of the other's route, their stops in the order that they had; what was
// started or picked up is begun anew. Each is assigned as by [Service.AssignTask], those in progress
// as by [Service.ForceAssignTask] and only with Force, and whoever had them is told of each; the
// other is told once. Those named that the other has already stay as they are. It returns them, in
// the order of the other's route. Codes: ErrInvalid; ErrNotFound when there is no such driver or
// task; ErrConflict when a task that is named is not open with one of the two, one is in progress
// and Force is not set, or the other's route is full.
func (s *Service) HandOver(ctx context.Context, h HandOverRequest) (list []Task, err error) {
	defer s.observe(&ctx, "HandOver").end(&err)
	if err := h.check(); err != nil {
		return nil, err
	}
	v := verb{name: "HandOver", locks: []Subject{h.From.subject(), h.To.subject()}}
	err = s.change(ctx, v, func(c *change) (err error) { list, err = c.handOver(ctx, h); return err })
	if err != nil {
		return nil, err
	}
	return list, nil
}

// handOver puts in that tasks go from one driver to another.
func (c *change) handOver(ctx context.Context, h HandOverRequest) (list []Task, err error) {
	from, err := c.named(ctx, h.From)
	if err != nil {
		return nil, orNotFound(err, "from", "driver")
	}
	to, err := c.named(ctx, h.To)
	if err != nil {
		return nil, orNotFound(err, "to", "driver")
	}
	list, err = c.toHandOver(ctx, h)
	if err != nil {
		return nil, err
	}
	going, underWay := map[TaskID]bool{}, 0
	for _, t := range list {
		if t.DriverID == from.ID {
			going[t.ID] = true
			if t.Status == StatusInProgress {
				underWay++
			}
		}
	}
	if underWay > 0 && !h.Force {
		return nil, conflict(fmt.Sprintf("The driver has %s in progress; hand over with force, or only the others.",
			count(underWay, "task")))
	}

	// The stops go over in their order, where putTask finds those of each task.
	to.Route = slices.Clone(to.Route)
	for _, s := range from.Route {
		if going[s.TaskID] {
			to.Route = append(to.Route, s)
		}
	}
	if len(going) > 0 {
		c.cs.Drivers = []Driver{from, to}
	}
	place := map[TaskID]int{}
	for i, s := range slices.Backward(to.Route) {
		place[s.TaskID] = i
	}
	slices.SortStableFunc(list, func(a, b Task) int { return cmp.Compare(place[a.ID], place[b.ID]) })

	together := c.ids.next(c.now)
	for i, t := range list {
		if !going[t.ID] {
			continue
		}
		t = t.asTold(c.now)
		next, _, err := t.reassigned(to, c.now)
		if err != nil {
			return nil, err
		}
		c.event(t.subject(), next.Person, c.now, TaskAssignedData{
			DriverID: to.ID, PreviousDriverID: from.ID, Handover: together,
		})
		c.tell(Notice{DriverID: from.ID, Kind: NoticeUnassigned, TaskID: t.ID})
		if len(c.cs.Tasks) == 0 {
			c.tell(Notice{DriverID: to.ID, Kind: NoticeHandedOver})
		}
		if err := c.putTask(ctx, &t, &next); err != nil {
			return nil, err
		}
		if _, err := c.endTaskTrip(ctx, t, TripStopped, c.now); err != nil {
			return nil, err
		}
		list[i] = next
		c.kept = append(c.kept, func() { c.asKept(&list[i]) })
	}
	if len(going) > 0 && len(c.cs.Drivers[1].Route) > MaxStops {
		return nil, errFullRoute
	}
	return list, nil
}

// toHandOver reads the tasks that are to be handed over, and those named that need not be. What
// changes meanwhile changes the driver's route too, and then this is done anew.
func (c *change) toHandOver(ctx context.Context, h HandOverRequest) ([]Task, error) {
	open, err := c.openTasks(ctx, h.From)
	if err != nil || h.Tasks == nil {
		return open, err
	}
	of := map[TaskID]Task{}
	for _, t := range open {
		of[t.ID] = t
	}
	var list []Task
	named := map[TaskID]bool{}
	for _, id := range h.Tasks {
		if named[id] {
			continue
		}
		named[id] = true
		t, ok := of[id]
		if !ok {
			if t, err = c.task(ctx, id); err != nil {
				return nil, orNotFound(err, "task_ids", "task")
			}
		}
		if !t.Open() || t.DriverID != h.From && t.DriverID != h.To {
			return nil, &Error{
				Code: ErrConflict, Field: "task_ids",
				Message: "task_ids names a task that the driver does not have, or not open.",
			}
		}
		list = append(list, t)
	}
	return list, nil
}

// UnassignTask takes a task from its driver, who is told; a trip of it ends. It then waits for
// nobody, also when it was made with AutoAssign: assign it by hand. A waiting task waits no longer.
// Codes: ErrNotFound; ErrConflict when it is completed.
func (s *Service) UnassignTask(ctx context.Context, id TaskID) (_ Task, err error) {
	defer s.observe(&ctx, "UnassignTask").end(&err)
	return s.changeTask(ctx, verb{name: "UnassignTask"}, id, func(c *change, t Task) (Task, bool, error) {
		next, changed, err := t.unassigned(c.now)
		if err != nil || !t.Open() { // nobody outside sees that it waits no longer
			return next, changed, err
		}
		c.event(t.subject(), t.Person, c.now, TaskUnassignedData{t.DriverID})
		c.tell(Notice{DriverID: t.DriverID, Kind: NoticeUnassigned, TaskID: t.ID})
		_, err = c.endTaskTrip(ctx, t, TripStopped, c.now)
		return next, changed, err
	})
}

// UpdateTask changes a task; a driver who has it is told. While it is in progress only its notes,
// its drop, its window and what was promised can be changed. Codes: ErrInvalid, ErrNotFound,
// ErrConflict.
func (s *Service) UpdateTask(ctx context.Context, id TaskID, u TaskUpdate) (_ Task, err error) {
	defer s.observe(&ctx, "UpdateTask").end(&err)
	if err := u.normalize(); err != nil {
		return Task{}, err
	}
	return s.changeTask(ctx, verb{name: "UpdateTask"}, id, func(c *change, t Task) (Task, bool, error) {
		next, fields, err := t.updated(u, c.opts.AssignLead, c.now)
		if err != nil || fields == nil {
			return t, false, err
		}
		if next.lacksPIN() {
			next.PIN = c.newPIN()
		}
		next = next.leadsElsewhere(t, c.opts.ArrivalRadius)
		if next.lacksPoint() {
			if (next.Seeks() || next.AutoAssigned) && next.Point() == nil && s.opts.Geocoder == nil {
				return t, false, invalid(t.pointField(), "is required for a task that goes to drivers automatically.")
			}
			if s.opts.Geocoder != nil {
				next.GeocodeAt = c.now
			}
		}
		c.updated(t, fields)
		return next, true, nil
	})
}

// updated puts in the event that these fields of a task have changed.
func (c *change) updated(t Task, fields []string) {
	c.event(t.subject(), "", c.now, TaskUpdatedData{fields})
	if t.Open() {
		c.tell(Notice{DriverID: t.DriverID, Kind: NoticeUpdated, TaskID: t.ID})
	}
}

// Reasons are the words that a [Reason] may have: the usual ones, and Options.Reasons.
func (s *Service) Reasons() []ReasonCode { return slices.Concat(usualReasons, s.opts.Reasons) }

// CancelTask ends a task as cancelled; a driver who has it is told, a trip of it ends. Repeating it
// changes nothing. Codes: ErrInvalid, ErrNotFound; ErrConflict when it has ended otherwise.
func (s *Service) CancelTask(ctx context.Context, id TaskID, why Reason) (_ Task, err error) {
	defer s.observe(&ctx, "CancelTask").end(&err)
	var c check
	c.reason(why, s.Reasons())
	if c.err != nil {
		return Task{}, c.err
	}
	return s.endTask(ctx, verb{name: "CancelTask"}, id, Completion{Outcome: OutcomeCancelled, Reason: why}, Step{})
}

// Completion says how a task ended, and what proves it besides files.
type Completion struct {
	Outcome    Outcome // succeeded or failed; "" means succeeded
	Reason     Reason  // also of one that succeeded, as when a box was damaged; its link tells nothing of it
	ReceivedBy string  // who took it, up to 200 characters; "" leaves what was noted before
	Note       string  // for the application, up to 1,000 characters; "" leaves what was noted before
	PIN        Secret  // 4 digits, as the customer has told the driver; of no use to the application
}

func (c *Completion) normalize(words []ReasonCode) error {
	defaultTo(&c.Outcome, OutcomeSucceeded)
	var k check
	if c.Outcome != OutcomeSucceeded && c.Outcome != OutcomeFailed {
		k.fail("outcome", "must be succeeded or failed.")
	}
	k.reason(c.Reason, words)
	k.text("received_by", c.ReceivedBy, 200)
	k.text("note", c.Note, 1000)
	if c.PIN != "" && (len(c.PIN) != 4 || strings.Trim(string(c.PIN), "0123456789") != "") {
		k.fail("pin", "must be 4 digits.")
	}
	return k.err
}

// CompleteTask ends a task from any open state, on behalf of the application, and whatever proof
// it asks for; a driver who has it is told, a trip of it ends. Repeating it with the same outcome
// changes nothing. Codes: ErrInvalid, ErrNotFound; ErrConflict when it has ended otherwise.
func (s *Service) CompleteTask(ctx context.Context, id TaskID, c Completion) (_ Task, err error) {
	defer s.observe(&ctx, "CompleteTask").end(&err)
	if err := c.normalize(s.Reasons()); err != nil {
		return Task{}, err
	}
	return s.endTask(ctx, verb{name: "CompleteTask"}, id, c, Step{})
}

// FinishTask ends a task at its driver's word; its trip ends with it. To succeed it needs what
// [Task].Proof asks for; a wrong PIN is counted, and after 10 of them none is taken any more.
// Codes: ErrInvalid; ErrNotFound when it is another driver's; ErrConflict when it is not in
// progress, has ended otherwise, or lacks proof, which Field names: proof, received_by, pin.
func (s *Service) FinishTask(ctx context.Context, driver DriverID, id TaskID, c Completion, step Step,
) (_ Task, err error) {
	defer s.observe(&ctx, "FinishTask").end(&err)
	if err := first(step.check(), c.normalize(s.Reasons())); err != nil {
		return Task{}, err
	}
	if driver == "" {
		return Task{}, notFound("task_id", "task")
	}
	return s.endTask(ctx, verb{name: "FinishTask", driver: driver}, id, c, step)
}

// endTask completes a task, with the word of its driver if there is one.
func (s *Service) endTask(ctx context.Context, v verb, id TaskID, how Completion, step Step) (Task, error) {
	var refused error
	t, err := s.changeTask(ctx, v, id, func(c *change, t Task) (Task, bool, error) {
		next, changed, err := t.completed(v.driver, how, step.At, c.now)
		if refused = nil; err == errWrongPIN {
			refused = err
			t.WrongPINs++ // which is written, and nothing else
			return t, true, nil
		}
		if err != nil || !changed {
			return t, false, err
		}
		if t.Status == StatusInProgress && how.Outcome != OutcomeCancelled {
			if next.CompletedFrom, err = c.whereabouts(ctx, next, step); err != nil {
				return t, false, err
			}
		}
		c.event(t.subject(), t.Person, next.CompletedAt, TaskCompletedData{t.DriverID, how.Outcome, how.Reason.Code})
		switch {
		case v.driver != "":
			c.step(v.driver, step, next.CompletedAt)
		case t.Open() && how.Outcome == OutcomeCancelled:
			c.tell(Notice{DriverID: t.DriverID, Kind: NoticeCancelled, TaskID: t.ID})
		case t.Open():
			c.tell(Notice{DriverID: t.DriverID, Kind: NoticeUpdated, TaskID: t.ID})
		}
		_, err = c.endTaskTrip(ctx, t, TripStopped, next.CompletedAt)
		return next, true, err
	})
	if err = first(err, refused); err != nil {
		return Task{}, err
	}
	return t, nil
}

// whereabouts is where the driver of a task that is completed now was then: where the step says,
// else at his newest good fix that was not older than MaxFixAge; nil where that is not known.
func (c *change) whereabouts(ctx context.Context, t Task, step Step) (*Whereabouts, error) {
	if step.LngLat != nil {
		return t.completedAt(*step.LngLat, "driver"), nil
	}
	to := t.CompletedAt
	if to.Equal(c.now) {
		to = to.Add(maxAhead) // by the clock of a phone
	}
	f, ok, err := c.edgeFix(ctx, t.DriverID, FixRange{
		Person: t.Person, From: t.CompletedAt.Add(-c.opts.MaxFixAge), To: to, Newest: true,
	})
	if err != nil || !ok {
		return nil, err
	}
	return t.completedAt(f.LngLat, "last_fix"), nil
}

// NewProof is a file that a driver gives as evidence.
type NewProof struct {
	Kind ProofKind // photo or signature
	Type string    // image/jpeg, image/png or image/webp, which Data begins like
	Data []byte    // 1 byte to MaxProofSize
}

// imageStarts are what the bytes of each media type begin with; any byte may stand for a question
// mark.
var imageStarts = map[string]string{
	"image/jpeg": "\xff\xd8\xff", "image/png": "\x89PNG\r\n\x1a\n", "image/webp": "RIFF????WEBP",
}

func (n NewProof) check() error {
	if n.Kind != ProofPhoto && n.Kind != ProofSignature {
		return invalid("kind", "must be photo or signature.")
	}
	if len(n.Data) > MaxProofSize {
		return &Error{Code: ErrTooLarge, Message: "The file is larger than 2 MiB."}
	}
	start, known := imageStarts[n.Type]
	known = known && len(n.Data) >= len(start)
	for i := 0; known && i < len(start); i++ {
		known = start[i] == '?' || start[i] == n.Data[i]
	}
	if !known {
		return invalid("type", "must be image/jpeg, image/png or image/webp, and what the bytes are.")
	}
	return nil
}

// AddProof keeps a file that a task's driver gives as evidence, asked for or not: while the task is
// in progress, and for 24 hours after its end has reached us. The same bytes again are the same
// proof. What is inside is the caller's: of httpadapter, nothing but the picture. It writes
// task.updated with data.fields proofs.
//
// Codes: ErrInvalid; ErrTooLarge; ErrNotFound when it is another driver's; ErrConflict when the
// task is not in progress, was completed too long ago, has 10 files, or files are kept nowhere;
// ErrUnavailable when [Files] fails, and then nothing is kept.
func (s *Service) AddProof(ctx context.Context, driver DriverID, id TaskID, n NewProof) (_ Task, _ Proof, err error) {
	defer s.observe(&ctx, "AddProof").end(&err)
	if err := n.check(); err != nil {
		return Task{}, Proof{}, err
	}
	files := s.files()
	if files == nil {
		return Task{}, Proof{}, conflict("Files are not kept here.")
	}
	p := Proof{Kind: n.Kind, Type: n.Type, Size: len(n.Data), Sum: sha256.Sum256(n.Data)}

	// Whether it may be given, and is not there yet, is looked at before its bytes go anywhere.
	v := verb{name: "AddProof", driver: driver}
	t, err := s.changeTask(ctx, v, id, func(c *change, t Task) (Task, bool, error) {
		_, found, changed, err := t.proved(driver, p, c.now)
		if err == nil && !changed {
			p = found
		}
		return t, false, err
	})
	if err != nil || p.ID != "" {
		return t, p, err
	}

	// The bytes first, then the row: whoever reads its name finds the file. An id of its own for
	// each try, so that what one takes back is nobody else's.
	put := s.now()
	p.ID, p.At = s.ids.next(put), put
	err = s.withFiles(ctx, "AddProof", func(ctx context.Context) error {
		return files.Put(ctx, s.app, p.ID, File{TaskID: id, Type: p.Type, At: put, Data: n.Data})
	})
	if err != nil {
		s.dropFile(ctx, files, p.ID)
		return Task{}, Proof{}, err
	}
	given := p
	t, err = s.changeTask(ctx, v, id, func(c *change, t Task) (Task, bool, error) {
		next, found, changed, err := t.proved(driver, p, c.now)
		if given = found; err == nil && changed {
			c.event(t.subject(), "", c.now, TaskUpdatedData{[]string{"proofs"}})
			c.heard(driver)
		}
		return next, changed, err
	})
	if err == nil && given.ID != p.ID || err != nil && !errors.Is(err, ErrUnavailable) {
		s.dropFile(ctx, files, p.ID) // of what is not known to have failed, the row may name it
	}
	if err != nil {
		return Task{}, Proof{}, err
	}
	return t, given, nil
}

// ReadProof reads a file that was given as evidence for a task. Codes: ErrNotFound.
func (s *Service) ReadProof(ctx context.Context, id TaskID, proof string) (p Proof, data []byte, err error) {
	defer s.observe(&ctx, "ReadProof").end(&err)
	t, err := s.Task(ctx, id)
	if err != nil {
		return Proof{}, nil, err
	}
	return s.readProof(ctx, t, proof)
}

// DriverProof is ReadProof for the driver who has the task, or had it when it was completed. Codes:
// ErrNotFound, also when it is another driver's.
func (s *Service) DriverProof(ctx context.Context, driver DriverID, id TaskID, proof string,
) (_ Proof, _ []byte, err error) {
	defer s.observe(&ctx, "DriverProof").end(&err)
	t, err := s.changeTask(ctx, verb{name: "DriverProof", driver: driver}, id,
		func(_ *change, t Task) (Task, bool, error) { return t, false, t.heldBy(driver) })
	if err != nil {
		return Proof{}, nil, err
	}
	return s.readProof(ctx, t, proof)
}

func (s *Service) readProof(ctx context.Context, t Task, proof string) (Proof, []byte, error) {
	missing := notFound("id", "proof")
	i := slices.IndexFunc(t.Proofs, func(p Proof) bool { return p.ID == proof })
	files := s.files()
	if i < 0 || files == nil {
		return Proof{}, nil, missing
	}
	p := t.Proofs[i]
	var data []byte
	err := s.withFiles(ctx, "ReadProof", func(ctx context.Context) error {
		r, err := files.Open(ctx, s.app, p.ID)
		if err != nil {
			return err
		}
		defer r.Close()
		data, err = io.ReadAll(io.LimitReader(r, MaxProofSize+1))
		return err
	})
	if errors.Is(err, ErrNotFound) || err == nil && sha256.Sum256(data) != p.Sum {
		s.opts.Logger.ErrorContext(ctx, "the bytes of a proof are gone, or are others", "task", t.ID, "proof", p.ID)
		return Proof{}, nil, missing
	}
	if err != nil {
		return Proof{}, nil, err
	}
	return p, data, nil
}

// files is where the bytes of proofs are; nil: nowhere.
func (s *Service) files() Files {
	if s.opts.Files != nil {
		return s.opts.Files
	}
	return s.store.Files()
}

// withFiles calls Files, which may be the embedder's, with a time limit. ErrNotFound is no failure
// of it; whatever else goes wrong is ErrUnavailable.
func (s *Service) withFiles(ctx context.Context, name string, call func(context.Context) error) error {
	err := guarded(ctx, s.opts.NotifyTimeout, call)
	switch {
	case err == nil || errors.Is(err, ErrNotFound):
		return err
	case ctx.Err() != nil:
		return s.failure(ctx, name, ctx.Err())
	}
	s.opts.Logger.ErrorContext(ctx, "files unavailable", "op", name, "err", withoutURL(err))
	return &Error{
		Code: ErrUnavailable, Message: "The file cannot be kept or read now; try again.", RetryAfter: time.Second,
		Err: err,
	}
}

// dropFile deletes a file that no row names, also when ctx has ended. Where that fails it is an
// orphan.
func (s *Service) dropFile(ctx context.Context, files Files, id string) {
	_ = s.withFiles(context.WithoutCancel(ctx), "AddProof", func(ctx context.Context) error {
		return files.Delete(ctx, s.app, id)
	})
}

// ReopenTask takes the end of a task back, within Options.ReopenFor of it. It is assigned to the
// driver it had, who is told, whatever he has to do already, and begun anew. Where he was erased it
// is created and waits for nobody; where nobody had it, it is created, and waits if it did. Its
// outcome, reason and steps are cleared, its proofs stay, and its link shows it again. A task that
// has not ended stays as it is. Codes: ErrNotFound; ErrConflict when it ended too long ago or is
// tried again by another task, or the driver's route is full.
func (s *Service) ReopenTask(ctx context.Context, id TaskID) (_ Task, err error) {
	defer s.observe(&ctx, "ReopenTask").end(&err)
	return s.changeTask(ctx, verb{name: "ReopenTask"}, id, func(c *change, t Task) (Task, bool, error) {
		held := false
		if t.DriverID != "" {
			d, err := c.store.Driver(ctx, c.app, t.DriverID)
			if err != nil && !errors.Is(err, ErrNotFound) {
				return t, false, err
			}
			held = err == nil && d.Person == t.Person
		}
		next, changed, err := t.reopened(held, c.opts.ReopenFor, c.opts.AssignLead, c.now)
		if err != nil || !changed {
			return t, false, err
		}
		c.event(t.subject(), next.Person, c.now, TaskReopenedData{next.DriverID})
		if held {
			c.tell(Notice{DriverID: next.DriverID, Kind: NoticeReopened, TaskID: t.ID})
		}
		return c.toLocate(next), true, nil
	})
}

// ReportStuck notes that the phone of a driver who has or had the task could not deliver a step: the
// service refused it, as the task had changed meanwhile. Task.Stuck tells of it until the driver or
// the application has seen to it ([Service.SettleStep], [Service.SettleTask]), or the task ends.
// Saying so again changes nothing, also once somebody has seen to it: what has the same step, word and
// At, or no At. What belongs to no task needs no word: going on or off duty is never
// refused, an order of the stops only where the application has made another meanwhile, of which it
// knows, and a trip that is no task's only where another driver is on it, or it has ended
// otherwise, which its own row tells. Codes: ErrInvalid; ErrNotFound when the driver never had it.
func (s *Service) ReportStuck(ctx context.Context, driver DriverID, id TaskID, step StuckStep) (_ Task, err error) {
	defer s.observe(&ctx, "ReportStuck").end(&err)
	var c check
	if !slices.Contains(stuckSteps, step.Step) {
		c.fail("step", "must be one of "+strings.Join(stuckSteps, ", ")+".")
	}
	if step.Why != "" && !ReasonCode(step.Why).valid() {
		c.fail("why", "must be a word of at most 32 small letters, digits and underscores.")
	}
	if c.err != nil {
		return Task{}, c.err
	}
	return s.changeTask(ctx, verb{name: "ReportStuck", driver: driver}, id, func(c *change, t Task) (Task, bool, error) {
		if _, err := c.named(ctx, driver); err != nil { // of whom it may be somebody else's by now
			return t, false, err
		}
		if step.DriverID = driver; step.At.After(c.now) {
			step.At = time.Time{}
		} else if !step.At.IsZero() {
			step.At = clampAt(step.At, stepBefore(c.now, t.CreatedAt), c.now)
		}
		next, changed, err := t.stuckAt(step, c.now)
		if err != nil || !changed {
			return t, false, err
		}
		c.event(t.subject(), t.Person, c.now, TaskStuckData{driver, step.Step, step.Why})
		return next, true, nil
	})
}

// SettleTask says that the application has seen to all the steps of a task that could not be
// delivered. Repeating it changes nothing. Codes: ErrNotFound.
func (s *Service) SettleTask(ctx context.Context, id TaskID) (_ Task, err error) {
	defer s.observe(&ctx, "SettleTask").end(&err)
	return s.settle(ctx, verb{name: "SettleTask"}, id, "")
}

// SettleStep says that a driver knows of a step of his that could not be delivered, and wants nothing
// done about it; "" for all of them. Codes: ErrNotFound when it is no task of the driver's.
func (s *Service) SettleStep(ctx context.Context, driver DriverID, id TaskID, step string) (_ Task, err error) {
	defer s.observe(&ctx, "SettleStep").end(&err)
	return s.settle(ctx, verb{name: "SettleStep", driver: driver}, id, step)
}

func (s *Service) settle(ctx context.Context, v verb, id TaskID, step string) (Task, error) {
	return s.changeTask(ctx, v, id, func(c *change, t Task) (Task, bool, error) {
		if d := v.driver; d != "" {
			if _, err := c.named(ctx, d); err != nil {
				return t, false, err
			}
			if t.DriverID != d && !slices.Contains(t.Excluded, d) {
				return t, false, notFound("task_id", "task")
			}
		}
		next, changed := t.settled(v.driver, step, c.now)
		if changed {
			c.event(t.subject(), t.Person, c.now, TaskSettledData{v.driver})
		}
		return next, changed, nil
	})
}

// toLocate is the task, which was completed, with its points to be asked for again.
func (c *change) toLocate(t Task) Task {
	if t.lacksPoint() && c.opts.Geocoder != nil {
		t.GeocodeAt = c.now
	}
	return t
}

// DeclineTask gives a task back that has not been started. Assigned automatically, it goes to
// another driver; this one will not be asked again. Codes: ErrInvalid; ErrNotFound when it is
// another driver's; ErrConflict when it is in progress or completed.
func (s *Service) DeclineTask(ctx context.Context, driver DriverID, id TaskID, why Reason, step Step,
) (_ Task, err error) {
	defer s.observe(&ctx, "DeclineTask").end(&err)
	var c check
	c.reason(why, s.Reasons())
	if err := first(step.check(), c.err); err != nil {
		return Task{}, err
	}
	return s.changeTask(ctx, verb{
		name: "DeclineTask", driver: driver,
	}, id, func(c *change, t Task) (Task, bool, error) {
		next, changed, err := t.declined(driver, why, c.opts.AssignLead, c.now)
		if err != nil || !changed {
			return t, false, err
		}
		at := clampAt(step.At, stepBefore(c.now, t.CreatedAt, t.AssignedAt), c.now)
		c.event(t.subject(), t.Person, at, TaskDeclinedData{driver, why.Code})
		c.step(driver, step, at)
		return next, true, nil
	})
}

// PickUpTask notes that the goods of a task with pickup and drop are on board. Repeating it changes
// nothing. Codes: ErrInvalid; ErrNotFound when it is another driver's; ErrConflict when it is not
// in progress.
func (s *Service) PickUpTask(ctx context.Context, driver DriverID, id TaskID, step Step) (_ Task, err error) {
	defer s.observe(&ctx, "PickUpTask").end(&err)
	if err := step.check(); err != nil {
		return Task{}, err
	}
	return s.changeTask(ctx, verb{name: "PickUpTask", driver: driver}, id, func(c *change, t Task) (Task, bool, error) {
		next, changed, err := t.pickedUp(driver, step.At, c.now)
		if err != nil || !changed {
			return t, false, err
		}
		c.event(t.subject(), t.Person, next.PickedUpAt, TaskPickedUpData{driver})
		c.step(driver, step, next.PickedUpAt)
		return next, true, nil
	})
}

// ArriveTask notes that the driver is where the present leg of a task leads to. Repeating it changes
// nothing. Codes: ErrInvalid; ErrNotFound when it is another driver's; ErrConflict when it is not in
// progress.
func (s *Service) ArriveTask(ctx context.Context, driver DriverID, id TaskID, step Step) (_ Task, err error) {
	defer s.observe(&ctx, "ArriveTask").end(&err)
	if err := step.check(); err != nil {
		return Task{}, err
	}
	return s.changeTask(ctx, verb{name: "ArriveTask", driver: driver}, id, func(c *change, t Task) (Task, bool, error) {
		next, changed, err := t.arrived(driver, step.At, c.now)
		if err != nil || !changed {
			return t, false, err
		}
		leg := t.legs()[0]
		_, at := next.arrival(leg)
		c.event(t.subject(), t.Person, at, TaskArrivedData{leg})
		c.step(driver, step, at)
		return next, true, nil
	})
}

// StartTask begins a task and its trip. Repeated, it gives the trip that is active, or begins a new
// one if that has ended. Codes: ErrInvalid; ErrNotFound when it is another driver's; ErrConflict
// when it is completed.
func (s *Service) StartTask(ctx context.Context, driver DriverID, id TaskID, step Step) (_ Task, _ Trip, err error) {
	defer s.observe(&ctx, "StartTask").end(&err)
	if err := step.check(); err != nil {
		return Task{}, Trip{}, err
	}
	var trip Trip
	v := verb{name: "StartTask", driver: driver, locks: []Subject{driver.subject()}}
	t, err := s.changeTask(ctx, v, id, func(c *change, t Task) (Task, bool, error) {
		c.returnTrip(&trip)
		next, changed, err := t.started(driver, step.At, c.now)
		if err != nil {
			return t, false, err
		}
		if changed {
			c.event(t.subject(), t.Person, next.StartedAt, TaskStartedData{driver})
		}
		trip, err = c.startTrip(ctx, tripStart{driver: driver, tracking: t.trackingID(), task: &next, step: step})
		return next, changed, err
	})
	if err != nil {
		return Task{}, Trip{}, err
	}
	return t, trip, nil
}

// UndoTask takes the last step of a task's driver back, within Options.UndoFor of it by our clock: a
// pickup; else the start, and its trip is discarded; or the end, and a new trip begins where the one
// before has ended. The task is then the driver's next stop again. Meant names the step, so that
// what is repeated takes back no other: a step that is taken back already, or was never taken, stays
// so; "" means the last one. What the dispatcher did is nobody's step. The trip is the one that was
// discarded or begun; zero where there is none. Codes: ErrInvalid; ErrNotFound when it is another
// driver's; ErrConflict when no step is left, it was taken too long ago, another came after it, the
// dispatcher ended the task, or another task tries it again.
func (s *Service) UndoTask(ctx context.Context, driver DriverID, id TaskID, meant TaskStep,
	step Step) (_ Task, _ Trip, err error) {
	defer s.observe(&ctx, "UndoTask").end(&err)
	var k check
	if !slices.Contains([]TaskStep{"", StepStart, StepPickup, StepComplete}, meant) {
		k.fail("step", "must be start, pickup or complete.")
	}
	if err := first(step.check(), k.err); err != nil {
		return Task{}, Trip{}, err
	}
	var trip Trip
	v := verb{name: "UndoTask", driver: driver, locks: []Subject{driver.subject()}}
	t, err := s.changeTask(ctx, v, id, func(c *change, t Task) (Task, bool, error) {
		trip = Trip{}
		c.returnTrip(&trip)
		next, undone, err := t.undone(driver, meant, c.opts.UndoFor, c.now)
		if err != nil || undone == "" {
			return t, false, err
		}
		last := stepBefore(c.now, t.AssignedAt, t.StartedAt, t.PickupArrivedAt, t.PickedUpAt, t.ArrivedAt, t.CompletedAt)
		at := clampAt(step.At, last, c.now)
		c.event(t.subject(), t.Person, at, TaskUndoneData{driver, undone})
		c.step(driver, step, at)
		switch undone {
		case StepStart:
			trip, err = c.endTaskTrip(ctx, t, TripDiscarded, at)
		case StepComplete:
			next = c.toLocate(next)
			trip, err = c.startTrip(ctx, tripStart{
				driver: driver, tracking: t.trackingID(), task: &next, step: Step{At: t.CompletedAt}, resumes: true,
			})
		}
		return next, true, err
	})
	if err != nil {
		return Task{}, Trip{}, err
	}
	return t, trip, nil
}

// TaskLink returns the token of the task's tracking link, which with httpadapter is BaseURL,
// Prefix, "/track/" and the token: ask again and it is the same, until it expires or is revoked;
// then a new one is made. The link of a task that is tried again shows the new one, and lives as that
// does. Codes: ErrNotFound; ErrConflict when what it would show was erased.
func (s *Service) TaskLink(ctx context.Context, id TaskID) (token string, err error) {
	defer s.observe(&ctx, "TaskLink").end(&err)
	err = s.change(ctx, verb{name: "TaskLink"}, func(c *change) error {
		t, err := s.task(ctx, id)
		if err != nil {
			return err
		}
		last, err := s.lastTry(ctx, t)
		if err == nil && !last.ErasedAt.IsZero() {
			err = errErased
		}
		if err != nil {
			return err
		}
		var made bool
		if token, made, err = c.link(ctx, t.subject(), &t.Link, last.CompletedAt); made {
			c.cs.Tasks = []Task{t}
		}
		return err
	})
	return token, err
}

// RevokeTaskLink makes the tracking links that show the task dead at once: its own, and those of the
// tasks that it tries again. Codes: ErrNotFound.
func (s *Service) RevokeTaskLink(ctx context.Context, id TaskID) (err error) {
	defer s.observe(&ctx, "RevokeTaskLink").end(&err)
	return s.change(ctx, verb{name: "RevokeTaskLink"}, func(c *change) error {
		t, err := s.task(ctx, id)
		if err == nil {
			err = s.expected(t.Version)
		}
		if err != nil {
			return err
		}
		earlier, err := s.earlierTries(ctx, t)
		if err != nil {
			return err
		}
		for _, t := range append(earlier, t) {
			if t.Link.revoke() {
				c.cs.Tasks = append(c.cs.Tasks, t)
			}
		}
		return nil
	})
}

// DeleteTask removes a task that has ended, or that is nobody's and waits for nobody, as if it had
// never been: its trips, its events, also those that a [Notifier] was still to be told of, what
// drivers were told of it, the files that were given as proof, and its links. Nobody is told; who
// looks on by [Service.Live] hears that it is gone. The fixes stay with their driver, and a task that
// tries it again, or that it tries again, keeps its id. Codes: ErrNotFound; ErrConflict when a driver
// has it or is to be found for it; ErrUnavailable when [Files] fails.
func (s *Service) DeleteTask(ctx context.Context, id TaskID) (err error) {
	defer s.observe(&ctx, "DeleteTask").end(&err)
	v := verb{name: "DeleteTask", locks: []Subject{id.subject()}}
	return s.change(ctx, v, func(c *change) error {
		t, err := s.task(ctx, id)
		if err == nil {
			err = first(s.expected(t.Version), t.mayGo())
		}
		if err != nil {
			return err
		}
		return c.deleteTask(ctx, t)
	})
}

// EraseContact erases a person, whom the mobile number stands for by its digits alone, from every
// task of the application where that is whom to meet at a place: name, number and the address's text
// there; and of these tasks the notes, the customer's note, reasons in words, what their drivers noted,
// who received it, the files that were given as proof and the addresses of their trips. Tasks, their
// points, times, outcomes, events, order ids and properties stay; [Task.ErasedAt] says when it was
// done, and task.erased tells of it. The link of such a task is dead; it is neither reopened, undone
// nor tried again, and its Key is known no more by its content. It returns how many tasks there were.
//
// Of a task that has not ended nothing can be erased: then it is ErrConflict, which names up to 20 of
// them, and nothing is erased. It works in small steps. What a call that was broken off has left, the
// next one erases. A number that is written in another form, as with a country code, has other digits.
// Codes: ErrInvalid for a number of fewer than 3 digits; ErrConflict; ErrUnavailable also when
// [Files] fails.
func (s *Service) EraseContact(ctx context.Context, mobile string) (erased int, err error) {
	defer s.observe(&ctx, "EraseContact").end(&err)
	var k check
	k.text("mobile", mobile, 32)
	digits := digitsOf(mobile)
	if digits == "" {
		k.fail("mobile", "needs 3 digits or more.")
	}
	if k.err != nil {
		return 0, k.err
	}
	if err := s.noneOpen(ctx, digits); err != nil {
		return 0, err
	}
	if err := s.eachOf(ctx, digits, nil, func(list []Task) error {
		n, err := s.eraseSome(ctx, digits, time.Time{}, list)
		erased += n
		return err
	}); err != nil {
		return erased, err
	}
	if e, ok := s.store.(Eraser); ok {
		if err := s.op(ctx, "EraseContact", func(time.Time) error { return e.Erased(ctx) }); err != nil {
			return erased, err
		}
	}
	return erased, s.noneOpen(ctx, digits) // one may have been reopened meanwhile
}

// eachOf calls f with the tasks in which a number stands, a few at a time.
func (s *Service) eachOf(ctx context.Context, digits string, status []TaskStatus, f func(list []Task) error) error {
	filter := TaskFilter{Page: Page{1, dueAtOnce}, Query: digits, Status: status}
	for more := true; more; {
		var list []Task
		err := s.op(ctx, "EraseContact", func(time.Time) (err error) {
			list, more, err = s.store.Tasks(ctx, s.app, filter)
			return err
		})
		if err != nil || len(list) == 0 {
			return err
		}
		mark := list[len(list)-1].Mark(filter.Order())
		filter.After = &mark
		list = slices.DeleteFunc(list, func(t Task) bool { // a search finds longer numbers, too
			_, its := t.erased(digits, time.Time{})
			return !its
		})
		if len(list) == 0 {
			continue
		}
		if err := f(list); err != nil {
			return err
		}
	}
	return nil
}

// noneOpen refuses to erase a person while there is a task of that number that has not ended.
func (s *Service) noneOpen(ctx context.Context, digits string) error {
	const most = 20
	var ids []string
	open := []TaskStatus{StatusCreated, StatusAssigned, StatusInProgress}
	err := s.eachOf(ctx, digits, open, func(list []Task) error {
		for _, t := range list {
			ids = append(ids, string(t.ID))
		}
		return nil
	})
	if err != nil || len(ids) == 0 {
		return err
	}
	more := ""
	if len(ids) > most {
		ids, more = ids[:most], fmt.Sprintf(" and %d more", len(ids)-most)
	}
	return conflict("Tasks of this contact have not ended; complete, cancel or delete these first: " +
		strings.Join(ids, ", ") + more + ".")
}

// eraseSome erases a person, or with "" all, from tasks, in one step. A task that has gone meanwhile, or
// has not ended by then, is passed over; a zero time is any.
func (s *Service) eraseSome(ctx context.Context, digits string, by time.Time, list []Task) (erased int, err error) {
	err = s.change(ctx, verb{name: "EraseContact"}, func(c *change) error {
		erased = 0
		return c.eachEnded(ctx, by, list, func(t Task) error {
			next, changed := t.erased(digits, c.now)
			if !changed {
				return nil
			}
			erased++
			return c.eraseTask(ctx, t, next)
		})
	})
	if err != nil {
		return 0, err
	}
	return erased, nil
}

// deleteSome deletes tasks, in one step.
func (s *Service) deleteSome(ctx context.Context, by time.Time, list []Task) (deleted int, err error) {
	err = s.change(ctx, verb{name: "DeleteTask"}, func(c *change) error {
		deleted = 0
		return c.eachEnded(ctx, by, list, func(t Task) error {
			if last, err := s.lastTry(ctx, t); err != nil || last.Status != StatusCompleted || last.CompletedAt.After(by) {
				return err // its link is the one that the customer has
			}
			deleted++
			return c.deleteTask(ctx, t)
		})
	})
	if err != nil {
		return 0, err
	}
	return deleted, nil
}

// eachEnded reads tasks anew, and calls f with those that have ended by then.
func (c *change) eachEnded(ctx context.Context, by time.Time, list []Task, f func(t Task) error) error {
	for _, of := range list {
		t, err := c.store.Task(ctx, c.app, of.ID)
		if errors.Is(err, ErrNotFound) || err == nil && (t.Status != StatusCompleted || !by.IsZero() && t.CompletedAt.After(by)) {
			continue
		}
		if err == nil {
			err = f(t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteTask puts in that a task goes, with all that is of it.
func (c *change) deleteTask(ctx context.Context, t Task) error {
	trips, err := c.leave(ctx, t)
	if err != nil {
		return err
	}
	c.cs.DeleteTasks, c.cs.DeleteTrips = append(c.cs.DeleteTasks, t), append(c.cs.DeleteTrips, trips...)
	return nil
}

// eraseTask puts in that a task has become next, which says less of persons, and so do its trips.
func (c *change) eraseTask(ctx context.Context, t, next Task) error {
	trips, err := c.leave(ctx, t)
	if err != nil {
		return err
	}
	for _, trip := range trips {
		trip.StartLocation, trip.EndLocation, trip.Dest = "", "", nil
		trip.GeocodeAt, trip.UpdatedAt = time.Time{}, c.now
		c.cs.Trips = append(c.cs.Trips, trip)
	}
	c.cs.Tasks = append(c.cs.Tasks, next)
	c.event(t.subject(), "", c.now, TaskErasedData{})
	return nil
}

// leave puts in that what is kept of a task elsewhere goes: files, and requests for its trips, which
// it returns. Files that the embedder keeps go at once: whoever does it again, as this
// has failed, finds them gone, and else nobody would know of them any more.
func (c *change) leave(ctx context.Context, t Task) (trips []Trip, err error) {
	for _, p := range t.Proofs {
		c.cs.DropFiles = append(c.cs.DropFiles, p.ID) // it may be from before there was an Options.Files
		if c.opts.Files == nil {
			continue
		}
		if err := c.withFiles(ctx, "DeleteTask", func(ctx context.Context) error {
			return c.opts.Files.Delete(ctx, c.app, p.ID)
		}); err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	f := TripFilter{Page: Page{1, 100}, TrackingID: t.trackingID()}
	for more := true; more; f.Number++ {
		var list []Trip
		if list, more, err = c.store.Trips(ctx, c.app, f); err != nil {
			return nil, err
		}
		trips = append(trips, list...)
	}
	c.cs.CloseRequests = append(c.cs.CloseRequests, RequestID{TrackingID: t.trackingID()})
	return trips, nil
}

// purgeTasks deletes the tasks that ended before Options.KeepTasks, and erases everybody from those
// that ended before Options.KeepContacts, a few of all applications.
func (s *Service) purgeTasks(ctx context.Context, now time.Time, p *Purged) error {
	var errs []error
	for _, kind := range []struct {
		of    DueKind
		keep  time.Duration
		count *int
		do    func(ctx context.Context, svc *Service, by time.Time, list []Task) (int, error)
	}{
		{DueDeletions, s.opts.KeepTasks, &p.Tasks, func(ctx context.Context, svc *Service, by time.Time, list []Task) (int, error) {
			return svc.deleteSome(ctx, by, list)
		}},
		{DueContacts, s.opts.KeepContacts, &p.Contacts, func(ctx context.Context, svc *Service, by time.Time, list []Task) (int, error) {
			return svc.eraseSome(ctx, "", by, list)
		}},
	} {
		if kind.keep <= 0 {
			continue
		}
		by := now.Add(-kind.keep)
		due, err := s.store.Due(ctx, DueQuery{
			Kind: kind.of, Before: by, Claim: s.claimed(now, sweepFor), Limit: 2 * dueAtOnce,
		})
		if err != nil {
			return s.failure(ctx, "Purge", err)
		}
		for app, part := range byApp(due) { // that of one fails holds up no other
			n, err := s.ForApp(app).As("system").inParts(ctx, part,
				func(ctx context.Context, svc *Service, part []Due) (int, error) {
					list := make([]Task, len(part))
					for i, d := range part {
						list[i].ID = TaskID(d.Subject.ID)
					}
					return kind.do(ctx, svc, by, list)
				})
			*kind.count += n
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// byCustomer is the actor of what the holder of a link does.
const byCustomer = "customer"

// NoteFromCustomer keeps what the holder of a task's tracking link writes to its driver, who is told:
// 1 to 280 characters, not only blanks, and no control character but the newline. The last note
// stands; the same again changes nothing. Its event does not hold it. A link takes 10 notes within
// 24 hours, as far as this process has seen them. Codes: ErrInvalid; ErrNotFound for unknown, expired
// and revoked links and those of trips alike; ErrConflict when the task has ended; ErrRateLimited.
func (s *Service) NoteFromCustomer(ctx context.Context, token, text string) (err error) {
	defer s.observe(&ctx, "NoteFromCustomer").end(&err)
	var k check
	k.note("text", text)
	if k.err != nil {
		return k.err
	}
	link, taken, changed := hashOf(token), time.Time{}, false
	err = s.change(ctx, verb{name: "NoteFromCustomer", actor: byCustomer}, func(c *change) error {
		app, _, t, err := s.taskByLink(ctx, link, c.now)
		if errors.Is(err, ErrNotFound) {
			return errNoLink
		}
		if err != nil {
			return err
		}
		c.Service = s.ForApp(app)
		next, noted, err := t.noted(text, c.now)
		if changed = noted; err != nil || !noted {
			return err
		}
		if taken.IsZero() { // in the first attempt
			wait, err := s.takeNote(ctx, link, c.now)
			if err != nil {
				return err
			}
			if wait > 0 {
				return &Error{
					Code: ErrRateLimited, Message: "Too many notes were sent by this link today; call instead, or try again later.",
					RetryAfter: wait,
				}
			}
			taken = c.now
		}
		c.event(t.subject(), t.Person, c.now, TaskNotedData{})
		if t.Open() {
			c.tell(Notice{DriverID: t.DriverID, Kind: NoticeNoted, TaskID: t.ID})
		}
		return c.putTask(ctx, &t, &next)
	})
	if !taken.IsZero() && (err == nil && !changed || err != nil && !errors.Is(err, ErrUnavailable)) {
		s.giveBackNote(context.WithoutCancel(ctx), link, taken)
	}
	return err
}

// task reads a task that the caller named.
func (s *Service) task(ctx context.Context, id TaskID) (t Task, err error) {
	if !lookup(string(id)) {
		return t, notFound("task_id", "task")
	}
	t, err = s.store.Task(ctx, s.app, id)
	return t, orNotFound(err, "task_id", "task")
}

// changeTask does a verb to a task: rule says what it becomes, and whether that is a change, and
// puts in what goes with it.
func (s *Service) changeTask(ctx context.Context, v verb, id TaskID,
	rule func(c *change, t Task) (Task, bool, error)) (Task, error) {
	v.locks = append(v.locks, id.subject())
	var result Task
	err := s.change(ctx, v, func(c *change) error {
		t, err := s.task(ctx, id)
		if err == nil {
			err = c.own(ctx, t, v.driver)
		}
		if err == nil && v.actor == "" { // not of what comes of it
			err = s.expected(t.Version)
		}
		if err != nil {
			return err
		}
		t = t.asTold(c.now)
		next, changed, err := rule(c, t)
		if result = next; err != nil || !changed && c.ofDrivers() {
			return err
		}
		// also where only what belongs to it changes, as when a trip starts anew: that depends on
		// what it is
		return c.putTask(ctx, &t, &next)
	}, func(c *change) { c.asKept(&result) })
	if err != nil {
		return Task{}, err
	}
	return result, nil
}

// own checks that a task which the driver has had was not somebody else's, who had the id before.
// The driver is "" for the application. That an open one is the driver's is sure: nobody is deleted
// who has one.
func (c *change) own(ctx context.Context, t Task, driver DriverID) error {
	if driver == "" || t.DriverID != driver {
		return nil
	}
	if p := c.person(driver); p != "" && p != t.Person || !c.means(driver, t.Person) {
		return notFound("task_id", "task")
	}
	if t.Open() {
		return nil
	}
	d, err := c.store.Driver(ctx, c.app, driver)
	if errors.Is(err, ErrNotFound) || err == nil && d.Person != t.Person {
		return notFound("task_id", "task")
	}
	return err
}

// putTask puts in a task, and the drivers whose routes that alters. Drivers who are put in already
// are changed there.
func (c *change) putTask(ctx context.Context, before, after *Task) error {
	c.cs.Tasks = append(c.cs.Tasks, *after)
	lost := before.Open() && (!after.Open() || before.DriverID != after.DriverID)
	c.serves = c.serves || after.Waiting || lost
	if lost {
		d, err := c.changing(ctx, before.DriverID)
		if err != nil {
			return err
		}
		next, err := c.isNext(ctx, d, before)
		if err != nil {
			return err
		}
		if next {
			d.LegAt = cmp.Or(after.CompletedAt, c.now)
		}
		d.Route = routed(d.Route, after.ID, nil, false)
	}
	if !after.Open() || before.Open() && before.DriverID == after.DriverID && slices.Equal(before.legs(), after.legs()) {
		return nil
	}
	d, err := c.changing(ctx, after.DriverID)
	if err != nil {
		return err
	}
	// A step that is taken back is the next one again.
	undone := after.Status == StatusInProgress && (before.Status == StatusCompleted || !before.PickedUpAt.IsZero())
	if before.PickedUpAt.IsZero() && !after.PickedUpAt.IsZero() {
		next, err := c.isNext(ctx, d, before)
		if err != nil {
			return err
		}
		if next {
			d.LegAt = after.PickedUpAt
		}
	} else if undone {
		d.LegAt = c.now
	}
	had := len(d.Route)
	d.Route = routed(d.Route, after.ID, after.legs(), undone)
	if len(d.Route) > max(had, MaxStops) { // an older file may have longer ones
		return errFullRoute
	}
	return nil
}

// isNext reports whether a driver's next stop is one of that task, as it was until now.
func (c *change) isNext(ctx context.Context, d *Driver, t *Task) (bool, error) {
	if t.Status != StatusInProgress || len(d.Route) == 0 {
		return false, nil
	}
	if d.Route[0].TaskID == t.ID {
		return true, nil
	}
	_, stop, err := c.underWayNext(ctx, *d)
	return stop.TaskID == t.ID, err
}

// changing is the driver's row as it is put in.
func (c *change) changing(ctx context.Context, id DriverID) (*Driver, error) {
	for i := range c.cs.Drivers {
		if d := &c.cs.Drivers[i]; d.ID == id {
			return d, nil
		}
	}
	d, err := c.driver(ctx, id)
	if err != nil {
		return nil, err
	}
	c.cs.Drivers = append(c.cs.Drivers, d)
	return &c.cs.Drivers[len(c.cs.Drivers)-1], nil
}

// AssignWaiting gives waiting tasks of all applications, oldest first, to drivers who have become
// available, free, or near. It reports how many it assigned. The applications take turns. A task
// whose row, or whose driver's, somebody's transaction holds for more than 3 seconds is left, with
// ErrUnavailable once the others are served. [Service.Run] calls it.
func (s *Service) AssignWaiting(ctx context.Context) (n int, err error) {
	defer s.observe(&ctx, "AssignWaiting").end(&err)
	s.runner.here.Store(true)
	select { // one at a time in a process: two would only take the tasks from each other
	case s.serving <- struct{}{}:
		defer func() { <-s.serving }()
	case <-ctx.Done():
		return 0, s.failure(ctx, "AssignWaiting", ctx.Err())
	}
	var errs []error
	failed := map[AppID]bool{}
	for more := true; more; {
		more = false
		apps, err := s.store.WaitingApps(ctx)
		if err != nil {
			return n, s.failure(ctx, "AssignWaiting", err)
		}
		for _, app := range apps {
			if failed[app] {
				continue
			}
			served, again, err := s.ForApp(app).serveSome(ctx)
			n, more = n+served, more || again
			if err != nil {
				if ctx.Err() != nil {
					return n, err
				}
				failed[app] = served == 0
				errs = append(errs, err)
			}
		}
	}
	return n, errors.Join(errs...)
}

// MarkDueTasks does what the time has come for with tasks of all applications: for those whose
// Window begins in Options.AssignLead a driver is looked for from now on, and each that is late
// fires task.late, once for each promise. It reports of how many. [Service.Run] calls it.
func (s *Service) MarkDueTasks(ctx context.Context) (n int, err error) {
	defer s.observe(&ctx, "MarkDueTasks").end(&err)
	s.runner.here.Store(true)
	now := s.now()
	// None is too far ahead: what tasks are due by was said by callers, and not noted by our clock.
	due, err := s.store.Due(ctx, DueQuery{
		Kind: DueTasks, Before: now, Claim: s.claimed(now, sweepFor), Limit: 2 * dueAtOnce,
	})
	if err != nil {
		return 0, s.failure(ctx, "MarkDueTasks", err)
	}
	var errs []error
	for app, due := range byApp(due) {
		if !s.marking.begin(app) { // somebody else in this process is at it
			continue
		}
		marked, err := s.ForApp(app).As("system").inParts(ctx, due, func(ctx context.Context, svc *Service,
			part []Due) (int, error) {
			return svc.markDue(ctx, part)
		})
		s.marking.end(app)
		n += marked
		errs = append(errs, err)
	}
	return n, errors.Join(errs...)
}

// markDue does what the time has come for with these tasks, and reports with how many.
func (s *Service) markDue(ctx context.Context, due []Due) (n int, err error) {
	err = s.change(ctx, verb{name: "MarkDueTasks", actor: "system"}, func(c *change) error {
		n = 0
		for _, d := range due {
			t, err := c.store.Task(ctx, c.app, TaskID(d.Subject.ID))
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			next, begun := t.begun(c.now)
			next, late := c.late(next, time.Time{})
			if !begun && !late { // done by somebody else, or the clock was put back
				continue
			}
			n++
			if err := c.putTask(ctx, &t, &next); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// late puts in that a task is late, if it is and that has not been told. Expected is when it will
// be done, as things stand; zero: not known.
func (c *change) late(t Task, expected time.Time) (next Task, late bool) {
	if next, late = t.late(expected, c.now); late {
		at := clampAt(next.LateFor, stepBefore(c.now, t.CreatedAt, t.AssignedAt), c.now)
		c.event(t.subject(), t.Person, at, TaskLateData{t.DriverID, next.LateFor})
	}
	return next, late
}

// serveInTurn is how many waiting tasks of one application are served before it is the next one's
// turn.
const serveInTurn = 16

// serveSome serves waiting tasks of the application. It reports how many, and whether there may be
// more. One that fails holds up no other.
func (s *Service) serveSome(ctx context.Context) (n int, more bool, err error) {
	now := s.now()
	list, err := s.store.Matches(ctx, s.app, MatchQuery{
		MaxOpen: s.opts.MaxOpenTasks, SeenSince: now.Add(-s.opts.MaxFixAge), Within: s.opts.MaxAssignDistance,
		Claim: s.claimed(now, serveFor), Limit: serveInTurn,
	})
	if err != nil {
		return 0, false, s.failure(ctx, "AssignWaiting", err)
	}
	slices.SortFunc(list, func(a, b Task) int { // so that seldom one is served for another
		if a.comesBefore(&b) {
			return -1
		}
		return 1
	})
	var errs []error
	for _, t := range list {
		became, err := s.serve(ctx, t.ID)
		switch {
		case ctx.Err() != nil:
			return n, false, s.failure(ctx, "AssignWaiting", ctx.Err())
		case err != nil && !errors.Is(err, ErrNotFound):
			errs = append(errs, err)
		case became == wasServed:
			n++
		}
		more = more || became != stillWaits && err == nil
	}
	return n, more, errors.Join(errs...)
}

// fate is what became of a waiting task that was to be served.
type fate int

const (
	stillWaits fate = iota // there was nobody for it, or for one that comes before it
	wasServed              // it, or another one that comes before it
	waitsNoMore
)

// serve gives a waiting task to a driver, if there is one. Where another one has waited longer for
// the same driver, that one is served, at its own nearest driver, and so on.
//
// So whoever is served gets the nearest driver, and of those who could get that driver has waited
// longest. Served in this way, in whatever order they are asked for, all get the drivers that they
// would get one after the other by age.
func (s *Service) serve(ctx context.Context, id TaskID) (became fate, err error) {
	to, its := DriverID(""), TaskID("")
	brief, cancel := context.WithTimeout(ctx, brieflyIs)
	defer cancel()
	err = s.change(brief, verb{name: "AssignWaiting"}, func(c *change) error {
		became, to = waitsNoMore, ""
		t, err := s.store.Task(ctx, s.app, id)
		if err != nil {
			return err
		}
		for t.Waiting && t.Point() != nil {
			if s.held.passedOver(s.app, t.ID) {
				became = stillWaits
				return nil
			}
			if later := t.sought(c.opts.AssignLead, c.now); ahead(later.AssignAt, c.now) {
				return c.putTask(ctx, &t, &later) // a clock that was wrong has begun with it too early
			}
			became = stillWaits
			k, err := c.claim(ctx, &t)
			switch {
			case err != nil:
				return err
			case k.before != nil:
				t = *k.before
				continue
			case k.driver != nil:
				became, to, its = wasServed, k.driver.ID, t.ID
				err = c.assignTo(ctx, &t, k.driver)
			}
			return err
		}
		return nil
	})
	if err != nil && brief.Err() != nil && to != "" {
		s.coming.passOver(s.app, to, passedOverFor)
		s.held.late(s.app, its)
		if its != id && ctx.Err() == nil {
			return s.serve(ctx, id) // which is not held
		}
	}
	return became, err
}

// passedOverFor is how long a driver gets no task whom an embedder's transaction held when it was his:
// tasks that others can take do not wait for its end. So long a task is nobody's either, and goes before
// nobody, that could not be written in time for two drivers one after the other: it is held itself.
const passedOverFor = 10 * time.Second

// heldTasks are waiting tasks that could not be written in time.
type heldTasks struct {
	mu    sync.Mutex
	times map[appTask]int // in the last while
}

type appTask struct {
	app  AppID
	task TaskID
}

// late notes that a task could not be written in time.
func (h *heldTasks) late(app AppID, id TaskID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := appTask{app, id}
	if h.times == nil {
		h.times = make(map[appTask]int)
	}
	h.times[k]++
	time.AfterFunc(passedOverFor, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.times[k]--; h.times[k] <= 0 {
			delete(h.times, k)
		}
	})
}

func (h *heldTasks) passedOver(app AppID, id TaskID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.times[appTask{app, id}] > 1
}

// count is how many tasks of an application may have to be passed over.
func (h *heldTasks) count(app AppID) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.times {
		if k.app == app {
			n++
		}
	}
	return n
}

// claim is a driver kept for one task.
type claim struct {
	driver *Driver // nil if there is none
	before *Task   // then: a waiting task that comes before with the driver whom this one would get
}

// claim finds the driver who is to get t automatically, if nobody who waits for that driver comes
// before t, and keeps him until the attempt is over.
//
// Where a driver may have more than one task several may want him at the same time. Each would find
// his row changed by the one before, and try again with all the others; so they queue for him, and
// look anew when it is their turn.
func (c *change) claim(ctx context.Context, t *Task) (k claim, err error) {
	var queued DriverID
	unlock := func() {}
	defer func() {
		if k.driver == nil {
			unlock()
		}
	}()
	for {
		d, busy, err := c.choose(ctx, t, c.now)
		if err != nil || d == nil {
			return claim{}, err
		}
		first, err := c.firstInLine(ctx, d)
		if err != nil || first != nil && first.comesBefore(t) {
			c.coming.release(c.app, d.ID)
			return claim{before: first}, err
		}
		if d.ID != queued && d.mostOpen(c.opts.MaxOpenTasks) != 1 {
			unlock()
			unlock = func() {}
			release, err := c.lock(ctx, d.subject())
			if err != nil {
				c.coming.release(c.app, d.ID)
				return claim{}, err
			}
			unlock, queued = release, d.ID
			if busy {
				c.coming.release(c.app, d.ID)
				continue
			}
		}
		id := d.ID // all that is kept of him
		c.after = append(c.after, func() { c.coming.release(c.app, id) }, unlock)
		return claim{driver: d}, nil
	}
}

// assignTo puts in that t goes to the driver who is kept for it.
func (c *change) assignTo(ctx context.Context, t *Task, d *Driver) error {
	next, _, err := t.assigned(*d, true, c.now)
	if err != nil {
		return err
	}
	c.actor = "system"
	c.assigned(t, &next)
	c.cs.Drivers = append(c.cs.Drivers, *d)
	err = c.putTask(ctx, t, &next)
	*t = next
	return err
}

// assigned puts in the event that a task has gone to a driver.
func (c *change) assigned(before, after *Task) {
	c.event(after.subject(), after.Person, c.now, TaskAssignedData{
		DriverID: after.DriverID, PreviousDriverID: before.DriverID, Auto: after.AutoAssigned,
	})
	if before.Open() {
		c.tell(Notice{DriverID: before.DriverID, Kind: NoticeUnassigned, TaskID: after.ID})
	}
	c.tell(Notice{DriverID: after.DriverID, Kind: NoticeAssigned, TaskID: after.ID})
}

// choose finds and reserves the driver who is to get t automatically: of those on offer the
// nearest, of equally near ones the one with fewer open tasks, then by id. Whoever gets one
// releases the reservation. Busy tells that others are being assigned to him.
func (s *Service) choose(ctx context.Context, t *Task, now time.Time) (d *Driver, busy bool, err error) {
	for limit := s.coming.candidates(); ; limit *= 4 {
		list, err := s.store.Offers(ctx, s.app, Offer{
			At: *t.Point(), MaxOpen: s.opts.MaxOpenTasks, SeenSince: now.Add(-s.opts.MaxFixAge),
			Within: s.opts.MaxAssignDistance, Requires: t.Requires, Exclude: t.Excluded, Limit: limit,
		})
		if err != nil {
			return nil, false, err
		}
		d, sure, busy := s.coming.first(s.app, s.opts.MaxOpenTasks, len(t.legs()), list)
		if sure || len(list) < limit {
			return d, busy, nil
		}
		if d != nil { // by what is on its way to others, one who is not in the list may come before
			s.coming.release(s.app, d.ID)
		}
	}
}

// firstInLine finds the oldest waiting task that d could get; nil: there is none.
func (s *Service) firstInLine(ctx context.Context, d *Driver) (*Task, error) {
	list, err := s.store.Waiting(ctx, s.app, WaitingFilter{
		Near: &d.Position.Fix.LngLat, Within: s.opts.MaxAssignDistance, Driver: d.ID, Properties: d.Properties,
		Limit: 1 + s.held.count(s.app),
	})
	for i := range list {
		if t := &list[i]; !s.held.passedOver(s.app, t.ID) {
			return t, err
		}
	}
	return nil, err
}

// comesBefore reports whether t, which waits, comes before o: it has waited longer, or o is only
// being created.
func (t *Task) comesBefore(o *Task) bool {
	return o.Version == 0 || cmp.Or(t.CreatedAt.Compare(o.CreatedAt), cmp.Compare(t.Seq, o.Seq)) < 0
}

// reservations count the assignments of each driver that are on their way to the store, so that
// others choose somebody else.
type reservations struct {
	mu      sync.Mutex
	count   map[appDriver]int
	crowded bool // something was on its way to the first of the last candidates
}

// first reserves the first of the candidates who stays below his limit, or else this one, and has
// room for so many stops, counting what is on its way: of those equally near the one with fewer
// open tasks, then by id. They come in the order of Offers. Sure tells that nobody who would come
// after them in that order is to be preferred, busy that others are being assigned to the driver.
func (r *reservations) first(app AppID, limit, stops int, candidates []Driver) (best *Driver, sure, busy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	least, his := 0, 0 // open tasks of the best, those on their way counted, and these
	for i := range candidates {
		d := &candidates[i]
		if best != nil && d.Distance > best.Distance {
			sure = true
			break
		}
		coming := r.count[appDriver{app, d.ID}]
		if i == 0 {
			r.crowded = coming > 0
		}
		open := d.OpenTasks() + coming
		if most := d.mostOpen(limit); most >= 0 && open >= most || len(d.Route)+2*coming+stops > MaxStops {
			continue
		}
		if best == nil || open < least || open == least && d.ID < best.ID {
			best, least, his = d, open, coming
		}
		if coming == 0 { // who follows at this distance has no fewer
			sure = true
			break
		}
	}
	if best != nil {
		r.count[appDriver{app, best.ID}] = his + 1
	}
	return best, sure, his > 0
}

// candidates is how many to look at first: where nothing was on its way to the first one lately, he
// will do, else so many that one of them is nobody's.
func (r *reservations) candidates() int {
	const most = 16
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.crowded {
		return 1
	}
	return min(1+len(r.count), most)
}

// passOver has a driver chosen for nothing for a while.
func (r *reservations) passOver(app AppID, d DriverID, lasts time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := appDriver{app, d}
	r.count[k] += MaxStops
	time.AfterFunc(lasts, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.count[k] -= MaxStops; r.count[k] <= 0 {
			delete(r.count, k)
		}
	})
}

func (r *reservations) release(app AppID, d DriverID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := appDriver{app, d}
	if left := r.count[k] - 1; left > 0 {
		r.count[k] = left
	} else {
		delete(r.count, k)
	}
}

// geocodeTask asks for the points of a task's addresses, outside of any change, and notes what is
// known then.
func (s *Service) geocodeTask(ctx context.Context, id TaskID) (bool, error) {
	t, err := s.Task(ctx, id)
	if err != nil || t.Status == StatusCompleted || !dueForLookup(t.GeocodeAt, s.now()) {
		return false, err
	}
	points := map[string]LngLat{}
	for _, p := range []*Place{t.Pickup, t.Drop} {
		if p == nil || p.LngLat != nil {
			continue
		}
		if at, ok := points[p.Address]; ok && at.Valid() {
			continue
		}
		s.ask(ctx, func(ctx context.Context) error {
			at, err := s.opts.Geocoder.Point(ctx, p.Address)
			if err == nil && !at.Valid() {
				err = fmt.Errorf("a point out of range for a task's address")
			}
			if err == nil {
				points[p.Address] = at
			}
			return err
		})
	}
	filled := false
	_, err = s.changeTask(ctx, verb{name: "Geocode"}, id, func(c *change, t Task) (Task, bool, error) {
		if t.Status == StatusCompleted || t.GeocodeAt.IsZero() {
			return t, false, nil
		}
		next, fields := t.located(points)
		next.GeocodeAt = time.Time{}
		if next.lacksPoint() {
			next.GeocodeAt = askAgain(t.UpdatedAt, c.now)
		}
		if fields != nil {
			filled = true
			next.UpdatedAt = c.now
			c.updated(t, fields)
		}
		return next, true, nil
	})
	return filled, err
}

// located is the task with the points of its addresses, as far as they are known, and names the
// fields that this changes.
func (t Task) located(points map[string]LngLat) (next Task, fields []string) {
	next = t.Clone()
	for _, side := range []struct {
		field string
		place *Place
	}{{"pickup", next.Pickup}, {"drop", next.Drop}} {
		if side.place == nil || side.place.LngLat != nil {
			continue
		}
		if at, ok := points[side.place.Address]; ok {
			side.place.LngLat = &at
			fields = append(fields, side.field)
		}
	}
	return next, fields
}
