package postgres

import (
	"slices"

	"github.com/seed-8aba7b13/tracking"
)

// What is all new, tasks and events without notices, needs no row to be read before it is written: it
// takes one round trip. Where something of it is there already nothing is written, and who it is is
// found as for any other changeset.

// freshRows is how many tasks and events may be written so at once: each event is looked for among all
// subjects.
const freshRows = 1000

// sizeOf is how many rows of a changeset count for that.
func sizeOf(cs *tracking.Changeset) int { return len(cs.Tasks) + len(cs.Events) }

// fresh reports whether a changeset, one that may share a transaction, is all new.
func fresh(cs *tracking.Changeset) bool {
	return sizeOf(cs) <= freshRows && len(cs.Trips)+len(cs.Drivers)+len(cs.Requests)+len(cs.CloseRequests) == 0 &&
		!slices.ContainsFunc(cs.Tasks, func(t tracking.Task) bool { return t.Version != 0 }) &&
		!slices.ContainsFunc(cs.Events, func(e tracking.Event) bool { return len(e.Notices) > 0 })
}

// appendFresh counts events, writes them, and puts them into queues. The row of a subject is locked from
// before an event of it is numbered, as countEvents does it.
var appendFresh = `
WITH s AS (
	INSERT INTO tracking.subjects AS s (app, kind, id, last_seq)
	SELECT $1::int, u.kind, u.id, u.n FROM unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY u (kind, id, n, o)
	ORDER BY o
	ON CONFLICT (app, kind, id) DO UPDATE SET last_seq = s.last_seq + excluded.last_seq
	RETURNING s.kind, s.id, s.n, s.last_seq),
e AS (
	INSERT INTO tracking.events (app, id, type, time, recorded_at, actor, subject, kind, subject_id, person, seq, data)
	SELECT $1::int, u.id, u.type, u.time, u.recorded_at, u.actor, s.n, u.kind, u.subject_id, u.person,
		s.last_seq - u.later, u.data::jsonb
	FROM ` + orderedArrays(5, `id, type, time, recorded_at, actor, kind, subject_id, person, later, data`,
	`text, text, bigint, bigint, text, text, text, text, bigint, text`) + `
	JOIN s ON s.id = u.subject_id AND s.kind = u.kind ORDER BY u.o
	RETURNING subject, n),
d AS (
	INSERT INTO tracking.deliveries (app, subject, outbox, event, state, attempts)
	SELECT $1::int, e.subject, o.outbox, e.n, 1, 0 FROM e, unnest($15::text::text[]) o (outbox))
INSERT INTO tracking.queues AS q (app, subject, outbox, head)
SELECT $1::int, e.subject, o.outbox, min(e.n) FROM e, unnest($15::text::text[]) o (outbox)
GROUP BY e.subject, o.outbox ORDER BY e.subject, o.outbox
ON CONFLICT (app, subject, outbox) DO UPDATE SET head = excluded.head WHERE q.head IS NULL`

// applyFresh applies the changesets of a group, all of which are fresh.
func (x *tx) applyFresh(list []*committing) error {
	x.plansOf(0)
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b *committing) int { return int(a.app) - int(b.app) })
	var apps []*locked
	for i, c := range list {
		if i == 0 || c.app != list[i-1].app {
			apps = append(apps, newLocked(x, c.app))
		}
		c.out, c.err = apps[len(apps)-1].add(c.cs).written, nil
	}
	x.inserts()
	for _, l := range apps {
		if err := l.putTasks(true); err != nil {
			return err
		}
	}
	for _, l := range apps {
		if err := l.appendFresh(); err != nil {
			return err
		}
	}
	return nil
}

// appendFresh queues the events of the changes: those that go to the same outboxes together.
func (l *locked) appendFresh() error {
	for rest := l.changes; len(rest) > 0; {
		deliver := rest[0].cs.Deliver
		var others []*change
		var events []*tracking.Event
		for _, c := range rest {
			if !slices.Equal(c.cs.Deliver, deliver) {
				others = append(others, c)
				continue
			}
			for i := range c.cs.Events {
				events = append(events, &c.cs.Events[i])
			}
		}
		if rest = others; len(events) == 0 {
			continue
		}
		kinds, ids, n := countOf(events)
		later := make(map[tracking.Subject]int64, len(ids)) // how many events of it come after the next
		for i, id := range ids {
			later[tracking.Subject{Kind: tracking.SubjectKind(kinds[i]), ID: id}] = n[i]
		}
		values := make([][]any, len(events))
		for i, e := range events {
			data, err := jsonValue(e.Data, len(e.Data))
			if err != nil {
				return err
			}
			later[e.Subject]--
			values[i] = []any{
				e.ID, string(e.Type), millis(e.Time), e.RecordedAt.UnixMilli(), e.Actor, string(e.Subject.Kind),
				e.Subject.ID, e.Person, later[e.Subject], data,
			}
		}
		args := slices.Concat([]any{l.app, kinds, ids, n}, columns(values), []any{arrayValue(deliver)})
		l.queue(appendFresh, args...)
	}
	return nil
}
