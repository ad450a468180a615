package memory

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// driverLog is a driver's [tracking.FixLog]. The application's lock is held, and the driver's own
// unless that is exclusive.
type driverLog struct {
	app *application
	row *driverRow
}

func (l driverLog) InTrip(t time.Time) (bool, error) {
	return l.app.trips.byDriver[l.row.ID()].covers(l.row.person(), t), nil
}

func (l driverLog) Before(t time.Time, n int) ([]tracking.KeptFix, error) {
	return l.row.log.before(t.UnixMilli(), n), nil
}

func (l driverLog) From(t time.Time, n int) ([]tracking.KeptFix, error) {
	return l.row.log.from(t.UnixMilli(), n), nil
}

func (l driverLog) Put(fixes []tracking.KeptFix) error {
	for _, f := range fixes {
		l.row.log.put(f)
	}
	return nil
}

func (l driverLog) Forget(t time.Time) error {
	l.row.log.forget(t.UnixMilli())
	return nil
}

func (l driverLog) Mark(fixes []tracking.KeptFix) error {
	for _, f := range fixes {
		l.row.log.setMark(f.Time.UnixMilli(), f.Mark)
	}
	return nil
}

// record keeps a batch and moves the driver. The application's lock is held, and the driver's own
// unless that is exclusive.
func (a *application) record(row *driverRow, b tracking.FixBatch) (tracking.Recorded, error) {
	was := row.log.oldest()
	var d tracking.Driver
	row.readKept(&d)
	d.Position = a.position(row)
	rec, err := b.Record(driverLog{a, row}, d)
	if err != nil {
		return tracking.Recorded{}, err
	}
	a.move(row, &rec.Driver.Position)
	a.aging.note(row, was)
	return rec, nil
}

// RecordFixes implements [tracking.Store].
func (s *Store) RecordFixes(ctx context.Context, app tracking.AppID, b tracking.FixBatch) (tracking.Recorded, error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return tracking.Recorded{}, err
	}
	if a == nil {
		return tracking.Recorded{}, tracking.ErrNotFound
	}
	defer a.mu.RUnlock()
	row := a.drivers.row(b.DriverID)
	if row == nil {
		return tracking.Recorded{}, tracking.ErrNotFound
	}
	if err := rows.FixTexts(b.Fixes); err != nil {
		return tracking.Recorded{}, err
	}
	b = rows.Borrowed(b)
	mu := a.lock(row)
	mu.Lock()
	defer mu.Unlock()
	return a.record(row, b)
}

// fixesPerRead is how many fixes an iteration reads under one lock.
const fixesPerRead = 256

// Fixes implements [tracking.TripReader].
func (s *Store) Fixes(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, r tracking.FixRange,
) iter.Seq2[tracking.Fix, error] {
	return func(yield func(tracking.Fix, error) bool) {
		from, to := rows.Window(r)
		left := r.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		size := min(left, 16)
		for full := true; full && left > 0; size = min(left, fixesPerRead) {
			var buf []tracking.Fix
			var err error
			buf, full, err = s.readFixes(ctx, app, driver, r.Person, make([]tracking.Fix, 0, size), from, to, r.Newest)
			if err != nil {
				yield(tracking.Fix{}, err)
				return
			}
			for _, f := range buf {
				if !yield(f, nil) {
					return
				}
			}
			left -= len(buf)
			if n := len(buf); n > 0 && r.Newest {
				to = buf[n-1].Time.UnixMilli() - 1
			} else if n > 0 {
				from = buf[n-1].Time.UnixMilli() + 1
			}
		}
	}
}

// KeptFixes implements [tracking.TripReader].
func (s *Store) KeptFixes(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, r tracking.FixRange,
) ([]tracking.KeptFix, error) {
	a, err := s.read(ctx, app)
	if a == nil || err != nil {
		return nil, err
	}
	defer a.mu.RUnlock()
	row := a.drivers.row(driver)
	if row == nil || r.Person != "" && row.person() != r.Person {
		return nil, nil
	}
	from, to := rows.Window(r)
	mu := a.lock(row)
	mu.Lock()
	defer mu.Unlock()
	var list []tracking.KeptFix
	if r.Newest {
		list = row.log.before(to+1, r.Limit)
	} else {
		list = row.log.from(from, r.Limit)
	}
	outside := func(f tracking.KeptFix) bool { t := f.Time.UnixMilli(); return t < from || t > to }
	if end := slices.IndexFunc(list, outside); end >= 0 {
		list = list[:end]
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list, nil
}

// readFixes reads some of a driver's fixes; see fixLog.read.
func (s *Store) readFixes(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, person string, buf []tracking.Fix,
	from, to int64, newest bool,
) ([]tracking.Fix, bool, error) {
	a, err := s.read(ctx, app)
	if a == nil || err != nil {
		return nil, false, err
	}
	defer a.mu.RUnlock()
	row := a.drivers.row(driver)
	if row == nil || person != "" && row.person() != person {
		return nil, false, nil
	}
	mu := a.lock(row)
	mu.Lock()
	defer mu.Unlock()
	buf, full := row.log.read(buf, from, to, newest)
	return buf, full, nil
}
