package postgres

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

var (
	restoreTasks = strings.Replace(insertTasksAs(`u.version`),
		taskArrays, orderedArrays(2, `id, created_at, `+taskSet+`, version`, `text, bigint, `+taskTypes+`, bigint`), 1)
	restoreTrip   = strings.Replace(insertTrip, newVersion, `$29`, 1)
	restoreKey    = strings.Replace(insertKey, `VALUES ($1, $2, 1,`, `VALUES ($1, $2, $7,`, 1)
	restoreEvents = eventsInsert(eventFields+`, place`, eventTypes+`, bigint`)
)

const (
	lockMemo    = `SELECT value FROM tracking.memos WHERE name = $1 FOR UPDATE`
	insertMemo  = `INSERT INTO tracking.memos (name, value) VALUES ($1, $2)`
	restoreMemo = `INSERT INTO tracking.memos AS m (name, value) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE m.value = excluded.value`
	replaceSecret = `INSERT INTO tracking.secrets (name, value) VALUES ('store', $1)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	setPurgedNotice = `UPDATE tracking.positions SET purged_notice = $3 WHERE app = $1 AND driver = $2`
	raiseLastNotice = `UPDATE tracking.positions p SET last_notice = greatest(p.last_notice, u.last)
		FROM unnest($2::bigint[], $3::bigint[]) u (driver, last) WHERE p.app = $1 AND p.driver = u.driver`
	raiseOldest = `UPDATE tracking.positions SET oldest_at = least(oldest_at, $3), stamp = stamp + 1
		WHERE app = $1 AND driver = $2`

	selectOwners = `SELECT d.id, d.n, d.person, (SELECT max(time) FROM tracking.fixes WHERE app = d.app AND driver = d.n)
		FROM tracking.drivers d WHERE d.app = $1 AND d.id = ANY ($2)`
	selectInviteThere = `SELECT FROM tracking.invites WHERE app = $1 AND driver = $2`
	selectCodeShared  = `SELECT FROM tracking.invites
		WHERE code_hash = $1 AND code_expires_at > $2 AND created_at < $3 AND (app, driver) <> ($4, $5) LIMIT 1`
	restoreCode = `INSERT INTO tracking.codes AS c (code_hash, app, driver, expires_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (code_hash) DO UPDATE SET app = excluded.app, driver = excluded.driver, expires_at = excluded.expires_at
		WHERE c.expires_at <= excluded.expires_at`
	selectRequestThere = `SELECT FROM tracking.requests WHERE app = $1 AND driver = $2 AND tracking_id = $3`

	raiseSubjects = `
INSERT INTO tracking.subjects AS s (app, kind, id, last_seq)
SELECT $1::int, u.kind, u.id, u.seq FROM unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY u (kind, id, seq, o)
ORDER BY o
ON CONFLICT (app, kind, id) DO UPDATE SET last_seq = greatest(s.last_seq, excluded.last_seq)
RETURNING s.kind, s.id, s.n`
	raisePlaces       = `UPDATE tracking.places SET last = last + $2 WHERE app = $1 RETURNING last`
	restoreDeliveries = `
INSERT INTO tracking.deliveries (app, subject, outbox, event, state, attempts, retry_at)
SELECT $1::int, u.subject, u.outbox, u.event, u.state, u.attempts, u.retry_at
FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::int[], $6::int[], $7::bigint[])
	u (subject, outbox, event, state, attempts, retry_at)`
	restoreQueues = `
INSERT INTO tracking.queues AS q (app, subject, outbox, head, ready_at)
SELECT $1::int, u.subject, u.outbox, u.head, u.ready_at
FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[]) u (subject, outbox, head, ready_at)
ON CONFLICT (app, subject, outbox) DO UPDATE SET head = excluded.head, ready_at = excluded.ready_at
WHERE q.head IS NULL`
	insertFile = `INSERT INTO tracking.files (app, id, task, type, put_at, loose, data)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`
)

// Restore implements [tracking.Store].
func (s *Store) Restore(ctx context.Context, r tracking.Restoring) error {
	if err := cmp.Or(ctx.Err(), rows.RestoringTexts(r)); err != nil {
		return err
	}
	numbers := map[tracking.AppID]int32{}
	for _, row := range r.Rows {
		if _, known := numbers[row.App]; known || row.App == "" {
			continue
		}
		if err := s.call(ctx, func(ctx context.Context) (err error) {
			numbers[row.App], err = s.register(ctx, row.App)
			return err
		}); err != nil {
			return err
		}
	}
	return s.write(ctx, func(ctx context.Context, x *tx) error {
		if err := x.checkMemo(ctx, r); err != nil {
			return err
		}
		for list := r.Rows; len(list) > 0; {
			n := slices.IndexFunc(list, func(row tracking.Row) bool {
				return row.App != list[0].App || row.Kind() != list[0].Kind()
			})
			if n < 0 {
				n = len(list)
			}
			y := &restorer{x, numbers[list[0].App]}
			if err := y.restore(ctx, list[:n]); err != nil {
				return err
			}
			list = list[n:]
		}
		return nil
	})
}

// checkMemo compares and replaces the memo. Of two that begin at once the second one finds that it is
// there.
func (x *tx) checkMemo(ctx context.Context, r tracking.Restoring) error {
	if r.Memo == "" {
		return nil
	}
	var was [][]byte
	queueRows(x, &was, pgx.RowTo[[]byte], lockMemo, r.Memo)
	if err := x.flush(ctx); err != nil {
		return err
	}
	there := len(was) > 0
	if there && !bytes.Equal(was[0], r.Was) || !there && len(r.Was) > 0 {
		return &tracking.ConflictError{}
	}
	sql := insertMemo
	if there {
		sql = upsertMemo
	}
	x.queue(sql, r.Memo, append([]byte{}, r.Is...))
	if err := x.flush(ctx); code(err) == codeUnique {
		return &tracking.ConflictError{}
	} else if err != nil {
		return err
	}
	return nil
}

// restorer writes rows of one application as they were.
type restorer struct {
	*tx
	app int32
}

// valuesOf are the rows' values, which are all of one type.
func valuesOf[V tracking.RowValue](list []tracking.Row) []V {
	values := make([]V, len(list))
	for i, row := range list {
		values[i] = row.Value.(V)
	}
	return values
}

// restore writes rows of one kind.
func (y *restorer) restore(ctx context.Context, list []tracking.Row) error {
	switch list[0].Value.(type) {
	case tracking.StoreSecret:
		for _, v := range valuesOf[tracking.StoreSecret](list) {
			y.queue(replaceSecret, v.Value[:])
		}
	case tracking.Memo:
		return y.memos(ctx, valuesOf[tracking.Memo](list))
	case tracking.Marks:
		for _, v := range valuesOf[tracking.Marks](list) {
			y.queue(keepMarks, y.app, v.Version, v.Notice)
		}
	case tracking.DriverRow:
		return y.drivers(ctx, valuesOf[tracking.DriverRow](list))
	case tracking.Invite:
		return y.invites(ctx, valuesOf[tracking.Invite](list))
	case tracking.Request:
		return y.requests(ctx, valuesOf[tracking.Request](list))
	case tracking.Key:
		for _, k := range valuesOf[tracking.Key](list) {
			y.queue(restoreKey, y.app, k.ID, k.Name, hashValue(k.Hash), k.CreatedAt.UnixMilli(), millis(k.RevokedAt), k.Version)
		}
	case tracking.Task:
		return y.tasks(valuesOf[tracking.Task](list))
	case tracking.Trip:
		for _, t := range valuesOf[tracking.Trip](list) {
			row := append([]any{y.app, string(t.ID), t.CreatedAt.UnixMilli()}, tripValues(&t)...)
			y.queue(restoreTrip, append(row, t.Version)...)
		}
	case tracking.FixRow:
		return y.fixes(ctx, valuesOf[tracking.FixRow](list))
	case tracking.Notice:
		return y.notices(ctx, valuesOf[tracking.Notice](list))
	case tracking.SubjectRow:
		seqs := map[tracking.Subject]int64{}
		for _, v := range valuesOf[tracking.SubjectRow](list) {
			seqs[v.Subject] = max(seqs[v.Subject], v.Seq)
		}
		_, err := y.subjects(ctx, seqs)
		return err
	case tracking.EventRow:
		return y.events(ctx, valuesOf[tracking.EventRow](list))
	case tracking.FileRow:
		return y.files(ctx, valuesOf[tracking.FileRow](list))
	}
	return nil
}

// numbered has the server draw numbers.
func (y *restorer) numbered(ctx context.Context, sql string, n int) (numbers []int64, err error) {
	queueRows(y.tx, &numbers, pgx.RowTo[int64], sql, n)
	err = y.flush(ctx)
	return numbers, err
}

func (y *restorer) drivers(ctx context.Context, list []tracking.DriverRow) error {
	numbers, err := y.numbered(ctx, selectNumbers, len(list))
	if err != nil {
		return err
	}
	for i, v := range list {
		pos := rows.Position(v.Position)
		d, err := y.putDriver(y.app, &v.Driver, nil, numbers[i], marks{v.Version - 1, v.LastNotice})
		if err != nil {
			return err
		}
		if d.Position = pos; pos != (tracking.Position{}) {
			y.putPosition(d)
		}
		y.queue(setPurgedNotice, y.app, d.number, v.PurgedNotice)
	}
	return nil
}

// owner is a driver whom something belongs to.
type owner struct {
	*driverState
	lastFix *int64
}

// owners finds the drivers whom rows belong to. Without one it is a conflict.
func owners[V any](ctx context.Context, y *restorer, list []V, of func(V) tracking.DriverID) (
	map[tracking.DriverID]owner, error,
) {
	var ids []string
	for _, v := range list {
		ids = append(ids, string(of(v)))
	}
	found := map[tracking.DriverID]owner{}
	queueEach(y.tx, func(o owner) { found[o.ID] = o }, func(row pgx.CollectableRow) (o owner, err error) {
		o.driverState = &driverState{app: y.app}
		err = row.Scan(&o.ID, &o.number, &o.Person, &o.lastFix)
		return o, err
	}, selectOwners, y.app, sorted(ids))
	if err := y.flush(ctx); err != nil {
		return nil, err
	}
	for _, v := range list {
		if _, ok := found[of(v)]; !ok {
			return nil, rows.VersionConflict(tracking.KindDriver, of(v))
		}
	}
	return found, nil
}

// none is an error if one of several queries has found something.
func (y *restorer) none(ctx context.Context, there []int, err error) error {
	if err := y.flush(ctx); err != nil {
		return err
	}
	if slices.ContainsFunc(there, func(n int) bool { return n > 0 }) {
		return err
	}
	return nil
}

func (y *restorer) invites(ctx context.Context, list []tracking.Invite) error {
	found, err := owners(ctx, y, list, func(v tracking.Invite) tracking.DriverID { return v.DriverID })
	if err != nil {
		return err
	}
	there, seen := make([]int, len(list)), rows.SeenOf[tracking.DriverID](len(list))
	for i, v := range list {
		if seen.Before(v.DriverID) {
			return rows.VersionConflict(tracking.KindInvite, v.DriverID)
		}
		y.counted(&there[i], selectInviteThere, y.app, found[v.DriverID].number)
	}
	if err := y.none(ctx, there, rows.VersionConflict(tracking.KindInvite, list[0].DriverID)); err != nil {
		return err
	}
	for i, v := range list {
		d := found[v.DriverID].driverState
		version := v.Version
		v.Version = 0
		y.putInvite(d, &v, inviteState{}, marks{version: version - 1})
		if v.CodeHash.IsZero() {
			continue
		}
		y.counted(&there[i], selectCodeShared, hashValue(v.CodeHash), v.CreatedAt.UnixMilli(), v.CodeExpiresAt.UnixMilli(),
			y.app, d.number)
		y.queue(restoreCode, hashValue(v.CodeHash), y.app, d.number, v.CodeExpiresAt.UnixMilli())
	}
	return y.none(ctx, there, rows.UniqueConflict(tracking.KindInvite, "code"))
}

func (y *restorer) requests(ctx context.Context, list []tracking.Request) error {
	found, err := owners(ctx, y, list, func(v tracking.Request) tracking.DriverID { return v.DriverID })
	if err != nil {
		return err
	}
	there, seen := make([]int, len(list)), rows.SeenOf[tracking.RequestID](len(list))
	for i, v := range list {
		if seen.Before(v.RequestID) {
			return rows.VersionConflict(tracking.KindDriver, v.DriverID)
		}
		y.counted(&there[i], selectRequestThere, y.app, found[v.DriverID].number, string(v.TrackingID))
	}
	if err := y.none(ctx, there, rows.VersionConflict(tracking.KindDriver, list[0].DriverID)); err != nil {
		return err
	}
	for _, v := range list {
		y.putRequest(found[v.DriverID].driverState, &v)
	}
	return nil
}

func (y *restorer) tasks(list []tracking.Task) error {
	values := make([][]any, len(list))
	for i := range list {
		v, err := taskValues(&list[i])
		if err != nil {
			return err
		}
		values[i] = append(v, list[i].Version)
	}
	y.queue(restoreTasks, append([]any{y.app}, columns(values)...)...)
	return nil
}

func (y *restorer) fixes(ctx context.Context, list []tracking.FixRow) error {
	found, err := owners(ctx, y, list, func(v tracking.FixRow) tracking.DriverID { return v.DriverID })
	if err != nil {
		return err
	}
	var put newFixColumns
	last, oldest := map[int64]int64{}, map[int64]int64{}
	for _, o := range found {
		if o.lastFix != nil {
			last[o.number] = *o.lastFix
		}
	}
	for _, f := range list {
		n, t := found[f.DriverID].number, f.Time.UnixMilli()
		if before, ok := last[n]; ok && t <= before {
			return rows.VersionConflict(tracking.KindDriver, f.DriverID)
		}
		last[n] = t
		mark := int16(f.Mark)
		if f.Purged {
			mark = -mark
		} else if _, ok := oldest[n]; !ok {
			oldest[n] = t
		}
		put.add(y.app, n, mark, &f.Fix)
	}
	y.queue(insertFixes, plainValues(put.list())...)
	for n, t := range oldest {
		y.queue(raiseOldest, y.app, n, t)
	}
	return nil
}

func (y *restorer) notices(ctx context.Context, list []tracking.Notice) error {
	found, err := owners(ctx, y, list, func(v tracking.Notice) tracking.DriverID { return v.DriverID })
	if err != nil {
		return err
	}
	values := make([][]any, len(list))
	last := map[int64]int64{}
	for i, v := range list {
		n := found[v.DriverID].number
		values[i] = []any{n, v.ID, string(v.Kind), v.EventID, string(v.TaskID), string(v.TrackingID), v.Time.UnixMilli()}
		last[n] = max(last[n], v.ID)
	}
	y.queue(insertNotices, append([]any{y.app}, columns(values)...)...)
	var numbers, ids []int64
	for n, id := range last {
		numbers, ids = append(numbers, n), append(ids, id)
	}
	y.queue(raiseLastNotice, y.app, numbers, ids)
	if err := y.flush(ctx); code(err) == codeUnique {
		return rows.VersionConflict(tracking.KindDriver, list[0].DriverID)
	} else if err != nil {
		return err
	}
	return nil
}

// subjects raises the counters of subjects, and finds their numbers.
func (y *restorer) subjects(ctx context.Context, seqs map[tracking.Subject]int64) (map[tracking.Subject]int64, error) {
	var kinds, ids []string
	var last []int64
	for s, seq := range seqs {
		kinds, ids, last = append(kinds, string(s.Kind)), append(ids, s.ID), append(last, seq)
	}
	type numbered struct {
		tracking.Subject
		n int64
	}
	numbers := map[tracking.Subject]int64{}
	queueEach(y.tx, func(s numbered) { numbers[s.Subject] = s.n }, func(row pgx.CollectableRow) (s numbered, err error) {
		err = row.Scan(&s.Kind, &s.ID, &s.n)
		return s, err
	}, raiseSubjects, y.app, kinds, ids, last)
	err := y.flush(ctx)
	return numbers, err
}

func (y *restorer) events(ctx context.Context, list []tracking.EventRow) error {
	seqs := map[tracking.Subject]int64{}
	for _, v := range list {
		seqs[v.Subject] = max(seqs[v.Subject], v.Seq)
	}
	subjects, err := y.subjects(ctx, seqs)
	if err != nil {
		return err
	}
	var places []int64
	y.queue(lockPlaces, y.app)
	queueRows(y.tx, &places, pgx.RowTo[int64], raisePlaces, y.app, len(list))
	numbers, err := y.numbered(ctx, selectEventNumbers, len(list))
	if err != nil {
		return err
	}
	place := places[0] - int64(len(list))
	var events, deliveries, queues [][]any
	type queue struct {
		subject int64
		outbox  string
	}
	queued := map[queue]bool{}
	for i, v := range list {
		e, n, subject := v.Event, numbers[i], subjects[v.Subject]
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
		place++
		events = append(events, []any{
			n, e.ID, string(e.Type), millis(e.Time), e.RecordedAt.UnixMilli(), e.Actor, subject, string(e.Subject.Kind),
			e.Subject.ID, e.Person, e.Seq, data, notices, place,
		})
		for _, d := range v.Deliveries {
			state := stateWait
			if d.Dead {
				state = stateDead
			}
			deliveries = append(deliveries, []any{subject, d.Outbox, n, state, d.Attempts, millis(d.RetryAt)})
			if q := (queue{subject, d.Outbox}); !d.Dead && !queued[q] {
				queued[q] = true
				queues = append(queues, []any{subject, d.Outbox, n, millis(d.RetryAt)})
			}
		}
	}
	y.queue(restoreEvents, append([]any{y.app}, columns(events)...)...)
	if len(deliveries) > 0 {
		y.queue(restoreDeliveries, append([]any{y.app}, columns(deliveries)...)...)
	}
	if len(queues) > 0 {
		y.queue(restoreQueues, append([]any{y.app}, columns(queues)...)...)
	}
	if err := y.flush(ctx); code(err) == codeUnique {
		return rows.VersionConflict(list[0].Subject.Kind, list[0].Subject.ID)
	} else if err != nil {
		return err
	}
	return nil
}

func (y *restorer) memos(ctx context.Context, list []tracking.Memo) error {
	same := make([]int, len(list))
	for i, v := range list {
		y.counted(&same[i], restoreMemo, v.Name, append([]byte{}, v.Value...))
	}
	if err := y.flush(ctx); err != nil {
		return err
	}
	if slices.Contains(same, 0) {
		return &tracking.ConflictError{}
	}
	return nil
}

func (y *restorer) files(ctx context.Context, list []tracking.FileRow) error {
	written := make([]int, len(list))
	for i, v := range list {
		y.counted(&written[i], insertFile, y.app, v.ID, string(v.TaskID), v.Type, v.At.UnixMilli(),
			!v.Named, append([]byte{}, v.Data...))
	}
	if err := y.flush(ctx); err != nil {
		return err
	}
	if i := slices.Index(written, 0); i >= 0 {
		return rows.VersionConflict(tracking.KindTask, list[i].TaskID)
	}
	return nil
}
