package sqlite

import (
	"github.com/seed-8aba7b13/tracking"
)

// appOf is the application with a number. All that there are are in memory: there are few of them.
func (s *Store) appOf(n int64) tracking.AppID {
	app, _ := s.apps.ID(n)
	return app
}

const (
	selectApps = `SELECT n, id FROM apps`
	insertApp  = `INSERT INTO apps (id) VALUES (?)`
)

// marks are the greatest numbers of rows that are gone. New rows go on from there.
type marks struct {
	LastVersion int64 `db:"last_version"`
	LastNotice  int64 `db:"last_notice"`
}

const (
	selectMarks = `SELECT last_version, last_notice FROM apps WHERE n = ?`

	// newVersion is the version of a new row, in an INSERT. No row of its id has had it.
	newVersion = `(SELECT last_version + 1 FROM apps WHERE n = ?)`

	// keepMarks notes those of a driver, and of his invite, before they go.
	keepMarks = `
UPDATE apps SET last_version = max(last_version, ?, coalesce((SELECT version FROM invites
	WHERE driver = ?), 0)), last_notice = max(last_notice, ?) WHERE n = ?`
)

// marks reads those of an application, once for what a group adds to it.
func (x *tx) marks(app int64) (marks, error) {
	m := &x.lastMarks
	if m.app == app {
		return m.marks, nil
	}
	m.app = 0
	err := x.scan(selectMarks, []any{app}, &m.LastVersion, &m.LastNotice)
	if err == nil {
		m.app = app
	}
	return m.marks, err
}

// raise runs a statement that raises marks.
func (x *tx) raise(query string, args ...any) error {
	x.lastMarks.app = 0
	return x.exec(query, args...)
}

type appRow struct {
	N  int64
	ID tracking.AppID
}
