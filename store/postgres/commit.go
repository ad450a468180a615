package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Commit implements [tracking.Store].
func (s *Store) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	if err := cmp.Or(ctx.Err(), rows.ChangesetTexts(app, cs)); err != nil {
		return tracking.Written{}, err
	}
	n, known := s.apps.Number(app)
	if !known {
		if err := s.call(ctx, func(ctx context.Context) (err error) {
			n, err = s.register(ctx, app)
			return err
		}); err != nil {
			return tracking.Written{}, err
		}
	}
	var w tracking.Written
	var err error
	if joins(cs) {
		w, err = s.bundled(ctx, app, n, cs)
	} else {
		w, err = s.commit(ctx, app, n, cs, false)
	}
	var conflict *tracking.ConflictError
	if errors.As(err, &conflict) && conflict.Unique != "" && mayPassOn(cs) {
		// A unique value counts where it is afterwards. One row of cs may have had it before another
		// one wanted it.
		w, err = s.commit(ctx, app, n, cs, true)
	}
	return w, err
}

// committed sees to what comes after a commit: that others hear of it, and that events have places.
func (s *Store) committed(app tracking.AppID, n int32, changed []tracking.Subject, events bool) {
	s.teller.tell(app, changed...)
	if events {
		s.placer.want(n)
	}
}

// mayPassOn reports whether one row of cs may leave a unique value to another.
func mayPassOn(cs *tracking.Changeset) bool {
	return len(cs.Tasks) > 1 || len(cs.Trips) > 1 || len(cs.Keys) > 1
}

// commit applies a changeset in a transaction of its own.
func (s *Store) commit(
	ctx context.Context, id tracking.AppID, app int32, cs *tracking.Changeset, release bool,
) (w tracking.Written, err error) {
	wait := lockWaitOfGroup // then it lets go of what it has locked meanwhile, and begins anew
	err = s.write(ctx, func(ctx context.Context, x *tx) error {
		x.queue(wait)
		wait = lockWaitAlone
		c := newChange(x, app, cs)
		c.release, w = release, c.written
		return c.apply(ctx)
	})
	if err != nil {
		return tracking.Written{}, err
	}
	s.committed(id, app, subjectsOf(cs), len(cs.Events) > 0)
	return w, nil
}

// writtenOf has room for what is given to each row.
func writtenOf(cs *tracking.Changeset) (w tracking.Written) {
	if n := len(cs.Tasks); n > 0 {
		w.Tasks = make([]tracking.Given, n)
	}
	if n := len(cs.Trips); n > 0 {
		w.Trips = make([]tracking.Given, n)
	}
	if n := len(cs.Drivers); n > 0 {
		w.Drivers = make([]tracking.Given, n)
	}
	return w
}

// change is a Changeset on its way.
type change struct {
	*locked
	cs      *tracking.Changeset
	release bool // take unique values from the rows before writing any
	written tracking.Written
}

// locked is what the changes of one application in a transaction are about: what the rows were when
// they were locked, or what has been made of them since.
type locked struct {
	*tx
	app     int32
	changes []*change // no two of which are about the same row

	drivers  map[tracking.DriverID]*driverState
	invites  map[tracking.DriverID]inviteState
	tasks    map[string]int64 // versions
	trips    map[string]int64
	keys     map[string]int64
	also     []string // other drivers to lock
	subjects map[tracking.Subject]*subjectState
	requests map[tracking.TrackingID][]int64 // the drivers of those that are locked
	marks    marks
	marked   bool // marks are read

	numbers, eventNumbers []int64 // for new drivers, and for events
}

// newChange is the only change of a transaction.
func newChange(x *tx, app int32, cs *tracking.Changeset) *change {
	return newLocked(x, app).add(cs)
}

func newLocked(x *tx, app int32) *locked {
	return &locked{
		tx: x, app: app, drivers: map[tracking.DriverID]*driverState{}, invites: map[tracking.DriverID]inviteState{},
		tasks: map[string]int64{}, trips: map[string]int64{}, keys: map[string]int64{},
		subjects: map[tracking.Subject]*subjectState{}, requests: map[tracking.TrackingID][]int64{},
	}
}

// add puts a changeset among the changes.
func (l *locked) add(cs *tracking.Changeset) *change {
	c := &change{locked: l, cs: cs, written: writtenOf(cs)}
	l.changes = append(l.changes, c)
	return c
}

// apply locks and reads in one round trip, decides, and queues what is to be written.
func (c *change) apply(ctx context.Context) error {
	var err error
	if deletes(c.cs) {
		err = c.lockAndDelete(ctx)
	} else {
		err = lock(ctx, c.tx, c.locked)
	}
	if err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	if c.release {
		c.releaseAll()
	}
	return c.write(ctx)
}

// write queues what the changes write.
func (l *locked) write(ctx context.Context) error {
	if err := l.putRows(); err != nil {
		return err
	}
	for _, c := range l.changes {
		if err := c.putInvites(ctx); err != nil {
			return err
		}
		if err := c.putRequests(); err != nil {
			return err
		}
		if err := c.recordFixes(ctx); err != nil {
			return err
		}
	}
	if err := l.appendEvents(); err != nil {
		return err
	}
	return l.lookAgain(ctx)
}

// lookAgain makes sure that the marks from which new drivers and invites go on are still so: somebody may
// have made and deleted one of the same id since they were read, also while an insert waited.
func (l *locked) lookAgain(ctx context.Context) error {
	if !l.marked {
		return nil
	}
	var now marks
	queueEach(l.tx, func(m marks) { now = m }, scanMarks, selectMarks, l.app)
	if err := l.flush(ctx); err != nil {
		return err
	}
	if now.version > l.marks.version || now.notice > l.marks.notice {
		return errMoved
	}
	return nil
}

// driverIDs are those of all drivers whose rows, or what belongs to them, the changeset is about:
// each once, in order.
func driverIDs(cs *tracking.Changeset) []string {
	var ids []string
	for i := range cs.Drivers {
		ids = append(ids, string(cs.Drivers[i].ID))
	}
	for i := range cs.DeleteDrivers {
		ids = append(ids, string(cs.DeleteDrivers[i].ID))
	}
	for i := range cs.Invites {
		ids = append(ids, string(cs.Invites[i].DriverID))
	}
	for i := range cs.Requests {
		ids = append(ids, string(cs.Requests[i].DriverID))
	}
	for _, id := range cs.CloseRequests {
		ids = append(ids, string(id.DriverID))
	}
	for i := range cs.Fixes {
		ids = append(ids, string(cs.Fixes[i].DriverID))
	}
	for i := range cs.Events {
		for _, n := range cs.Events[i].Notices {
			ids = append(ids, string(n.DriverID))
		}
	}
	return sorted(ids)
}

// sorted has each id once, in order, and none that nothing can have.
func sorted(ids []string) []string {
	ids = slices.DeleteFunc(ids, func(id string) bool { return !rows.Text(id) })
	slices.Sort(ids)
	return slices.Compact(ids)
}

// idsOf lists the ids of rows, in order.
func idsOf[T any](list []T, id func(*T) string) []string {
	var ids []string
	for i := range list {
		ids = append(ids, id(&list[i]))
	}
	return sorted(ids)
}

// versions queues a query for the versions of rows.
func (l *locked) versions(of map[string]int64, sql string, ids []string) {
	if len(ids) == 0 {
		return
	}
	queueEach(l.tx, func(v versionRow) { of[v.id] = v.version }, scanVersion, sql, l.app, sorted(ids))
}

type versionRow struct {
	id      string
	version int64
}

func scanVersion(row pgx.CollectableRow) (v versionRow, err error) {
	err = row.Scan(&v.id, &v.version)
	return v, err
}

const (
	// Rows are locked one by one, in the order of the ids. As a list of ids the server, where it does not
	// know yet how many rows there are, would look for them among all of the application.
	eachOfIDs  = `SELECT l.id, l.version FROM (SELECT unnest($2::text[]) AS id) u CROSS JOIN LATERAL (`
	lockedByID = ` WHERE app = $1 AND id = u.id FOR UPDATE) l`

	selectMarks   = `SELECT last_version, last_notice FROM tracking.apps WHERE n = $1`
	selectNumbers = `
SELECT nextval(pg_get_serial_sequence('tracking.drivers', 'n')) FROM generate_series(1, $1::int)`
)

// lock takes the locks of everything that changes are about, always in the same order: drivers, tasks,
// trips, keys, subjects, requests, and those of a kind in the order of applications and ids. So no two
// transactions wait for each other, but where both insert the same values.
func lock(ctx context.Context, x *tx, list ...*locked) error {
	for _, queue := range []func(*locked){
		(*locked).lockOwners, (*locked).lockTasks, (*locked).lockTrips, (*locked).lockKeys, (*locked).countEvents,
		(*locked).lockRequests,
	} {
		for _, l := range list {
			queue(l)
		}
	}
	return x.flush(ctx)
}

// lockOwners queues the locks of drivers, and the reading of what belongs to them.
func (l *locked) lockOwners() {
	ids := slices.Clone(l.also)
	fresh, invites, deleted := 0, 0, 0
	for _, c := range l.changes {
		ids = append(ids, driverIDs(c.cs)...)
		fresh += freshDrivers(c.cs)
		invites, deleted = invites+len(c.cs.Invites), deleted+len(c.cs.DeleteDrivers)
	}
	if ids = sorted(ids); len(ids) > 0 {
		locked := map[int64]bool{}
		queueEach(l.tx, func(n int64) { locked[n] = true }, pgx.RowTo[int64], lockPositions, l.app, ids)
		queueEach(l.tx, func(d *driverState) {
			if locked[d.number] { // else it was made since, and was not there yet
				l.drivers[d.ID] = d
			}
		}, scanDriver, selectLocked, l.app, ids)
	}
	if invites+deleted > 0 {
		queueEach(l.tx, func(v inviteState) { l.invites[v.driver] = v }, scanInviteState, lookInvites, l.app, ids)
	}
	if l.marked = fresh+invites > 0; l.marked {
		queueEach(l.tx, func(m marks) { l.marks = m }, scanMarks, selectMarks, l.app)
	}
	if fresh > 0 {
		queueRows(l.tx, &l.numbers, pgx.RowTo[int64], selectNumbers, fresh)
	}
}

func (l *locked) lockTasks() {
	var ids []string
	for _, c := range l.changes {
		ids = append(ids, idsOf(c.cs.Tasks, func(t *tracking.Task) string { return string(t.ID) })...)
		ids = append(ids, idsOf(c.cs.DeleteTasks, func(t *tracking.Task) string { return string(t.ID) })...)
	}
	l.versions(l.tasks, lockTasks, ids)
}

func (l *locked) lockTrips() {
	var ids []string
	for _, c := range l.changes {
		ids = append(ids, idsOf(c.cs.Trips, func(t *tracking.Trip) string { return string(t.ID) })...)
		ids = append(ids, idsOf(c.cs.DeleteTrips, func(t *tracking.Trip) string { return string(t.ID) })...)
	}
	l.versions(l.trips, lockTrips, ids)
}

func (l *locked) lockKeys() {
	var ids []string
	for _, c := range l.changes {
		ids = append(ids, idsOf(c.cs.Keys, func(k *tracking.Key) string { return k.ID })...)
	}
	l.versions(l.keys, lockKeys, ids)
}

func (l *locked) lockRequests() {
	var trips, owners, ofOwners, gone []string
	add := func(id tracking.RequestID) {
		if id.DriverID == "" {
			trips = append(trips, string(id.TrackingID))
		} else if rows.Text(id.DriverID) && rows.Text(id.TrackingID) {
			owners, ofOwners = append(owners, string(id.DriverID)), append(ofOwners, string(id.TrackingID))
		}
	}
	for _, c := range l.changes {
		for i := range c.cs.Requests {
			add(c.cs.Requests[i].RequestID)
		}
		for _, id := range c.cs.CloseRequests {
			add(id)
		}
		gone = append(gone, idsOf(c.cs.DeleteDrivers, func(d *tracking.Driver) string { return string(d.ID) })...)
	}
	if trips = sorted(trips); len(trips)+len(owners)+len(gone) == 0 {
		return
	}
	l.plan(false)
	queueEach(l.tx, func(r lockedRequest) { l.requests[r.id] = append(l.requests[r.id], r.driver) }, scanLockedRequest,
		lockRequests, l.app, trips, owners, ofOwners, gone)
}

// lockedRequest is a request by its trip and its driver's number.
type lockedRequest struct {
	id     tracking.TrackingID
	driver int64
}

func scanLockedRequest(row pgx.CollectableRow) (r lockedRequest, err error) {
	err = row.Scan(&r.id, &r.driver)
	return r, err
}

func scanMarks(row pgx.CollectableRow) (m marks, err error) {
	err = row.Scan(&m.version, &m.notice)
	return m, err
}

// freshDrivers is how many drivers a changeset makes.
func freshDrivers(cs *tracking.Changeset) (n int) {
	for i := range cs.Drivers {
		if cs.Drivers[i].Version == 0 {
			n++
		}
	}
	return n
}

// check compares versions, before anything is written. Drivers are deleted first, so that who has the
// id of one may be made in the same step.
func (c *change) check() error {
	for i := range c.cs.DeleteDrivers {
		d := &c.cs.DeleteDrivers[i]
		old := c.drivers[d.ID]
		if old == nil || old.Version != d.Version {
			return rows.VersionConflict(tracking.KindDriver, d.ID)
		}
		invite := c.invites[d.ID].version
		c.deleteDriver(old, invite)
		c.marks = c.marks.after(max(old.Version, invite), old.lastNotice)
		delete(c.drivers, d.ID)
		delete(c.invites, d.ID)
	}
	for i := range c.cs.Tasks {
		t := &c.cs.Tasks[i]
		if err := rows.Expect(tracking.KindTask, t.ID, t.Version, c.tasks[string(t.ID)]); err != nil {
			return err
		}
	}
	for i := range c.cs.Trips {
		t := &c.cs.Trips[i]
		if err := rows.Expect(tracking.KindTrip, t.ID, t.Version, c.trips[string(t.ID)]); err != nil {
			return err
		}
	}
	for i := range c.cs.Drivers {
		d := &c.cs.Drivers[i]
		var present int64
		if old := c.drivers[d.ID]; old != nil {
			present = old.Version
		}
		if err := rows.Expect(tracking.KindDriver, d.ID, d.Version, present); err != nil {
			return err
		}
	}
	for i := range c.cs.Keys {
		k := &c.cs.Keys[i]
		if err := rows.Expect(tracking.KindKey, k.ID, k.Version, c.keys[k.ID]); err != nil {
			return err
		}
	}
	return nil
}

// releaseAll takes the unique values from the rows that are replaced; they are written after that.
func (c *change) releaseAll() {
	for i := range c.cs.Tasks {
		c.queue(releaseTask, c.app, string(c.cs.Tasks[i].ID))
	}
	for i := range c.cs.Trips {
		c.queue(releaseTrip, c.app, string(c.cs.Trips[i].ID))
	}
	for i := range c.cs.Keys {
		c.queue(releaseKey, c.app, c.cs.Keys[i].ID)
	}
}

// putRows queues the rows that have versions: first those that are replaced, so that they make room
// for what is inserted.
func (l *locked) putRows() error {
	for _, insert := range []bool{false, true} {
		if insert {
			l.inserts()
		} else {
			l.updates()
		}
		if err := l.putTasks(insert); err != nil {
			return err
		}
		for _, c := range l.changes {
			if err := c.putOthers(insert); err != nil {
				return err
			}
		}
	}
	return nil
}

// putTasks queues the tasks that are new, or those that replace one.
func (l *locked) putTasks(insert bool) error {
	var list []*tracking.Task
	var given []*tracking.Given
	for _, c := range l.changes {
		for i := range c.cs.Tasks {
			if t := &c.cs.Tasks[i]; t.Version == 0 == insert {
				list, given = append(list, t), append(given, &c.written.Tasks[i])
			}
		}
	}
	switch {
	case len(list) == 0:
		return nil
	case !insert:
		return l.writeTasks(updateTasks, l.app, list, given)
	}
	sql := insertTasks
	if l.store.tx != nil {
		sql = insertTasksWithin
	}
	if err := l.writeTasks(sql, l.app, list, given); err != nil {
		return err
	}
	ids := make([]string, len(list))
	for i, t := range list {
		ids[i] = string(t.ID)
	}
	l.givingTasks(list, given, renumberTasks, l.app, ids)
	return nil
}

// putOthers queues the trips, drivers and keys that are new, or those that replace one.
func (c *change) putOthers(insert bool) error {
	for i := range c.cs.Trips {
		if t := &c.cs.Trips[i]; t.Version == 0 == insert {
			c.putTrip(c.app, t, &c.written.Trips[i])
		}
	}
	for i := range c.cs.Drivers {
		if d := &c.cs.Drivers[i]; d.Version == 0 == insert {
			if err := c.putDriverRow(d, &c.written.Drivers[i]); err != nil {
				return err
			}
		}
	}
	for i := range c.cs.Keys {
		if k := &c.cs.Keys[i]; k.Version == 0 == insert {
			c.putKey(c.app, k)
		}
	}
	return nil
}

func (c *change) putDriverRow(d *tracking.Driver, given *tracking.Given) error {
	var number int64
	if d.Version == 0 {
		number, c.numbers = c.numbers[0], c.numbers[1:]
	}
	next, err := c.putDriver(c.app, d, c.drivers[d.ID], number, c.marks)
	if err != nil {
		return err
	}
	c.drivers[d.ID] = next
	given.Seq, given.Version = next.Seq, next.Version
	return nil
}

// owner is the driver whom something belongs to. Without him it is a conflict.
func (c *change) owner(id tracking.DriverID) (*driverState, error) {
	if d := c.drivers[id]; d != nil {
		return d, nil
	}
	return nil, rows.VersionConflict(tracking.KindDriver, id)
}

// putInvites writes invites, and takes their codes. All that are left are left first: one invite may
// have left its code to another.
func (c *change) putInvites(ctx context.Context) error {
	if len(c.cs.Invites) == 0 {
		return nil
	}
	for i := range c.cs.Invites {
		v := &c.cs.Invites[i]
		d, err := c.owner(v.DriverID)
		if err != nil {
			return err
		}
		old := c.invites[v.DriverID]
		if v.Version != 0 && v.Version != old.version {
			return rows.VersionConflict(tracking.KindInvite, v.DriverID)
		}
		c.putInvite(d, v, old, c.marks)
		switch {
		case old.code.IsZero():
		case old.code.Hash == v.CodeHash:
			c.queue(keepCode, hashValue(v.CodeHash), d.app, d.number, rows.Time(v.CodeExpiresAt).UnixMilli())
		default:
			c.queue(releaseCode, hashValue(old.code.Hash), d.app, d.number)
		}
	}
	var coded []*tracking.Invite
	for i := range c.cs.Invites {
		if v := &c.cs.Invites[i]; !v.CodeHash.IsZero() && v.CodeHash != c.invites[v.DriverID].code.Hash {
			coded = append(coded, v)
		}
	}
	slices.SortFunc(coded, func(a, b *tracking.Invite) int { return slices.Compare(a.CodeHash[:], b.CodeHash[:]) })
	taken, held := make([]int, len(coded)), make([]int, len(coded))
	for i, v := range coded {
		d := c.drivers[v.DriverID]
		c.counted(&taken[i], takeCode, hashValue(v.CodeHash), d.app, d.number, v.CodeExpiresAt.UnixMilli(),
			v.CreatedAt.UnixMilli())
	}
	// Who takes a code has waited for whoever was taking it. Of those who have had it, one whose own
	// has not expired by then is in the way, also if somebody has taken it after him.
	for i, v := range coded {
		d := c.drivers[v.DriverID]
		c.counted(&held[i], selectCodeHeld, hashValue(v.CodeHash), v.CreatedAt.UnixMilli(), d.app, d.number)
	}
	if len(coded) == 0 {
		return nil
	}
	if err := c.flush(ctx); err != nil {
		return err
	}
	if slices.Contains(taken, 0) || slices.ContainsFunc(held, func(n int) bool { return n > 0 }) {
		return rows.UniqueConflict(tracking.KindInvite, "code")
	}
	return nil
}

func (c *change) putRequests() error {
	for i := range c.cs.Requests {
		r := &c.cs.Requests[i]
		d, err := c.owner(r.DriverID)
		if err != nil {
			return err
		}
		c.putRequest(d, r)
		c.requests[r.TrackingID] = append(c.requests[r.TrackingID], d.number)
	}
	for _, id := range c.cs.CloseRequests {
		if !rows.Text(id.TrackingID) {
			continue
		}
		if id.DriverID == "" {
			c.plan(false)
			c.queue(deleteRequestsOfTrip, c.app, c.requests[id.TrackingID], string(id.TrackingID))
		} else if d := c.drivers[id.DriverID]; d != nil {
			c.plan(false)
			c.queue(deleteRequest, d.app, d.number, string(id.TrackingID))
		}
	}
	return nil
}

// recordFixes records the batches, in their order.
func (c *change) recordFixes(ctx context.Context) error {
	if len(c.cs.Fixes) == 0 {
		return nil
	}
	list := make([]*arrival, len(c.cs.Fixes))
	for i, b := range c.cs.Fixes {
		d, err := c.owner(b.DriverID)
		if err != nil {
			return err
		}
		list[i] = &arrival{driver: d, batch: rows.Batch(b)}
	}
	if err := c.record(ctx, list); err != nil {
		return err
	}
	for _, a := range list {
		if errors.Is(a.err, tracking.ErrNotFound) {
			return rows.VersionConflict(tracking.KindDriver, a.batch.DriverID)
		}
		if a.err != nil {
			return a.err
		}
	}
	return nil
}

// bySubject orders subjects.
func bySubject(a, b tracking.Subject) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}
