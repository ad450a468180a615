package sqlite

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
)

// WithVFS returns options for a store on another VFS, with another setting of synchronous and another size of the log.
func (o Options) WithVFS(name, synchronous string, checkpointPages int) *Options {
	o.vfs, o.synchronous, o.checkpointPages = name, synchronous, checkpointPages
	o.Logger = slog.New(slog.DiscardHandler)
	return &o
}

// WithMigrations returns options for a store with other migrations.
func (o Options) WithMigrations(dir fs.FS) *Options {
	o.migrations, o.Logger = dir, slog.New(slog.DiscardHandler)
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

// Lookups are the other reads, by name.
func Lookups() map[string]Query {
	return map[string]Query{
		"Task":                 query(selectTask, 1, "a"),
		"TaskByKey":            query(selectTaskByKey, 1, "a"),
		"TaskByLink":           query(selectTaskByLink, "a"),
		"Waiting":              query(selectWaiting, 1, 1, 10),
		"Waiting in app":       query(selectWaitingInApp, 1, 1, 1, 10),
		"Trip":                 query(selectTrip, 1, "a"),
		"ActiveTrip":           query(selectActiveTrip, 1, "a"),
		"TripByLink":           query(selectTripByLink, "a"),
		"InTrip":               query(selectInTrip, 1, "a", 1, 1),
		"Request":              query(selectRequest, 1, "a", "a"),
		"Requests":             query(selectRequests, 1, "a"),
		"Fixes":                query(selectFixes, 1, "a", 1, 2, 10),
		"Fixes newest":         query(selectFixesNewest, 1, "a", 1, 2, 10),
		"FixLog.Before":        query(selectFixBefore, 1, 1),
		"FixLog.Before good":   query(selectGoodFixBefore, 1, 1),
		"FixLog.After":         query(selectFixesAfter, 1, 1, 4),
		"Driver":               query(selectDriver, 1, "a"),
		"DriverByToken app":    query(selectDriverByAppToken, "a"),
		"DriverByToken ingest": query(selectDriverByIngestToken, "a"),
		"Drivers by id":        query(selectDriversByID, `["a"]`, 1),
		"index":                query(selectForIndex, 0, 10),
		"Invite":               query(selectInvite, 1, "a"),
		"InviteByHash":         query(selectInviteByHash, "a"),
		"Keys":                 query(selectKeys, 1),
		"KeyByHash":            query(selectKeyByHash, "a"),
		"Events after":         query(selectEventNumber, 1, "a"),
		"Notices":              query(selectNotices, 1, 1, "a", 10),
		"LeaseEvents any":      query(selectAnyReady, "a", 1),
		"LeaseEvents":          query(selectReady, "a", 1, "[]", 10),
		"LeaseEvents queue":    query(selectQueue, 1, "a", 10),
		"FinishEvents":         query(selectDelivery, "a", 1, "a"),
		"FinishEvents head":    query(selectHead, 1, "a"),
		"Due trips":            query(selectDueTrips, 1, 10),
		"Due trips in app":     query(selectDueTripsInApp, 1, 1, 10),
		"Due geocodes":         query(selectDueGeocodes, 1, 10),
		"Due geocodes in app":  query(selectDueGeocodesInApp, 1, 10, 1),
		"Purge fixes":          query(selectOldest, 1),
		"Purge fixes of one":   query(deleteOld, 1, 1, 1, 10),
		"Purge fixes turn":     query(selectTurn, 1, 1),
		"Purge events":         query(purgeEvents, 1, 10),
		"Purge dead events":    query(purgeDead, 1, 10),
		"Purge notices":        query(selectOldNotices, 1, 10),
		"Purge requests":       query(purgeRequests, 1, 10),
		"Purge invites":        query(purgeInvites, 1, 10),
	}
}

// Reader is a connection to the file for reading.
func (s *Store) Reader() (*sqlx.DB, error) { return s.readers, nil }

// LimitPages makes SQLite say that the disk is full when the file has that many pages.
func (s *Store) LimitPages(n int) error {
	return s.write(context.Background(), false, func(x *tx) error {
		var now int
		err := x.get(&now, fmt.Sprintf("PRAGMA max_page_count = %d", n))
		return err
	})
}

// ReadDrivers reads drivers' rows as a list by distance does.
func (s *Store) ReadDrivers(ctx context.Context, app tracking.AppID, ids []tracking.DriverID) error {
	n, _ := s.apps.number(app)
	return s.read(ctx, func(ctx context.Context) error {
		_, err := s.driversByID(ctx, n, ids)
		return err
	})
}

// Index is an application's part of the index.
func (s *Store) Index(app tracking.AppID) *nearby.Index {
	n, _ := s.apps.number(app)
	return s.index.of(n)
}
