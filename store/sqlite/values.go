package sqlite

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// How Go values stand in columns.

// zeroMillis is the zero time in UTC milliseconds.
const zeroMillis = -62135596800000

// millis is t in a column: whole UTC milliseconds, NULL for the zero time.
func millis(t time.Time) any {
	if ms := t.UnixMilli(); ms != zeroMillis {
		return ms
	}
	return nil
}

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// instant reads a column of milliseconds.
type instant struct{ time.Time }

func (i *instant) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		i.Time = time.Time{}
	case int64:
		i.Time = fromMillis(v)
	default:
		return fmt.Errorf("a time is stored as %T", src)
	}
	return nil
}

// hashValue is h in a column; NULL for none.
func hashValue(h tracking.Hash) any {
	if h.IsZero() {
		return nil
	}
	return h[:]
}

// hash reads a column of SHA-256.
type hash struct{ tracking.Hash }

func (h *hash) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		h.Hash = tracking.Hash{}
	case []byte:
		if len(v) != len(h.Hash) {
			return fmt.Errorf("a hash is stored in %d bytes", len(v))
		}
		copy(h.Hash[:], v)
	default:
		return fmt.Errorf("a hash is stored as %T", src)
	}
	return nil
}

// hashesValue is a list of hashes in a column: their bytes one after another; NULL for none.
func hashesValue(list []tracking.Hash) any {
	if len(list) == 0 {
		return nil
	}
	b := make([]byte, 0, len(list)*len(tracking.Hash{}))
	for _, h := range list {
		b = append(b, h[:]...)
	}
	return b
}

// hashes reads what hashesValue wrote.
type hashes []tracking.Hash

func (h *hashes) Scan(src any) error {
	*h = nil
	switch v := src.(type) {
	case nil:
	case []byte:
		const size = len(tracking.Hash{})
		if len(v)%size != 0 {
			return fmt.Errorf("hashes are stored in %d bytes", len(v))
		}
		for ; len(v) > 0; v = v[size:] {
			*h = append(*h, tracking.Hash(v[:size]))
		}
	default:
		return fmt.Errorf("hashes are stored as %T", src)
	}
	return nil
}

// text reads a column that may be NULL, which is "".
type text string

func (t *text) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*t = ""
	case string:
		*t = text(v)
	case []byte:
		*t = text(v)
	default:
		return fmt.Errorf("a text is stored as %T", src)
	}
	return nil
}

// textValue is s in a column where NULL stands for "".
func textValue(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func readingValue(r tracking.Reading) any {
	if !r.Known {
		return nil
	}
	return r.Value
}

func reading(n sql.NullFloat64) tracking.Reading {
	return tracking.Reading{Value: n.Float64, Known: n.Valid}
}

// jsonValue is v, a map or a slice of n elements, in a column; NULL for an empty one. JSON would
// change a text that is not valid UTF-8: see [rows.ChangesetTexts].
func jsonValue(v any, n int) (any, error) {
	if n == 0 {
		return nil, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return string(b), nil
}

// fromJSON reads what jsonValue wrote.
func fromJSON[T any](t text) (v T, err error) {
	if t == "" {
		return v, nil
	}
	if err := json.Unmarshal([]byte(t), &v); err != nil {
		return v, fmt.Errorf("a stored list does not parse: %w", err)
	}
	return v, nil
}

// pointRow is a place on the map that may be missing.
type pointRow struct {
	Lng, Lat sql.NullFloat64
}

func (r pointRow) point() *tracking.LngLat {
	if !r.Lng.Valid || !r.Lat.Valid {
		return nil
	}
	return &tracking.LngLat{Lng: r.Lng.Float64, Lat: r.Lat.Float64}
}

func pointValues(p *tracking.LngLat) (lng, lat any) {
	if p == nil {
		return nil, nil
	}
	return p.Lng, p.Lat
}

// placeRow is a place that may be missing.
type placeRow struct {
	Lng, Lat sql.NullFloat64
	Address  sql.NullString
	Name     sql.NullString
	Mobile   text
}

func (r placeRow) place() *tracking.Place {
	if !r.Address.Valid {
		return nil
	}
	p := &tracking.Place{LngLat: pointRow{r.Lng, r.Lat}.point(), Address: r.Address.String}
	if r.Name.Valid {
		p.Customer = &tracking.Contact{Name: r.Name.String, Mobile: string(r.Mobile)}
	}
	return p
}

// placeValues are the five columns of a place.
func placeValues(p *tracking.Place) (v [5]any) {
	if p == nil {
		return v
	}
	v[0], v[1] = pointValues(p.LngLat)
	v[2] = p.Address
	if c := p.Customer; c != nil {
		v[3], v[4] = c.Name, c.Mobile
	}
	return v
}

// fixRow is a fix that may be missing.
type fixRow struct {
	Time                              sql.NullInt64
	Lng, Lat                          sql.NullFloat64
	EventID                           text `db:"event_id"`
	Accuracy, Speed, Bearing, Battery sql.NullFloat64
	Trusted                           sql.NullBool
}

func (r fixRow) fix() tracking.Fix {
	if !r.Time.Valid {
		return tracking.Fix{}
	}
	return tracking.Fix{
		LngLat: tracking.LngLat{Lng: r.Lng.Float64, Lat: r.Lat.Float64}, Time: fromMillis(r.Time.Int64),
		EventID: string(r.EventID), Accuracy: reading(r.Accuracy), Speed: reading(r.Speed), Bearing: reading(r.Bearing),
		Battery: reading(r.Battery), Trusted: r.Trusted.Bool,
	}
}

// appendFix appends the columns of a fix: time, lng, lat, event_id, accuracy, speed, bearing,
// battery, trusted.
func appendFix(args []any, f tracking.Fix) []any {
	return append(args, f.Time.UnixMilli(), f.LngLat.Lng, f.LngLat.Lat, f.EventID,
		readingValue(f.Accuracy), readingValue(f.Speed), readingValue(f.Bearing), readingValue(f.Battery), f.Trusted)
}

// endless is the end of a window that has not ended, and a time that nothing reaches.
const endless = math.MaxInt64

// atOnce is a time that everything has reached.
const atOnce = math.MinInt64
