package httpadapter

import (
	"slices"
	"strconv"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// The shapes of the interface, apart from the types of package tracking: a change there never
// changes an answer by itself.

// timeText is a time as it is sent: UTC, always with milliseconds. The zero time is left out.
type timeText string

const timeLayout = "2006-01-02T15:04:05.000Z"

func timeOf(t time.Time) timeText {
	if t.IsZero() {
		return ""
	}
	return timeText(appendTime(make([]byte, 0, len(timeLayout)), t))
}

// appendTime appends a time that is not zero as a timeText.
func appendTime(to []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(to, timeLayout)
	}
	// A fifth of what Format takes; lists are full of times.
	hour, minute, second := t.Clock()
	ms := t.Nanosecond() / 1e6
	const two = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"
	return append(to,
		two[year/100*2], two[year/100*2+1], two[year%100*2], two[year%100*2+1],
		'-', two[month*2], two[month*2+1], '-', two[day*2], two[day*2+1],
		'T', two[hour*2], two[hour*2+1], ':', two[minute*2], two[minute*2+1], ':', two[second*2], two[second*2+1],
		'.', byte('0'+ms/100), two[ms%100*2], two[ms%100*2+1], 'Z')
}

// point is [longitude, latitude].
type point [2]float64

func pointOf(p *tracking.LngLat) *point {
	if p == nil {
		return nil
	}
	return &point{p.Lng, p.Lat}
}

// latLng is "latitude,longitude", as trips have it, in shortest decimals without exponent; "" for
// none.
func latLng(p *tracking.LngLat) string {
	if p == nil {
		return ""
	}
	return decimal(p.Lat) + "," + decimal(p.Lng)
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

type contact struct {
	Name   string `json:"name"`
	Mobile string `json:"mobile"`
}

type place struct {
	LngLat   *point   `json:"lnglat,omitempty"`
	Address  string   `json:"address"`
	Customer *contact `json:"customer,omitempty"`
}

func placeOf(p *tracking.Place) *place {
	if p == nil {
		return nil
	}
	var w struct { // in one piece of memory: lists are full of places
		place
		at   point
		whom contact
	}
	w.Address = p.Address
	if p.LngLat != nil {
		w.at = point{p.LngLat.Lng, p.LngLat.Lat}
		w.LngLat = &w.at
	}
	if p.Customer != nil {
		w.whom = contact{p.Customer.Name, p.Customer.Mobile}
		w.Customer = &w.whom
	}
	return &w.place
}

type task struct {
	ID          tracking.TaskID     `json:"task_id"`
	Type        tracking.TaskType   `json:"type"`
	Time        timeText            `json:"time"`
	Notes       string              `json:"notes"`
	Status      tracking.TaskStatus `json:"status"`
	Outcome     tracking.Outcome    `json:"outcome"`
	Reason      string              `json:"reason"`
	ReasonCode  tracking.ReasonCode `json:"reason_code"`
	Pickup      *place              `json:"pickup,omitempty"`
	Drop        *place              `json:"drop,omitempty"`
	OrderID     string              `json:"order_id"`
	DriverID    tracking.DriverID   `json:"driver_id"`
	Note        string              `json:"customer_note"`
	RetryOf     tracking.TaskID     `json:"retry_of"`
	RetriedBy   tracking.TaskID     `json:"retried_by"`
	CreatedAt   timeText            `json:"created_at"`
	UpdatedAt   timeText            `json:"updated_at"`
	Version     int64               `json:"version"`
	AssignedAt  timeText            `json:"assigned_at,omitempty"`
	StartedAt   timeText            `json:"started_at,omitempty"`
	PickedUpAt  timeText            `json:"picked_up_at,omitempty"`
	CompletedAt timeText            `json:"completed_at,omitempty"`
	Window      *window             `json:"window,omitempty"`
	Promised    timeText            `json:"promised,omitempty"`
	Late        bool                `json:"late,omitempty"`
	Requires    map[string]string   `json:"requires,omitempty"`
	Properties  map[string]string   `json:"properties,omitempty"`

	Phase           tracking.Phase `json:"phase"`
	Stop            int            `json:"stop,omitempty"` // which of the driver's stops is its next; 1: the first
	PickupArrivedAt timeText       `json:"pickup_arrived_at,omitempty"`
	ArrivedAt       timeText       `json:"arrived_at,omitempty"`

	Proof         []tracking.ProofKind `json:"proof,omitempty"`
	Proofs        []proof              `json:"proofs,omitempty"`
	ReceivedBy    string               `json:"received_by,omitempty"`
	DriverNote    string               `json:"driver_note,omitempty"`
	CompletedFrom *whereabouts         `json:"completed_lnglat,omitempty"`
	ErasedAt      timeText             `json:"erased_at,omitempty"`

	// for the application alone
	PIN       string   `json:"pin,omitempty"`
	WrongPINs int      `json:"wrong_pins,omitempty"`
	Stuck     []stuck  `json:"stuck,omitempty"`
	Waiting   *waiting `json:"waiting,omitempty"`
}

// stuck is a step that a phone could not deliver.
type stuck struct {
	DriverID tracking.DriverID `json:"driver_id"`
	Step     string            `json:"step"`
	At       timeText          `json:"at"`
	Why      string            `json:"why"`
}

func stuckOf(s tracking.StuckStep) stuck { return stuck{s.DriverID, s.Step, timeOf(s.At), s.Why} }

type window struct {
	From timeText `json:"from,omitempty"`
	To   timeText `json:"to,omitempty"`
}

func windowOf(w tracking.Window) *window {
	if w.From.IsZero() && w.To.IsZero() {
		return nil
	}
	return &window{timeOf(w.From), timeOf(w.To)}
}

// proof is a file that was given as evidence.
type proof struct {
	ID   string             `json:"id"`
	Kind tracking.ProofKind `json:"kind"`
	At   timeText           `json:"at"`
}

func proofOf(p tracking.Proof) proof { return proof{p.ID, p.Kind, timeOf(p.At)} }

// whereabouts is where a task was completed.
type whereabouts struct {
	LngLat point    `json:"lnglat"`
	Source string   `json:"source"`           // driver or last_fix
	OffBy  *float64 `json:"off_by,omitempty"` // metres
}

func whereaboutsOf(t tracking.Task) *whereabouts {
	from := t.CompletedFrom
	if from == nil {
		return nil
	}
	w := &whereabouts{LngLat: *pointOf(&from.LngLat), Source: from.Source}
	at := t.Drop
	if t.Type == tracking.TypePickup {
		at = t.Pickup
	}
	if at != nil && at.LngLat != nil {
		w.OffBy = &from.OffBy
	}
	return w
}

// wholeTask is a task as the application sees it, which can tell the PIN to a customer who calls.
func (h *Handler) wholeTask(t tracking.Task) task { return wholeTaskAt(t, h.now()) }

func wholeTaskAt(t tracking.Task, now time.Time) task {
	w := taskAt(t, now)
	w.PIN, w.WrongPINs, w.Stuck = string(t.PIN), t.WrongPINs, mapped(t.Stuck, stuckOf)
	w.Waiting = waitingOf(t.Waits(now))
	return w
}

// taskOf is a task as it is now, as its driver may see it and whoever is told of an event: without
// the PIN.
func (h *Handler) taskOf(t tracking.Task) task { return taskAt(t, h.now()) }

func taskAt(t tracking.Task, now time.Time) task {
	return task{
		Proof: t.Proof, Proofs: mapped(t.Proofs, proofOf), ReceivedBy: t.ReceivedBy,
		DriverNote: t.DriverNote, CompletedFrom: whereaboutsOf(t),
		ID: t.ID, Type: t.Type, Time: timeOf(t.Time), Notes: t.Notes, Status: t.Status, Outcome: t.Outcome,
		Reason: t.Reason, ReasonCode: t.ReasonCode,
		Pickup: placeOf(t.Pickup), Drop: placeOf(t.Drop), OrderID: t.OrderID, DriverID: t.DriverID,
		Note: t.CustomerNote, RetryOf: t.RetryOf, RetriedBy: t.RetriedBy,
		CreatedAt: timeOf(t.CreatedAt), UpdatedAt: timeOf(t.UpdatedAt), Version: t.Version, AssignedAt: timeOf(t.AssignedAt),
		StartedAt:  timeOf(t.StartedAt),
		PickedUpAt: timeOf(t.PickedUpAt), CompletedAt: timeOf(t.CompletedAt),
		Window: windowOf(t.Window), Promised: timeOf(t.Promised()), Late: t.Late(now), Requires: t.Requires,
		Properties: t.Properties,
		Phase:      t.Phase(), PickupArrivedAt: timeOf(t.PickupArrivedAt), ArrivedAt: timeOf(t.ArrivedAt), ErasedAt: timeOf(t.ErasedAt),
	}
}

// counts are how many tasks there are.
type counts struct {
	Created    int             `json:"created"`
	Waiting    int             `json:"waiting"`
	Assigned   int             `json:"assigned"`
	InProgress int             `json:"in_progress"`
	Late       int             `json:"late"`
	Completed  completedCounts `json:"completed"`
}

type completedCounts struct {
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
}

func countsOf(n tracking.TaskCounts) counts {
	return counts{n.Created, n.Waiting, n.Assigned, n.InProgress, n.Late, completedCounts{
		n.Completed[tracking.OutcomeSucceeded], n.Completed[tracking.OutcomeFailed],
		n.Completed[tracking.OutcomeCancelled],
	}}
}

// stopIn is where on its driver's route a task comes next, from 1 on; 0: nowhere.
func stopIn(route []tracking.Stop, id tracking.TaskID) int {
	return 1 + slices.IndexFunc(route, func(s tracking.Stop) bool { return s.TaskID == id })
}

type routeStop struct {
	TaskID tracking.TaskID `json:"task_id"`
	Leg    tracking.Leg    `json:"leg"`
	ETA    *viewETA        `json:"eta,omitempty"`
}

func routeOf(r tracking.Route) list {
	stops := mapped(r.Stops, func(s tracking.RouteStop) routeStop {
		return routeStop{s.TaskID, s.Leg, etaOf(s.ETA)}
	})
	return list{"stops": stops, "version": r.Version}
}

// withoutContacts leaves out whom to meet.
func (t task) withoutContacts() task {
	for _, p := range []**place{&t.Pickup, &t.Drop} {
		if *p != nil {
			*p = &place{LngLat: (*p).LngLat, Address: (*p).Address}
		}
	}
	return t
}

// done is what the driver is still shown of a task that has ended: not the people, nor their words.
func (t task) done() task {
	t = t.withoutContacts()
	t.Note, t.ReceivedBy = "", ""
	return t
}

type trip struct {
	ID            tracking.TripID     `json:"_id"`
	CreatedAt     timeText            `json:"created_at"`
	TTL           timeText            `json:"ttl"`
	TrackingID    tracking.TrackingID `json:"tracking_id"`
	Status        string              `json:"status"`
	StartsAt      string              `json:"starts_at"`
	EndsAt        string              `json:"ends_at"`
	StartLocation string              `json:"start_location"`
	EndLocation   string              `json:"end_location"`
	DriverID      tracking.DriverID   `json:"agent_id"`
	StartedAt     timeText            `json:"started_at"`
	EndedAt       timeText            `json:"ended_at,omitempty"`
}

func tripOf(t tracking.Trip) trip {
	return trip{
		ID: t.ID, CreatedAt: timeOf(t.CreatedAt), TTL: timeOf(t.TTL), TrackingID: t.TrackingID,
		Status:   strconv.Itoa(int(t.Status)),
		StartsAt: latLng(t.StartsAt), EndsAt: latLng(t.EndsAt), StartLocation: t.StartLocation,
		EndLocation: t.EndLocation, DriverID: t.DriverID,
		StartedAt: timeOf(t.StartedAt), EndedAt: timeOf(t.EndedAt),
	}
}

type tripDetail struct {
	trip
	Distance      float64 `json:"distance"`       // metres
	MovingSeconds float64 `json:"moving_seconds"` // whole milliseconds
}

func tripDetailOf(t tracking.TripDetail) tripDetail {
	return tripDetail{tripOf(t.Trip), t.Distance, float64(t.Moving.Milliseconds()) / 1000}
}

type tripRequest struct {
	TrackingID tracking.TrackingID `json:"tracking_id"`
	Message    string              `json:"message"`
	Dest       *place              `json:"dest,omitempty"`
	Desc       string              `json:"desc"`
	DescHTML   string              `json:"desc_html"`
	CreatedAt  timeText            `json:"created_at"`
}

type operator struct {
	ID         tracking.DriverID `json:"driver_id"`
	Name       string            `json:"name"`
	Mobile     string            `json:"mobile"`
	Email      string            `json:"email"`
	Available  bool              `json:"availability"`
	LngLat     *point            `json:"lnglat,omitempty"`
	LocatedAt  timeText          `json:"located_at,omitempty"`
	Accuracy   *float64          `json:"accuracy,omitempty"` // metres
	Battery    *float64          `json:"battery,omitempty"`  // of the phone, 0 to 1
	LastSeenAt timeText          `json:"last_seen_at,omitempty"`
	ClockSkew  int               `json:"clock_skew,omitempty"` // seconds, of the phone's clock: ahead (+) or behind (−)
	Unread     int               `json:"unread,omitempty"`
	Properties map[string]string `json:"properties"`
	OpenTasks  int               `json:"open_tasks"`
	MaxOpen    *int              `json:"max_open_tasks,omitempty"`
	Distance   *float64          `json:"distance,omitempty"` // metres
	CreatedAt  timeText          `json:"created_at"`
	UpdatedAt  timeText          `json:"updated_at"`
	Version    int64             `json:"version"`
}

func operatorOf(d tracking.Driver) operator {
	w := operator{
		ID: d.ID, Name: d.Name, Mobile: d.Mobile, Email: d.Email, Available: d.Available,
		LastSeenAt: timeOf(d.Position.SeenAt),
		ClockSkew:  int(d.Position.ClockSkew().Value), Unread: d.Position.Unread,
		Properties: d.Properties, OpenTasks: d.OpenTasks(), MaxOpen: d.MaxOpenTasks, CreatedAt: timeOf(d.CreatedAt),
		UpdatedAt: timeOf(d.UpdatedAt), Version: d.Version,
	}
	if w.Properties == nil {
		w.Properties = map[string]string{}
	}
	if d.Position.Located() {
		f := d.Position.Fix
		w.LngLat, w.LocatedAt = pointOf(&f.LngLat), timeOf(f.Time)
		w.Accuracy, w.Battery = known(f.Accuracy), known(f.Battery)
	}
	return w
}

type candidate struct {
	ID        tracking.DriverID `json:"driver_id"`
	Name      string            `json:"name"`
	Distance  *float64          `json:"distance,omitempty"` // metres
	OpenTasks int               `json:"open_tasks"`
	Fit       tracking.Fit      `json:"fit"`
}

func candidateOf(c tracking.Candidate) candidate {
	d := c.Driver
	return candidate{ID: d.ID, Name: d.Name, Distance: c.Distance, OpenTasks: d.OpenTasks(), Fit: c.Fit}
}

type waiting struct {
	Since  timeText            `json:"since"`
	Reason tracking.WaitReason `json:"reason,omitempty"`
}

func waitingOf(w *tracking.Waits) *waiting {
	if w == nil {
		return nil
	}
	return &waiting{timeOf(w.Since), w.Reason}
}

type event struct {
	ID         string             `json:"id"`
	Type       tracking.EventType `json:"type"`
	Time       timeText           `json:"time"`
	RecordedAt timeText           `json:"recorded_at"`
	Actor      string             `json:"actor"`
	Subject    subject            `json:"subject"`
	Seq        int64              `json:"seq"`
	Data       map[string]string  `json:"data"`
}

type subject struct {
	Kind tracking.SubjectKind `json:"kind"`
	ID   string               `json:"id"`
}

func eventOf(e tracking.Event) event {
	w := event{
		e.ID, e.Type, timeOf(e.Time), timeOf(e.RecordedAt), e.Actor, subject{e.Subject.Kind, e.Subject.ID}, e.Seq,
		e.Data,
	}
	if w.Data == nil {
		w.Data = map[string]string{}
	}
	return w
}

// The parts of bodies that more than one route takes.

type contactBody struct {
	Name   string `json:"name"`
	Mobile string `json:"mobile"`
}

func (b *contactBody) toContact() *tracking.Contact {
	return (*tracking.Contact)(b)
}

type placeBody struct {
	LngLat   *tracking.LngLat `json:"lnglat"`
	Customer *contactBody     `json:"customer"`
	Address  string           `json:"address"`
}

func (b *placeBody) toPlace() *tracking.Place {
	if b == nil {
		return nil
	}
	return &tracking.Place{LngLat: b.LngLat, Customer: b.Customer.toContact(), Address: b.Address}
}

type windowBody struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// step is when, by the phone, and where a driver did something.
type step struct {
	At     time.Time        `json:"at"`
	LngLat *tracking.LngLat `json:"lnglat"`
}

func (b step) toStep() tracking.Step { return tracking.Step{At: b.At, LngLat: b.LngLat} }

// reason is why a task failed, was declined or was cancelled. An empty word is none.
type reason struct {
	Text string              `json:"reason"`
	Code tracking.ReasonCode `json:"reason_code"`
}

func (b reason) toReason() tracking.Reason { return tracking.Reason{Code: b.Code, Text: b.Text} }

// completion is how a task ended. An empty word is not the default: only an absent one is.
type completion struct {
	Outcome ending `json:"outcome"`
	reason
	ReceivedBy string `json:"received_by"`
	Note       string `json:"note"`
}

func (b completion) toCompletion() tracking.Completion {
	return tracking.Completion{
		Outcome: tracking.Outcome(b.Outcome), Reason: b.toReason(), ReceivedBy: b.ReceivedBy, Note: b.Note,
	}
}

// proofKind is evidence that a task can ask for.
type proofKind string

// Words are all kinds.
func (proofKind) Words() []string {
	return []string{
		string(tracking.ProofPhoto), string(tracking.ProofSignature),
		string(tracking.ProofName), string(tracking.ProofPIN),
	}
}

// toProof is nil where nothing was said of it.
func toProof(list []proofKind) (kinds []tracking.ProofKind) {
	if list == nil {
		return nil
	}
	return mapped(list, func(k proofKind) tracking.ProofKind { return tracking.ProofKind(k) })
}

// ending is an outcome that a task can be completed with.
type ending string

// Words are the outcomes that are not reached by a verb of their own.
func (ending) Words() []string {
	return []string{string(tracking.OutcomeSucceeded), string(tracking.OutcomeFailed)}
}

// taskStep is a step that a driver can take back.
type taskStep string

func (taskStep) Words() []string {
	return []string{string(tracking.StepStart), string(tracking.StepPickup), string(tracking.StepComplete)}
}

// mapped applies a conversion to a list; an empty list is [] in JSON, never null.
func mapped[T, W any](in []T, convert func(T) W) []W {
	out := make([]W, len(in))
	for i, v := range in {
		out[i] = convert(v)
	}
	return out
}
