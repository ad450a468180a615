package sqlite

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
)

// WithVFS returns options for a store on another VFS, with another setting of synchronous and
// another size of the log.
func (o Options) WithVFS(name, synchronous string, checkpointPages int) *Options {
	o.vfs, o.synchronous, o.checkpointPages = name, synchronous, checkpointPages
	o.Logger = slog.New(slog.DiscardHandler)
	return &o
}

// WithClock returns options for a store whose compactions go by a clock.
func (o Options) WithClock(now func() time.Time) *Options {
	o.now = now
	return &o
}

// WithGroups returns options for a store that tells of each transaction: a letter for each change,
// in order; v for a verb, s for a small batch of fixes, l for a large one.
func (o Options) WithGroups(tell func(changes string)) *Options {
	o.grouped = func(jobs []*job) {
		var order strings.Builder
		for _, j := range jobs {
			order.WriteByte("vsl"[j.lane])
		}
		tell(order.String())
	}
	return &o
}

// WithJournal returns options for a store whose journal has so many bytes before all rows follow, and
// so many drivers whose rows are behind.
func (o Options) WithJournal(bytes, drivers int) *Options {
	o.maxJournal, o.maxLate = bytes, drivers
	return &o
}

// WithMigrations returns options for a store with other migrations.
func (o Options) WithMigrations(dir fs.FS) *Options {
	o.migrations, o.Logger = dir, slog.New(slog.DiscardHandler)
	names, err := migrationFiles(dir)
	o.noJournal = err == nil && len(names) < 18
	return &o
}

// Query is a statement with what it is asked for.
type Query struct {
	SQL  string
	Args []any
}

func query(sql string, args ...any) Query { return Query{sql, args} }

func asked(sql string, args []any) Query { return Query{sql, args} }

// The queries behind the lists, by application number 1.

func TasksQuery(f tracking.TaskFilter) Query   { return asked(tasksQuery(1, f)) }
func TripsQuery(f tracking.TripFilter) Query   { return asked(tripsQuery(1, f)) }
func EventsQuery(f tracking.EventFilter) Query { return asked(eventsQuery(1, f, 0)) }
func DriversQuery(f tracking.DriverFilter) Query {
	var list []property
	for k, v := range f.Properties {
		list = append(list, property{k, v})
	}
	return asked(driversQuery(1, f, list))
}

// MarkIsCloser is what decides which of a filter's bounds a query is told of.
func MarkIsCloser(f tracking.TaskFilter) bool { return markIsCloser(f) }

// Lookups are the other reads, by name.
func Lookups() map[string]Query {
	return map[string]Query{
		"Task":                    query(selectTask, 1, "a"),
		"TaskByKey":               query(selectTaskByKey, 1, "a"),
		"TaskByLink":              query(selectTaskByLink, "a"),
		"TaskCounts":              query(countTasks, 1, 1, 1),
		"Stats":                   query(selectStats, 0, 1),
		"Stats of the dead":       query(countDead),
		"Stats, outboxes":         query(selectOutboxes),
		"Stats of an outbox":      query(selectUndelivered, "a"),
		"Place":                   query(selectPlace, 1, 1, 2),
		"Place, last":             query(selectLastPlace),
		"Task to change":          query(selectTaskIndexed, 1, "a"),
		"Subject":                 query(selectSubject, 1, "task", "a"),
		"Rows of subjects":        query(subjectsBefore, 1),
		"Rows of tasks' subjects": query(subjectsOfTask, 1),
		"Rows of tasks":           asked(allTasks(1)),
		"Tasks by id":             query(selectTasksByID, `["a"]`, 1),
		"index of the waiting":    query(selectWaitingForIndex, 0, 0, 10),
		"Trip":                    query(selectTrip, 1, "a"),
		"ActiveTrip":              query(selectActiveTrip, 1, "a"),
		"TripByLink":              query(selectTripByLink, "a"),
		"InTrip":                  query(selectInTrip, 1, "a", 1, 1, "p"),
		"Request":                 query(selectRequest, 1, "a", "a"),
		"Requests":                query(selectRequests, 1, "a"),
		"Fixes":                   query(selectFixes, 1, "a", "p", 1, 2),
		"Fixes newest":            query(selectFixesNewest, 1, "a", "p", 1, 2),
		"FixLog.Before":           query(selectBlockUntil, 1, 2),
		"FixLog.From":             query(selectBlockFrom, 1, 2),
		"FixLog.Put late":         query(selectNextFirst, 1, 2),
		"FixLog cleared":          query(deleteBlocks, 1),
		"Driver to write":         query(selectDriverToWrite, 1, "a"),
		"Driver":                  query(selectDriver, 1, "a"),
		"DriverByToken app":       query(selectDriverByAppToken, "a"),
		"DriverByToken ingest":    query(selectDriverByIngestToken, "a"),
		"Drivers by id":           query(selectDriversByID, `["a"]`, 1),
		"index":                   query(selectForIndex, 0, 10),
		"Invite codes":            query(selectInviteCodes, 1),
		"Invite code held":        query(selectCodeHeld, "a", 1, 1),
		"Invite":                  query(selectInvite, 1, "a"),
		"InviteByHash":            query(selectInviteByHash, "a"),
		"Keys":                    query(selectKeys, 1),
		"KeyByHash":               query(selectKeyByHash, "a"),
		"Events after":            query(selectEventNumber, 1, "a"),
		"Notices":                 query(selectNotices, 1, 1, "a", 10),
		"LeaseEvents due":         query(selectAnyDue, "a", 1, 2, 3),
		"LeaseEvents apps":        query(selectReadyApps, "a"),
		"LeaseEvents":             query(selectReady, "a", 1, 10),
		"LeaseEvents late leases": query(selectWrongLeases, "a", 1, 10),
		"LeaseEvents late":        query(selectWrongRetries, "a", 1, 2, 10),
		"LeaseEvents come due":    query(selectDueQueues, "a", 1, 10),
		"LeaseEvents queue":       query(selectQueue, 1, "a", 10),
		"FinishEvents":            query(selectDelivery, "a", 1, "a"),
		"FinishEvents head":       query(selectHead, 1, "a"),
		"Memo":                    query(selectMemo, "a"),
		"Due trips":               query(selectDueTrips, 1, 2, 10),
		"Due trips in app":        query(selectDueTripsInApp, 1, 2, 10, 1),
		"Due trips of driver":     query(selectDueTripsOfDriver, 1, 2, 10, 1, "a"),
		"Due trip tracked":        query(selectDueTripTracked, 1, 2, 10, 1, "a", ""),
		"Due geocodes":            query(selectDueGeocodes, 1, 2, 10),
		"Due geocodes in app":     query(selectDueGeocodesInApp, 1, 2, 10, 1),
		"Due tasks":               query(selectDueTasks, 1, 2, 10),
		"Due tasks in app":        query(selectDueTasksInApp, 1, 2, 10, 1),
		"File":                    query(selectFile, 1, "a"),
		"Files delete":            query(deleteFile, 1, "a"),
		"Purge files":             query(purgeOrphans, 1, 10),
		"Purge files named":       query(keepNamed, 1, 10),
		"Purge erased notices":    query(deleteErasedNotices, 1, 1, 10),
		"Purge fixes":             query(selectOldest, 1),
		"Purge events":            query(purgeEvents, 1, 10),
		"Purge dead events":       query(purgeDead, 1, 10),
		"Purge notices":           query(selectOldNotices, 1, 10),
		"Purge requests":          query(purgeRequests, 1, 10),
		"Requests of a trip":      query(deleteRequestsOfTrip, "a", 1),
		"Purge invites":           query(purgeInvites, 1, 10),
	}
}

// Add runs apply as commits are that add only; write writes something.
func (s *Store) Add(ctx context.Context, apply func(write func() error) error) error {
	return s.write(ctx, change{lane: verbs, rows: 1, atom: true, adds: true, apply: func(x *tx) error {
		return apply(func() error { return x.exec(upsertMemo, "added", []byte{}) })
	}})
}

// Reader is a connection to the file for reading.
func (s *Store) Reader() (*sqlx.DB, error) { return s.readers, nil }

// LimitPages makes SQLite say that the disk is full when the file has that many pages.
func (s *Store) LimitPages(n int) error {
	return s.write(context.Background(), change{apply: func(x *tx) error {
		var now int
		err := x.get(&now, fmt.Sprintf("PRAGMA max_page_count = %d", n))
		return err
	}})
}

// ReadDrivers reads drivers' rows as a list by distance does.
func (s *Store) ReadDrivers(ctx context.Context, app tracking.AppID, ids []tracking.DriverID) error {
	n, _ := s.apps.Number(app)
	return s.read(ctx, func(ctx context.Context) error {
		_, err := s.driversByID(ctx, n, ids)
		return err
	})
}

// Index is an application's part of the index.
func (s *Store) Index(app tracking.AppID) *nearby.Index {
	n, _ := s.apps.Number(app)
	return s.index.of(n)
}

// Overwrites is what the writer's connection does with what is deleted: 1 where it overwrites all of it.
func (s *Store) Overwrites(ctx context.Context) (how int, err error) {
	err = s.write(ctx, change{lane: verbs, apply: func(x *tx) error { return x.get(&how, "PRAGMA secure_delete") }})
	return how, err
}

// Terms is what the table of terms is told of a task of application number 1.
func Terms(t *tracking.Task) string { return terms(1, t) }

// Queued is how many changes wait for the writer.
func (s *Store) Queued() int { return s.writer.waiting() }

// PackFixes packs fixes as they stand beside a position.
func PackFixes(list []tracking.KeptFix) []byte { return pack(list) }

// FixesInFile reads all fixes that a file has, by the number of the driver, in order of time.
func FixesInFile(db *sqlx.DB) (map[int64][]tracking.KeptFix, error) {
	_, changes, err := readJournal(context.Background(), db)
	if err != nil {
		return nil, err
	}
	return fixesInRows(db, changes)
}

// FixesInRows reads all fixes that rows have without the journal.
func FixesInRows(db *sqlx.DB) (map[int64][]tracking.KeptFix, error) { return fixesInRows(db, nil) }

func fixesInRows(db *sqlx.DB, changes map[int64][]moved) (map[int64][]tracking.KeptFix, error) {
	var list []struct {
		Driver int64
		Fixes  []byte
	}
	if err := db.Select(&list, `SELECT driver, fixes FROM fix_blocks ORDER BY driver, first`); err != nil {
		return nil, err
	}
	var open []struct {
		Driver int64
		Place  place
		Open   []byte
	}
	if err := db.Select(&open, `SELECT driver, place, open FROM positions`); err != nil {
		return nil, err
	}
	all := map[int64][]tracking.KeptFix{}
	add := func(driver int64, packed []byte) error {
		fixes, err := unpack(packed)
		all[driver] = append(all[driver], fixes...)
		return err
	}
	for _, r := range list {
		if err := add(r.Driver, r.Fixes); err != nil {
			return nil, err
		}
	}
	for _, r := range open {
		_, packed, err := applyMoved(changes[r.Driver], r.Place, new(tracking.Position), r.Open)
		if err != nil {
			return nil, err
		}
		if err := add(r.Driver, packed); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// HoldTurn keeps backups and compactions waiting until release is called.
func (s *Store) HoldTurn() (release func()) {
	s.backup <- struct{}{}
	return s.backupEnds
}

// Path is where the file is.
func (s *Store) Path() string { return s.path }

// Late is how many drivers' rows are behind the journal, and how often all rows have followed.
func (s *Store) Late() (drivers, sweeps int) {
	s.late.mu.RLock()
	defer s.late.mu.RUnlock()
	return len(s.late.of), s.late.swept
}

// RefillIndex fills the index anew, and calls between when the rows are in it as they were.
func (s *Store) RefillIndex(between func()) error {
	x := &s.index
	x.ready.Store(false)
	x.mu.Lock()
	clear(x.apps)
	x.mu.Unlock()
	if err := x.putChunk(s, 0); err != nil {
		return err
	}
	between()
	x.putLate(s)
	return nil
}

// ReadCorrected runs a read of drivers' rows that may have to be done again.
func (s *Store) ReadCorrected(ctx context.Context, f func(ctx context.Context) error) error {
	return s.readDrivers(ctx, f)
}

// AsOfBefore lets readers of a driver's fixes find what was known of him before his row was written: nothing,
// up to the place that his row has.
func (s *Store) AsOfBefore(app tracking.AppID, id tracking.DriverID) error {
	n, _ := s.apps.Number(app)
	var r driverRow
	if err := s.get(context.Background(), &r, selectDriver, n, id); err != nil {
		return err
	}
	d := &driverState{fixesState: fixesState{place: r.Place, late: true}}
	d.Seq = r.Seq
	s.late.publish([]driven{{driverKey{n, id}, nil, d}})
	return nil
}

// LatePlace is up to where of the journal readers know a driver whose row is behind.
func (s *Store) LatePlace(app tracking.AppID, id tracking.DriverID) int64 {
	n, _ := s.apps.Number(app)
	if d := s.late.get(driverKey{n, id}); d != nil {
		return int64(d.place)
	}
	return 0
}
