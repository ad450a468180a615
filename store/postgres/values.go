package postgres

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed-8aba7b13/tracking"
)

// How Go values stand in columns. What is written are plain Go types, from which the type of a
// parameter is known also where statements are not prepared.

// zeroMillis is the zero time in UTC milliseconds.
const zeroMillis = -62135596800000

// endless is the end of a window that has not ended, and a time that nothing reaches.
const endless = math.MaxInt64

// millis is t in a column: whole UTC milliseconds, NULL for the zero time.
func millis(t time.Time) *int64 {
	if ms := t.UnixMilli(); ms != zeroMillis {
		return &ms
	}
	return nil
}

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// instant reads a column of milliseconds.
type instant struct{ time.Time }

// ScanInt64 implements [pgtype.Int64Scanner].
func (i *instant) ScanInt64(v pgtype.Int8) error {
	i.Time = time.Time{}
	if v.Valid {
		i.Time = fromMillis(v.Int64)
	}
	return nil
}

// hashValue is h in a column; nil, which is NULL, for none.
func hashValue(h tracking.Hash) []byte {
	if h.IsZero() {
		return nil
	}
	return h[:]
}

// hash reads a column of SHA-256.
type hash struct{ tracking.Hash }

// ScanBytes implements [pgtype.BytesScanner].
func (h *hash) ScanBytes(v []byte) error {
	h.Hash = tracking.Hash{}
	if v != nil && len(v) != len(h.Hash) {
		return fmt.Errorf("a hash is stored in %d bytes", len(v))
	}
	copy(h.Hash[:], v)
	return nil
}

// hashesValue is a list of hashes in a column; nil, which is NULL, for none.
func hashesValue(list []tracking.Hash) [][]byte {
	var values [][]byte
	for _, h := range list {
		values = append(values, h[:])
	}
	return values
}

// hashesOf reads what hashesValue wrote.
func hashesOf(values [][]byte) (list []tracking.Hash, err error) {
	for _, v := range values {
		var h hash
		if err := h.ScanBytes(v); err != nil {
			return nil, err
		}
		list = append(list, h.Hash)
	}
	return list, nil
}

// text reads a column that may be NULL, which is "".
type text string

// ScanText implements [pgtype.TextScanner].
func (t *text) ScanText(v pgtype.Text) error {
	*t = text(v.String)
	return nil
}

// textValue is s in a column where NULL stands for "".
func textValue[S ~string](s S) *string {
	if s == "" {
		return nil
	}
	return new(string(s))
}

// texts are the values of a column of texts.
func texts[S ~string](list []S) []string {
	if len(list) == 0 {
		return nil
	}
	values := make([]string, len(list))
	for i, s := range list {
		values[i] = string(s)
	}
	return values
}

func readingValue(r tracking.Reading) *float64 {
	if !r.Known {
		return nil
	}
	return &r.Value
}

// reading reads a column of readings.
type reading struct{ tracking.Reading }

// ScanFloat64 implements [pgtype.Float64Scanner].
func (r *reading) ScanFloat64(v pgtype.Float8) error {
	r.Reading = tracking.Reading{Value: v.Float64, Known: v.Valid}
	return nil
}

// jsonValue is v, a map or a slice of n elements, in a column; nil, which is NULL, for an empty one.
func jsonValue(v any, n int) (*string, error) {
	if n == 0 {
		return nil, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return new(string(b)), nil
}

// pointRow is a place on the map that may be missing.
type pointRow struct{ lng, lat *float64 }

func (r *pointRow) dest() []any { return []any{&r.lng, &r.lat} }

func (r *pointRow) point() *tracking.LngLat {
	if r.lng == nil || r.lat == nil {
		return nil
	}
	return &tracking.LngLat{Lng: *r.lng, Lat: *r.lat}
}

func pointValues(p *tracking.LngLat) (lng, lat *float64) {
	if p == nil {
		return nil, nil
	}
	return &p.Lng, &p.Lat
}

// placeRow is a place that may be missing.
type placeRow struct {
	pointRow
	address, name *string
	mobile        text
}

func (r *placeRow) dest() []any { return append(r.pointRow.dest(), &r.address, &r.name, &r.mobile) }

func (r *placeRow) place() *tracking.Place {
	if r.address == nil {
		return nil
	}
	p := &tracking.Place{LngLat: r.point(), Address: *r.address}
	if r.name != nil {
		p.Customer = &tracking.Contact{Name: *r.name, Mobile: string(r.mobile)}
	}
	return p
}

// placeValues are the five columns of a place.
func placeValues(p *tracking.Place) []any { return appendPlace(nil, p) }

func appendPlace(values []any, p *tracking.Place) []any {
	var lng, lat *float64
	var address, name, mobile *string
	if p != nil {
		lng, lat = pointValues(p.LngLat)
		address = &p.Address
		if c := p.Customer; c != nil {
			name, mobile = &c.Name, &c.Mobile
		}
	}
	return append(values, lng, lat, address, name, mobile)
}

// fixRow is a fix that may be missing.
type fixRow struct {
	pointRow
	time                              *int64
	eventID                           text
	accuracy, speed, bearing, battery reading
	trusted                           *bool
}

func (r *fixRow) dest() []any {
	return []any{
		&r.time, &r.lng, &r.lat, &r.eventID, &r.accuracy, &r.speed, &r.bearing, &r.battery, &r.trusted,
	}
}

func (r *fixRow) fix() tracking.Fix {
	at := r.point()
	if r.time == nil || at == nil {
		return tracking.Fix{}
	}
	return tracking.Fix{
		LngLat: *at, Time: fromMillis(*r.time), EventID: string(r.eventID), Accuracy: r.accuracy.Reading,
		Speed: r.speed.Reading, Bearing: r.bearing.Reading, Battery: r.battery.Reading,
		Trusted: r.trusted != nil && *r.trusted,
	}
}

// fixValues are the columns of a fix that may be missing, in the order of fixRow.
func fixValues(f tracking.Fix) []any {
	if f.Time.IsZero() {
		none := (*float64)(nil)
		return []any{(*int64)(nil), none, none, (*string)(nil), none, none, none, none, (*bool)(nil)}
	}
	return []any{
		f.Time.UnixMilli(), f.LngLat.Lng, f.LngLat.Lat, textValue(f.EventID), readingValue(f.Accuracy),
		readingValue(f.Speed), readingValue(f.Bearing), readingValue(f.Battery), f.Trusted,
	}
}

// arrays are columns of some names and types as rows u, of parameters from $first on: an array for
// each. In the list of a SELECT the server walks all arrays at once; as a function in FROM it would
// put each into a table of its own first, which takes five times as long. An array that is NULL is a
// column of NULLs, but not the first one.
func arrays(first int, names, types string) string {
	return `(SELECT ` + arrayColumns(first, names, types) + `) u`
}

// orderedArrays are arrays with their place o.
func orderedArrays(first int, names, types string) string {
	typ, _, _ := strings.Cut(types, ",")
	return `(SELECT ` + arrayColumns(first, names, types) +
		`, generate_series(1, cardinality($` + strconv.Itoa(first) + `::` + typ + `[])) AS o) u`
}

func arrayColumns(first int, names, types string) string {
	list := strings.Split(names, ",")
	for i, typ := range strings.Split(types, ",") {
		typ, _, _ = strings.Cut(strings.TrimSpace(typ), ">")
		list[i] = "unnest($" + strconv.Itoa(first+i) + "::" + typ + "[]) AS " + strings.TrimSpace(list[i])
	}
	return strings.Join(list, ", ")
}

// arrayValues are those columns of u as what they become.
func arrayValues(names, types string) string {
	list := strings.Split(names, ",")
	for i, typ := range strings.Split(types, ",") {
		list[i] = "u." + strings.TrimSpace(list[i])
		if _, becomes, ok := strings.Cut(typ, ">"); ok {
			list[i] += "::" + becomes
		}
	}
	return strings.Join(list, ", ")
}

// columns turns rows into an array for each column.
func columns(rows [][]any) []any {
	list := make([]any, len(rows[0]))
	for i, v := range rows[0] {
		switch v.(type) {
		case string:
			list[i] = column[string](rows, i)
		case int:
			list[i] = column[int](rows, i)
		case int64:
			list[i] = column[int64](rows, i)
		case bool:
			list[i] = column[bool](rows, i)
		case *string:
			list[i] = sparseColumn[string](rows, i)
		case *int64:
			list[i] = sparseColumn[int64](rows, i)
		case *float64:
			list[i] = sparseColumn[float64](rows, i)
		case []byte:
			list[i] = bytesColumn(rows, i)
		default:
			panic(fmt.Sprintf("postgres: no array of %T", v))
		}
	}
	return list
}

func column[T any](rows [][]any, i int) []T {
	list := make([]T, len(rows))
	for n, row := range rows {
		list[n] = row[i].(T)
	}
	return list
}

func sparseColumn[T any](rows [][]any, i int) any {
	return plain(len(rows), func(n int) *T { return rows[n][i].(*T) })
}

func bytesColumn(rows [][]any, i int) [][]byte {
	list := column[[]byte](rows, i)
	if !slices.ContainsFunc(list, func(v []byte) bool { return v != nil }) {
		return nil
	}
	return list
}

var inArray = strings.NewReplacer(`"`, `\"`, `\`, `\\`)

// arrayValue is an array of texts as a text; nil, which is NULL, for an empty one.
func arrayValue(list []string) *string {
	if len(list) == 0 {
		return nil
	}
	var b strings.Builder
	for i, s := range list {
		b.WriteByte("{,"[min(i, 1)])
		b.WriteByte('"')
		_, _ = inArray.WriteString(&b, s)
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return new(b.String())
}
