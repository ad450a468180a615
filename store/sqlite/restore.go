package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const (
	replaceSecret = `UPDATE secrets SET value = ? WHERE name = 'store'`
	raiseMarks    = `UPDATE apps SET last_version = max(last_version, ?), last_notice = max(last_notice, ?) WHERE n = ?`
	setFeed       = `UPDATE drivers SET version = ?, last_notice = ?, purged_notice = ? WHERE seq = ?`
	setKey        = `UPDATE keys SET version = ? WHERE app = ? AND id = ?`
	setInvite     = `UPDATE invites SET version = ? WHERE driver = ?`

	selectInviteThere = `SELECT EXISTS (SELECT 1 FROM invites WHERE driver = ?)`
	selectCodeShared  = `SELECT EXISTS (SELECT 1 FROM invites INDEXED BY invites_by_code
		WHERE code_hash = ? AND code_expires_at > ? AND created_at < ? AND driver <> ?)`
	selectRequestThere = `SELECT EXISTS (SELECT 1 FROM requests WHERE driver = ? AND tracking_id = ?)`
	insertFile         = `INSERT INTO files (app, id, task, type, put_at, loose, data) VALUES (?, ?, ?, ?, ?, ?, ?)`
	restoreDelivery    = `INSERT INTO deliveries (subject, outbox, state, event, app, attempts, retry_at)
		VALUES (?, ?, ?, ?, ?, ?, ?)`
)

// Restore implements [tracking.Store].
func (s *Store) Restore(ctx context.Context, r tracking.Restoring) error {
	if err := cmp.Or(ctx.Err(), rows.RestoringTexts(r)); err != nil {
		return err
	}
	return s.write(ctx, change{lane: large, rows: len(r.Rows) + 1, atom: true, apply: func(x *tx) error {
		if err := x.checkMemo(r); err != nil {
			return err
		}
		for list := r.Rows; len(list) > 0; {
			n, err := x.restore(list)
			if err != nil {
				return err
			}
			list = list[n:]
		}
		return nil
	}})
}

// checkMemo compares and replaces the memo.
func (x *tx) checkMemo(r tracking.Restoring) error {
	if r.Memo == "" {
		return nil
	}
	var was []byte
	if _, err := x.find(&was, selectMemo, r.Memo); err != nil {
		return err
	}
	if !bytes.Equal(was, r.Was) {
		return &tracking.ConflictError{}
	}
	return x.exec(upsertMemo, r.Memo, append([]byte{}, r.Is...))
}

// restore writes the first row, or as many as there are of fixes of one driver, and tells how many.
func (x *tx) restore(list []tracking.Row) (n int, err error) {
	row := list[0]
	var app int64
	if row.App != "" {
		if app, err = x.app(row.App); err != nil {
			return 0, err
		}
	}
	switch v := row.Value.(type) {
	case tracking.StoreSecret:
		err = x.exec(replaceSecret, v.Value[:])
	case tracking.Memo:
		err = x.restoreMemo(v)
	case tracking.Marks:
		err = x.raise(raiseMarks, v.Version, v.Notice, app)
	case tracking.DriverRow:
		err = x.restoreDriver(app, v)
	case tracking.Invite:
		err = x.restoreInvite(app, v)
	case tracking.Request:
		err = x.restoreRequest(app, v)
	case tracking.Key:
		version := v.Version
		v.Version = 0
		if err = x.putKey(app, &v); err == nil {
			err = x.exec(setKey, version, app, v.ID)
		}
	case tracking.Task:
		version := v.Version
		v.Version = 0
		_, err = x.putTask(app, &v, version, nil)
	case tracking.Trip:
		version := v.Version
		v.Version = 0
		_, err = x.putTrip(app, &v, version)
	case tracking.FixRow:
		return x.restoreFixes(app, list)
	case tracking.Notice:
		err = x.restoreNotice(app, v)
	case tracking.SubjectRow:
		_, err = x.restoreSubject(app, v.Subject, v.Seq)
	case tracking.EventRow:
		err = x.restoreEvent(app, v)
	case tracking.FileRow:
		err = x.exec(insertFile, app, v.ID, v.TaskID, v.Type, v.At.UnixMilli(), !v.Named, append([]byte{}, v.Data...))
		if isConstraint(err) {
			err = rows.VersionConflict(tracking.KindTask, v.TaskID)
		}
	}
	return 1, err
}

func (x *tx) restoreMemo(v tracking.Memo) error {
	var is []byte
	there, err := x.find(&is, selectMemo, v.Name)
	if err == nil && there && string(is) != string(v.Value) {
		err = &tracking.ConflictError{}
	}
	if err != nil || there {
		return err
	}
	return x.exec(upsertMemo, v.Name, []byte(v.Value))
}

// owner is the driver whom something belongs to. Without him it is a conflict.
func (x *tx) owner(app int64, id tracking.DriverID) (*driverState, error) {
	d, err := x.driver(driverKey{app, id})
	if err == nil && d == nil {
		err = rows.VersionConflict(tracking.KindDriver, id)
	}
	return d, err
}

func (x *tx) restoreDriver(app int64, v tracking.DriverRow) error {
	version, pos := v.Version, rows.Position(v.Position)
	v.Version = 0
	if _, err := x.putDriver(app, &v.Driver); err != nil {
		return err
	}
	k := driverKey{app, v.ID}
	d, err := x.driver(k)
	if err != nil {
		return err
	}
	if err := x.exec(setFeed, version, v.LastNotice, v.PurgedNotice, d.Seq); err != nil {
		return err
	}
	next := *d
	next.Version, next.lastNotice, next.Position = version, v.LastNotice, pos
	if pos != (tracking.Position{}) {
		return x.putPosition(k, d, &next)
	}
	x.setDriver(k, d, &next)
	return nil
}

func (x *tx) restoreInvite(app int64, v tracking.Invite) error {
	d, err := x.owner(app, v.DriverID)
	if err != nil {
		return err
	}
	var there bool
	if err := x.get(&there, selectInviteThere, d.Seq); err != nil {
		return err
	}
	if there {
		return rows.VersionConflict(tracking.KindInvite, v.DriverID)
	}
	version := v.Version
	v.Version = 0
	if _, err := x.putInvite(app, &v); err != nil {
		return err
	}
	if !v.CodeHash.IsZero() {
		var held bool
		if err := x.get(&held, selectCodeShared, hashValue(v.CodeHash), v.CreatedAt.UnixMilli(),
			v.CodeExpiresAt.UnixMilli(), d.Seq); err != nil {
			return err
		}
		if held {
			return rows.UniqueConflict(tracking.KindInvite, "code")
		}
	}
	return x.exec(setInvite, version, d.Seq)
}

func (x *tx) restoreRequest(app int64, v tracking.Request) error {
	d, err := x.owner(app, v.DriverID)
	if err != nil {
		return err
	}
	var there bool
	if err := x.get(&there, selectRequestThere, d.Seq, v.TrackingID); err != nil {
		return err
	}
	if there {
		return rows.VersionConflict(tracking.KindDriver, v.DriverID)
	}
	return x.putRequest(app, &v)
}

// restoreFixes writes the fixes of one driver that the list begins with, and tells how many.
func (x *tx) restoreFixes(app int64, list []tracking.Row) (n int, err error) {
	first := list[0].Value.(tracking.FixRow)
	d, err := x.owner(app, first.DriverID)
	if err != nil {
		return 0, err
	}
	log := x.fixLog(app, d)
	kept, err := unpack(d.open)
	if err != nil {
		return 0, err
	}
	next, there := *d, len(kept)
	for _, row := range list {
		f, ok := row.Value.(tracking.FixRow)
		if !ok || f.DriverID != first.DriverID || row.App != list[0].App {
			break
		}
		ms := f.Time.UnixMilli()
		if len(kept) > 0 && ms <= kept[len(kept)-1].Time.UnixMilli() {
			return 0, rows.VersionConflict(tracking.KindDriver, f.DriverID)
		}
		kept = append(kept, f.KeptFix)
		if !f.Purged && (!next.oldest.Valid || ms < next.oldest.Int64) {
			next.oldest = sql.NullInt64{Int64: ms, Valid: true}
		}
	}
	if err := log.Put(kept[there:]); err != nil {
		return 0, err
	}
	next.open = log.open
	return len(kept) - there, x.putPosition(driverKey{app, first.DriverID}, d, &next)
}

func (x *tx) restoreNotice(app int64, v tracking.Notice) error {
	d, err := x.owner(app, v.DriverID)
	if err != nil {
		return err
	}
	err = x.exec(insertNotice, d.Seq, v.ID, v.Kind, v.EventID, v.TaskID, v.TrackingID, v.Time.UnixMilli())
	if isConstraint(err) {
		return rows.VersionConflict(tracking.KindDriver, v.DriverID)
	}
	if err != nil || v.ID <= d.lastNotice {
		return err
	}
	next := *d
	next.lastNotice = v.ID
	x.setDriver(driverKey{app, v.DriverID}, d, &next)
	return x.exec(updateLastNotice, next.lastNotice, next.Seq)
}

// restoreSubject raises a subject's counter, and returns its number.
func (x *tx) restoreSubject(app int64, of tracking.Subject, seq int64) (n int64, err error) {
	var sub subjectRow
	found, err := x.find(&sub, selectSubject, app, string(of.Kind), of.ID)
	if err != nil {
		return 0, err
	}
	if !found {
		if sub.N, err = x.insert(insertSubject, app, of.Kind, of.ID, 0); err != nil {
			return 0, err
		}
	}
	if seq > sub.LastSeq {
		err = x.exec(updateSeq, seq, sub.N)
	}
	return sub.N, err
}

func (x *tx) restoreEvent(app int64, v tracking.EventRow) error {
	e := v.Event
	subject, err := x.restoreSubject(app, e.Subject, e.Seq)
	if err != nil {
		return err
	}
	data, err := jsonValue(e.Data, len(e.Data))
	if err != nil {
		return err
	}
	var told []noticeJSON
	for _, n := range e.Notices {
		told = append(told, noticeJSON{n.ID, n.DriverID, n.Person, n.Kind, n.TaskID, n.TrackingID})
	}
	notices, err := jsonValue(told, len(told))
	if err != nil {
		return err
	}
	undelivered := 0
	for _, d := range v.Deliveries {
		if !d.Dead {
			undelivered++
		}
	}
	n, err := x.insert(insertEvent, app, e.ID, e.Type, millis(e.Time), e.RecordedAt.UnixMilli(), e.Actor, subject,
		e.Person, e.Seq, data, notices, undelivered)
	if isConstraint(err) {
		return rows.VersionConflict(e.Subject.Kind, e.Subject.ID)
	}
	if err != nil {
		return err
	}
	for _, d := range v.Deliveries {
		state, ready := stateWait, int64(atOnce)
		if d.Dead {
			state = stateDead
		}
		if err := x.exec(restoreDelivery, subject, d.Outbox, state, n, app, d.Attempts, millis(d.RetryAt)); err != nil {
			return err
		}
		if d.Dead {
			continue
		}
		if !d.RetryAt.IsZero() {
			ready = d.RetryAt.UnixMilli()
		}
		if err := x.exec(enqueue, subject, d.Outbox, app, n, ready); err != nil {
			return err
		}
	}
	return nil
}
