package memory

import (
	"context"
	"iter"
	"math"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// driverLog is a driver's [tracking.FixLog]. The application's lock is held, and the driver's own unless that is exclusive.
type driverLog struct {
	app *application
	row *driverRow
}

func (l driverLog) InTrip(t time.Time) (bool, error) {
	return l.app.trips.byDriver[l.row.driver.ID].covers(t), nil
}

func (l driverLog) Has(t time.Time) (bool, error) { return l.row.log.has(t.UnixMilli()), nil }

func (l driverLog) Before(t time.Time, good bool) (tracking.KeptFix, bool, error) {
	f, ok := l.row.log.before(t.UnixMilli(), good)
	return f, ok, nil
}

func (l driverLog) After(t time.Time) iter.Seq2[tracking.KeptFix, error] {
	return func(yield func(tracking.KeptFix, error) bool) {
		log := &l.row.log
		for c, i := log.find(t.UnixMilli() + 1); c < len(log.chunks); c, i = c+1, 0 {
			for _, p := range log.chunks[c].fixes[i:] {
				if !yield(log.chunks[c].unpack(p), nil) {
					return
				}
			}
		}
	}
}

func (l driverLog) Put(f tracking.KeptFix) error {
	l.row.log.put(f)
	return nil
}

// keptBatch returns b with its times as a store keeps them, and its fixes copied.
func keptBatch(b tracking.FixBatch) tracking.FixBatch {
	b.SeenAt = ms(b.SeenAt)
	b.Fixes = append([]tracking.Fix(nil), b.Fixes...)
	for i := range b.Fixes {
		f := &b.Fixes[i]
		f.Time = ms(f.Time)
		for _, r := range [...]*tracking.Reading{&f.Accuracy, &f.Speed, &f.Bearing, &f.Battery} {
			if !r.Known {
				r.Value = 0
			}
		}
	}
	return b
}

// record keeps a batch and moves the driver. The application's lock is held, and the driver's own unless that is exclusive.
func (a *application) record(row *driverRow, b tracking.FixBatch) (tracking.Recorded, error) {
	before := row.driver.Position.Fix
	pos, outcomes, err := b.Record(driverLog{a, row}, row.driver)
	if err != nil {
		return tracking.Recorded{}, err
	}
	row.driver.Position = pos
	a.nearby.Move(row.driver.ID, pos)
	a.aging.note(row)
	return tracking.Recorded{Outcomes: outcomes, Driver: row.driver, Moved: pos.Fix != before}, nil
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
	row := a.drivers.byID[b.DriverID]
	if row == nil {
		return tracking.Recorded{}, tracking.ErrNotFound
	}
	b = keptBatch(b)
	row.mu.Lock()
	rec, err := a.record(row, b)
	row.mu.Unlock()
	rec.Driver = rec.Driver.Clone()
	return rec, err
}

// fixesPerRead is how many fixes an iteration reads under one lock.
const fixesPerRead = 256

// Fixes implements [tracking.TripReader].
func (s *Store) Fixes(ctx context.Context, app tracking.AppID, driver tracking.DriverID, r tracking.FixRange) iter.Seq2[tracking.Fix, error] {
	return func(yield func(tracking.Fix, error) bool) {
		from, to := r.From.UnixMilli(), r.To.UnixMilli()
		if r.From.Truncate(time.Millisecond).Before(r.From) {
			from++
		}
		if r.To.IsZero() {
			to = math.MaxInt64 - 1
		}
		left := r.Limit
		if left <= 0 {
			left = math.MaxInt
		}
		size := min(left, 16)
		for full := true; full && left > 0; size = min(left, fixesPerRead) {
			var buf []tracking.Fix
			var err error
			buf, full, err = s.readFixes(ctx, app, driver, make([]tracking.Fix, 0, size), from, to, r.Newest)
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

// readFixes reads some of a driver's fixes; see fixLog.read.
func (s *Store) readFixes(ctx context.Context, app tracking.AppID, driver tracking.DriverID, buf []tracking.Fix, from, to int64, newest bool) ([]tracking.Fix, bool, error) {
	a, err := s.read(ctx, app)
	if a == nil || err != nil {
		return nil, false, err
	}
	defer a.mu.RUnlock()
	row := a.drivers.byID[driver]
	if row == nil {
		return nil, false, nil
	}
	row.mu.Lock()
	defer row.mu.Unlock()
	buf, full := row.log.read(buf, from, to, newest)
	return buf, full, nil
}
