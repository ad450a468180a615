package httpadapter

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed-8aba7b13/tracking"
)

// The answers that are asked for most are written without encoding/json, to the same bytes: it walks
// types, and takes several times as long.

// appender is the data of such an answer.
type appender interface{ appendTo(*jsonText) }

// buffers are the *jsonText of answers that have been written, but for large ones.
var buffers = sync.Pool{New: func() any { return new(jsonText) }}

const largeBuffer = 64 << 10

// appendTo is s, whose data are these.
func (s success) appendTo(j *jsonText, data appender) {
	j.open('{')
	j.text("message", s.Message)
	j.name("success")
	j.b = strconv.AppendBool(j.b, s.Success)
	j.name("data")
	data.appendTo(j)
	j.close('}')
	j.b = append(j.b, '\n')
}

// taskAnswer is the data of an answer with one task.
type taskAnswer struct {
	task        shownTask
	trackingURL string // "" for none
}

func (a taskAnswer) appendTo(j *jsonText) {
	j.open('{')
	j.name("task")
	a.task.appendTo(j)
	j.textIf("tracking_url", a.trackingURL)
	j.close('}')
}

// taskList is that of an answer with a page of n tasks.
type taskList struct {
	more bool
	next string
	n    int
	task func(i int) shownTask
}

func (a taskList) appendTo(j *jsonText) {
	j.open('{')
	j.name("has_more")
	j.b = strconv.AppendBool(j.b, a.more)
	j.textIf("next", a.next)
	j.name("task_list")
	j.open('[')
	for i := range a.n {
		j.element()
		t := a.task(i)
		t.appendTo(j)
	}
	j.close(']')
	j.close('}')
}

// fixOutcomes is that of an answer to fixes.
type fixOutcomes struct {
	Outcomes []tracking.FixOutcome `json:"outcomes"`
}

func (a fixOutcomes) appendTo(j *jsonText) {
	j.open('{')
	texts(j, "outcomes", a.Outcomes)
	j.close('}')
}

// shownTask is a task and what of it is shown. It is written as it stands: its wire form, of which
// encoding/json makes the same, would be a copy of all of it that is thrown away at once.
type shownTask struct {
	*tracking.Task
	now        time.Time
	whole      bool // as the application sees it; else as its driver does
	noContacts bool
	stop       int             // which of its driver's stops it comes next at, from 1 on; 0: none
	waits      *tracking.Waits // of a whole one
}

// shownWhole is a task as the application sees it.
func shownWhole(t *tracking.Task, now time.Time) shownTask {
	shown := shownTask{Task: t, now: now, whole: true}
	if t.Seeks() {
		shown.waits = t.Waits(now)
	}
	return shown
}

func (t *shownTask) appendTo(j *jsonText) {
	j.open('{')
	j.text("task_id", string(t.ID))
	j.int("type", int64(t.Type))
	j.time("time", t.Time)
	j.text("notes", t.Notes)
	j.text("status", string(t.Status))
	j.text("outcome", string(t.Outcome))
	j.text("reason", t.Reason)
	j.text("reason_code", string(t.ReasonCode))
	j.place("pickup", t.Pickup, !t.noContacts)
	j.place("drop", t.Drop, !t.noContacts)
	j.text("order_id", t.OrderID)
	j.text("driver_id", string(t.DriverID))
	j.text("customer_note", t.CustomerNote)
	j.text("retry_of", string(t.RetryOf))
	j.text("retried_by", string(t.RetriedBy))
	j.time("created_at", t.CreatedAt)
	j.time("updated_at", t.UpdatedAt)
	j.int("version", t.Version)
	j.timeIf("assigned_at", t.AssignedAt)
	j.timeIf("started_at", t.StartedAt)
	j.timeIf("picked_up_at", t.PickedUpAt)
	j.timeIf("completed_at", t.CompletedAt)
	if w := &t.Window; !w.From.IsZero() || !w.To.IsZero() {
		j.name("window")
		j.open('{')
		j.timeIf("from", w.From)
		j.timeIf("to", w.To)
		j.close('}')
	}
	if promised := t.Promised(); !promised.IsZero() {
		j.time("promised", promised)
		if t.Late(t.now) {
			j.name("late")
			j.b = append(j.b, "true"...)
		}
	}
	j.textMapIf("requires", t.Requires)
	j.textMapIf("properties", t.Properties)
	j.text("phase", string(t.Phase()))
	j.intIf("stop", t.stop)
	j.timeIf("pickup_arrived_at", t.PickupArrivedAt)
	j.timeIf("arrived_at", t.ArrivedAt)
	if len(t.Proof) > 0 {
		texts(j, "proof", t.Proof)
	}
	if len(t.Proofs) > 0 {
		j.other("proofs", mapped(t.Proofs, proofOf))
	}
	j.textIf("received_by", t.ReceivedBy)
	j.textIf("driver_note", t.DriverNote)
	if t.CompletedFrom != nil {
		j.other("completed_lnglat", whereaboutsOf(*t.Task))
	}
	j.timeIf("erased_at", t.ErasedAt)
	if t.whole {
		j.textIf("pin", string(t.PIN))
		j.intIf("wrong_pins", t.WrongPINs)
		if len(t.Stuck) > 0 {
			j.other("stuck", mapped(t.Stuck, stuckOf))
		}
		if t.waits != nil {
			j.other("waiting", waitingOf(t.waits))
		}
	}
	j.close('}')
}

func (j *jsonText) place(name string, p *tracking.Place, contact bool) {
	if p == nil {
		return
	}
	j.name(name)
	j.open('{')
	if p.LngLat != nil {
		j.name("lnglat")
		j.open('[')
		j.float(p.LngLat.Lng)
		j.element()
		j.float(p.LngLat.Lat)
		j.close(']')
	}
	j.text("address", p.Address)
	if c := p.Customer; c != nil && contact {
		j.name("customer")
		j.open('{')
		j.text("name", c.Name)
		j.text("mobile", c.Mobile)
		j.close('}')
	}
	j.close('}')
}

// jsonText is JSON as it grows. The first error sticks. What adds a piece of several parts stores them
// at once: each store of b is one that the garbage collector has to be told of.
type jsonText struct {
	b   []byte
	err error
}

func (j *jsonText) open(bracket byte)  { j.b = append(j.b, bracket) }
func (j *jsonText) close(bracket byte) { j.b = append(j.b, bracket) }

// element begins an element, or a member.
func (j *jsonText) element() {
	if c := j.b[len(j.b)-1]; c != '{' && c != '[' {
		j.b = append(j.b, ',')
	}
}

// name begins a member, whose name needs no escapes.
func (j *jsonText) name(name string) {
	j.element()
	b := append(j.b, '"')
	b = append(b, name...)
	j.b = append(b, '"', ':')
}

func (j *jsonText) text(name, v string) {
	j.name(name)
	j.string(v)
}

func (j *jsonText) textIf(name, v string) {
	if v != "" {
		j.text(name, v)
	}
}

func (j *jsonText) time(name string, t time.Time) {
	j.name(name)
	b := append(j.b, '"')
	if !t.IsZero() {
		b = appendTime(b, t)
	}
	j.b = append(b, '"')
}

func (j *jsonText) timeIf(name string, t time.Time) {
	if !t.IsZero() {
		j.time(name, t)
	}
}

func (j *jsonText) int(name string, v int64) {
	j.name(name)
	j.b = strconv.AppendInt(j.b, v, 10)
}

func (j *jsonText) intIf(name string, v int) {
	if v != 0 {
		j.int(name, int64(v))
	}
}

func (j *jsonText) textMapIf(name string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	j.name(name)
	j.open('{')
	for _, key := range slices.Sorted(maps.Keys(m)) {
		j.element()
		j.string(key)
		j.b = append(j.b, ':')
		j.string(m[key])
	}
	j.close('}')
}

func texts[T ~string](j *jsonText, name string, list []T) {
	j.name(name)
	if list == nil {
		j.b = append(j.b, "null"...)
		return
	}
	j.open('[')
	for _, v := range list {
		j.element()
		j.string(string(v))
	}
	j.close(']')
}

// other is a member that is rare.
func (j *jsonText) other(name string, v any) {
	text, err := encode(v)
	if err != nil {
		j.err = firstError(j.err, err)
		return
	}
	j.name(name)
	j.b = append(j.b, bytes.TrimSuffix(text, []byte("\n"))...)
}

// float is a number as encoding/json writes it: as ECMAScript does.
func (j *jsonText) float(f float64) {
	if size := math.Abs(f); math.IsNaN(f) || math.IsInf(f, 0) || size != 0 && size < 1e-6 || size >= 1e21 {
		text, err := json.Marshal(f)
		j.b, j.err = append(j.b, text...), firstError(j.err, err)
		return
	}
	j.b = strconv.AppendFloat(j.b, f, 'f', -1, 64)
}

// string is a text as encoding/json writes it without escapes for HTML.
func (j *jsonText) string(s string) {
	const hex = "0123456789abcdef"
	b := append(j.b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				b = append(append(b, s[from:i]...), `\ufffd`...)
				from = i + n
			case r == '\u2028' || r == '\u2029': // ends of lines to JavaScript
				b = append(append(b, s[from:i]...), `\u202`...)
				b = append(b, hex[r&0xf])
				from = i + n
			}
			i += n
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		i++
		from = i
	}
	j.b = append(append(b, s[from:]...), '"')
}
