package httpadapter

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed-8aba7b13/tracking"
)

// The answers that are asked for most are written without encoding/json, to the same bytes: it walks
// types, and takes several times as long.

// buffers are the *jsonText of answers that have been written, but for large ones.
var buffers = sync.Pool{New: func() any { return new(jsonText) }}

const largeBuffer = 64 << 10

// begin is the envelope of an answer up to its data. What goes into it is written before the handler
// returns, so that a task need not go to the heap.
func begin(message string) *jsonText {
	j := buffers.Get().(*jsonText)
	j.b, j.err = append(j.b[:0].text(`{"message":`, message), `,"success":true,"data":`...), nil
	return j
}

func (j *jsonText) end() (answer, error) {
	j.b = append(j.b, '}', '\n')
	return j, nil
}

func (j *jsonText) write(h *Handler, w *recorder, r *request) error {
	if j.err != nil {
		return h.writeUnencoded(w, r, j.err)
	}
	r.jsonHeaders()
	if err := h.writeBody(w, r, http.StatusOK, j.b); err != nil {
		return err // and HTTP/2 may yet be reading the buffer: it is for nobody else
	}
	if cap(j.b) <= largeBuffer {
		buffers.Put(j)
	}
	return nil
}

// answerTask is an answer with one task, and the address of its page unless that is "".
func answerTask(message string, t *shownTask, trackingURL string) (answer, error) {
	j := begin(message)
	j.b = append(j.b, `{"task":`...)
	t.appendTo(j)
	j.b = j.b.textIf(`,"tracking_url":`, trackingURL).close('}')
	return j.end()
}

// answerTasks is one with a page of n tasks.
func answerTasks(message string, more bool, next string, n int, task func(i int) shownTask) (answer, error) {
	j := begin(message)
	j.b = strconv.AppendBool(append(j.b, `{"has_more":`...), more)
	j.b = append(j.b.textIf(`,"next":`, next), `,"task_list":[`...)
	for i := range n {
		j.b = j.b.element()
		t := task(i)
		t.appendTo(j)
	}
	j.b = j.b.close(']').close('}')
	return j.end()
}

// answerFixes is one to fixes.
func answerFixes(message string, outcomes []tracking.FixOutcome) (answer, error) {
	j := begin(message)
	j.b = texts(j.b, `{"outcomes":`, outcomes).close('}')
	return j.end()
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
	if seeks(t) {
		shown.waits = t.Waits(now)
	}
	return shown
}

func (h *Handler) shownWhole(t *tracking.Task) shownTask {
	var now time.Time
	if seeks(t) || promises(t) { // else it is not asked for, which would take as long as to write a place
		now = h.now()
	}
	return shownWhole(t, now)
}

// seeks and promises are t.Seeks and whether t.Promised is something, without a copy of the task,
// which is a kilobyte.
func seeks(t *tracking.Task) bool    { return t.Waiting || !t.AssignAt.IsZero() }
func promises(t *tracking.Task) bool { return !t.Promise.IsZero() || !t.Window.To.IsZero() }

func (t *shownTask) appendTo(j *jsonText) {
	b := append(j.b, '{')
	b = b.text(`"task_id":`, string(t.ID))
	b = b.int(`,"type":`, int64(t.Type))
	b = b.time(`,"time":`, t.Time)
	b = b.text(`,"notes":`, t.Notes)
	b = b.text(`,"status":`, string(t.Status))
	b = b.text(`,"outcome":`, string(t.Outcome))
	b = b.text(`,"reason":`, t.Reason)
	b = b.text(`,"reason_code":`, string(t.ReasonCode))
	b = j.place(b, `,"pickup":{`, t.Pickup, !t.noContacts)
	b = j.place(b, `,"drop":{`, t.Drop, !t.noContacts)
	b = b.text(`,"order_id":`, t.OrderID)
	b = b.text(`,"driver_id":`, string(t.DriverID))
	b = b.text(`,"customer_note":`, t.CustomerNote)
	b = b.text(`,"retry_of":`, string(t.RetryOf))
	b = b.text(`,"retried_by":`, string(t.RetriedBy))
	b = b.time(`,"created_at":`, t.CreatedAt)
	b = b.time(`,"updated_at":`, t.UpdatedAt)
	b = b.int(`,"version":`, t.Version)
	b = b.timeIf(`,"assigned_at":`, t.AssignedAt)
	b = b.timeIf(`,"started_at":`, t.StartedAt)
	b = b.timeIf(`,"picked_up_at":`, t.PickedUpAt)
	b = b.timeIf(`,"completed_at":`, t.CompletedAt)
	if w := &t.Window; !w.From.IsZero() || !w.To.IsZero() {
		b = b.window(w)
	}
	if promises(t.Task) {
		b = b.time(`,"promised":`, t.Promised())
		if t.Late(t.now) {
			b = append(b, `,"late":true`...)
		}
	}
	b = b.textMapIf(`,"requires":`, t.Requires)
	b = b.textMapIf(`,"properties":`, t.Properties)
	b = b.text(`,"phase":`, t.phase())
	b = b.intIf(`,"stop":`, t.stop)
	b = b.timeIf(`,"pickup_arrived_at":`, t.PickupArrivedAt)
	b = b.timeIf(`,"arrived_at":`, t.ArrivedAt)
	if len(t.Proof) > 0 {
		b = texts(b, `,"proof":`, t.Proof)
	}
	if len(t.Proofs) > 0 {
		b = j.other(b, `,"proofs":`, mapped(t.Proofs, proofOf))
	}
	b = b.textIf(`,"received_by":`, t.ReceivedBy)
	b = b.textIf(`,"driver_note":`, t.DriverNote)
	if t.CompletedFrom != nil {
		b = j.other(b, `,"completed_lnglat":`, whereaboutsOf(*t.Task))
	}
	b = b.timeIf(`,"erased_at":`, t.ErasedAt)
	if t.whole {
		b = b.textIf(`,"pin":`, string(t.PIN))
		b = b.intIf(`,"wrong_pins":`, t.WrongPINs)
		if len(t.Stuck) > 0 {
			b = j.other(b, `,"stuck":`, mapped(t.Stuck, stuckOf))
		}
		if t.waits != nil {
			b = j.other(b, `,"waiting":`, waitingOf(t.waits))
		}
	}
	j.b = b.close('}')
}

// phase is t.Phase, without a copy of the task where the status says it all.
func (t *shownTask) phase() string {
	switch t.Status {
	case tracking.StatusAssigned:
		return string(tracking.PhaseAssigned)
	case tracking.StatusCompleted:
		return string(tracking.PhaseDone)
	case tracking.StatusInProgress:
		return string(t.Phase())
	}
	return string(tracking.PhaseCreated)
}

// jsonText is JSON as it grows. The first error sticks.
type jsonText struct {
	b   jsonBytes
	err error
}

func (j *jsonText) place(b jsonBytes, name string, p *tracking.Place, contact bool) jsonBytes {
	if p == nil {
		return b
	}
	b = append(b, name...)
	if at := p.LngLat; at != nil {
		b = append(b, `"lnglat":[`...)
		b = append(j.float(b, at.Lng), ',')
		b = append(j.float(b, at.Lat), "],"...)
	}
	b = b.text(`"address":`, p.Address)
	if c := p.Customer; c != nil && contact {
		b = b.text(`,"customer":{"name":`, c.Name).text(`,"mobile":`, c.Mobile).close('}')
	}
	return b.close('}')
}

// other is a member that is rare.
func (j *jsonText) other(b jsonBytes, name string, v any) jsonBytes {
	text, err := encode(v)
	if err != nil {
		j.err = firstError(j.err, err)
		return b
	}
	return append(append(b, name...), bytes.TrimSuffix(text, []byte("\n"))...)
}

// float is a number as encoding/json writes it: as ECMAScript does.
func (j *jsonText) float(b jsonBytes, f float64) jsonBytes {
	if size := math.Abs(f); math.IsNaN(f) || math.IsInf(f, 0) || size != 0 && size < 1e-6 || size >= 1e21 {
		text, err := json.Marshal(f)
		j.err = firstError(j.err, err)
		return append(b, text...)
	}
	// Places have seven decimals at most, as a rule. Where so few digits are read as f they are the
	// shortest that are, as no two numbers of up to 15 digits are read as the same; they take a third of
	// the time to write.
	if n := int64(math.Round(f * 1e7)); math.Abs(f) < 1e7 && float64(n)/1e7 == f && n != 0 {
		return b.tenMillionths(n)
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64)
}

// jsonBytes are what has been written. Members come with all that stands before their value, such as
// `,"name":`, as one text is written in less time than its parts. Methods return them longer, as
// append does, and do not keep them: each store in memory that is not the stack's is one that the
// garbage collector has to be told of.
type jsonBytes []byte

func (b jsonBytes) close(bracket byte) jsonBytes { return append(b, bracket) }

// element begins an element, or a member of a map.
func (b jsonBytes) element() jsonBytes {
	if c := b[len(b)-1]; c != '{' && c != '[' {
		b = append(b, ',')
	}
	return b
}

func (b jsonBytes) window(w *tracking.Window) jsonBytes {
	b = append(b, `,"window":{`...)
	if b = b.timeIf(`"from":`, w.From); !w.From.IsZero() && !w.To.IsZero() {
		b = append(b, ',')
	}
	return b.timeIf(`"to":`, w.To).close('}')
}

func (b jsonBytes) text(name, v string) jsonBytes { return append(b, name...).string(v) }

func (b jsonBytes) textIf(name, v string) jsonBytes {
	if v == "" {
		return b
	}
	return b.text(name, v)
}

func (b jsonBytes) time(name string, t time.Time) jsonBytes {
	b = append(append(b, name...), '"')
	if !t.IsZero() {
		b = appendTime(b, t)
	}
	return append(b, '"')
}

func (b jsonBytes) timeIf(name string, t time.Time) jsonBytes {
	if t.IsZero() {
		return b
	}
	return b.time(name, t)
}

func (b jsonBytes) int(name string, v int64) jsonBytes {
	return strconv.AppendInt(append(b, name...), v, 10)
}

func (b jsonBytes) tenMillionths(n int64) jsonBytes {
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	b = strconv.AppendInt(b, n/1e7, 10)
	if n %= 1e7; n == 0 {
		return b
	}
	digits := 7
	for ; n%10 == 0; n /= 10 {
		digits--
	}
	b = append(b, ".0000000"[:1+digits]...)
	for i := len(b) - 1; n > 0; i, n = i-1, n/10 {
		b[i] = byte('0' + n%10)
	}
	return b
}

func (b jsonBytes) intIf(name string, v int) jsonBytes {
	if v == 0 {
		return b
	}
	return b.int(name, int64(v))
}

func (b jsonBytes) textMapIf(name string, m map[string]string) jsonBytes {
	if len(m) == 0 {
		return b
	}
	b = append(append(b, name...), '{')
	for _, key := range slices.Sorted(maps.Keys(m)) {
		b = append(b.element().string(key), ':').string(m[key])
	}
	return b.close('}')
}

func texts[T ~string](b jsonBytes, name string, list []T) jsonBytes {
	b = append(b, name...)
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for _, v := range list {
		b = b.element().string(string(v))
	}
	return b.close(']')
}

// plain are the bytes that need no escape.
var plain = func() (is [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// allPlain reports whether s is nothing but plain bytes. It looks at eight at a time, which takes a
// third less than one by one: the highest bit of each becomes one where it is not plain.
func allPlain(s []byte) bool {
	const each = 0x0101010101010101
	for ; len(s) >= 8; s = s[8:] {
		w := binary.LittleEndian.Uint64(s)
		quote, slash := w^'"'*each, w^'\\'*each
		if (w|(w-' '*each)|(quote-each)|(slash-each))&(0x80*each) != 0 {
			return false
		}
	}
	for _, c := range s {
		if !plain[c] {
			return false
		}
	}
	return true
}

// string is a text as encoding/json writes it without escapes for HTML.
func (b jsonBytes) string(s string) jsonBytes {
	start := len(b) + 1
	b = append(append(b, '"'), s...)
	if !allPlain(b[start:]) {
		b = b[:start].escaped(s)
	}
	return append(b, '"')
}

func (b jsonBytes) escaped(s string) jsonBytes {
	const hex = "0123456789abcdef"
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
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
	return append(b, s[from:]...)
}
