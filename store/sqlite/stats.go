package sqlite

import (
	"context"
	"math"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const (
	// From each application to the next, as the indices begin with it.
	selectStats = `
SELECT 'created' AS what, count(*) AS n, NULL AS at
	FROM apps a CROSS JOIN tasks t INDEXED BY tasks_by_status_window WHERE t.app = a.n AND t.status = 'created'
UNION ALL SELECT 'assigned', count(*), NULL
	FROM apps a CROSS JOIN tasks t INDEXED BY tasks_by_status_window WHERE t.app = a.n AND t.status = 'assigned'
UNION ALL SELECT 'in_progress', count(*), NULL
	FROM apps a CROSS JOIN tasks t INDEXED BY tasks_by_status_window WHERE t.app = a.n AND t.status = 'in_progress'
UNION ALL SELECT 'waiting', count(*), NULL FROM tasks INDEXED BY tasks_waiting WHERE waiting = 1 AND created_at >= ?1
UNION ALL SELECT 'oldest', 0, (SELECT min(at) FROM (
	SELECT coalesce(json_extract(more, '$.since'), created_at) AS at
	FROM tasks INDEXED BY tasks_waiting WHERE waiting = 1 AND created_at >= ?1 ORDER BY created_at LIMIT 1000))
UNION ALL SELECT 'late', count(*), NULL FROM apps a CROSS JOIN tasks t INDEXED BY tasks_late
	WHERE t.app = a.n AND t.late_from IS NOT NULL AND t.late_from <= ?2
UNION ALL SELECT 'on_duty', count(*), NULL
	FROM apps a CROSS JOIN drivers d INDEXED BY drivers_by_availability WHERE d.app = a.n AND d.available = 1
UNION ALL SELECT 'silent', count(*), NULL FROM apps a CROSS JOIN drivers d INDEXED BY drivers_by_availability
	WHERE d.app = a.n AND d.available = 1 AND d.silent = 1`

	countDead = `
SELECT 'dead' AS what, outbox AS name, count(*) AS n FROM deliveries INDEXED BY deliveries_dead WHERE state = 2
	GROUP BY app, outbox`

	// The outboxes of queues in one index and then in the other, from each to the next.
	selectOutboxes = `
WITH RECURSIVE
	ready (name) AS (
		SELECT (SELECT outbox FROM queues INDEXED BY queues_ready WHERE ` + isReady + ` AND outbox >= ''
			ORDER BY outbox LIMIT 1)
		UNION ALL
		SELECT (SELECT outbox FROM queues INDEXED BY queues_ready WHERE ` + isReady + ` AND outbox > ready.name
			ORDER BY outbox LIMIT 1)
		FROM ready WHERE name IS NOT NULL),
	later (name) AS (
		SELECT (SELECT outbox FROM queues INDEXED BY queues_later WHERE ` + isLater + ` AND outbox >= ''
			ORDER BY outbox LIMIT 1)
		UNION ALL
		SELECT (SELECT outbox FROM queues INDEXED BY queues_later WHERE ` + isLater + ` AND outbox > later.name
			ORDER BY outbox LIMIT 1)
		FROM later WHERE name IS NOT NULL)
SELECT name FROM ready WHERE name IS NOT NULL UNION SELECT name FROM later WHERE name IS NOT NULL`

	// To read all that is undelivered for each outbox takes a fraction of what it takes to group it, as
	// that sorts. The oldest of an application is at the head of a queue.
	selectUndelivered = `
SELECT 'undelivered' AS what, ?1 AS name, (SELECT count(*) FROM deliveries WHERE outbox = ?1 AND state = 1) AS n,
	(SELECT min(e.recorded_at) FROM (
		SELECT min(head) AS head FROM (
			SELECT app, head FROM (` + selectReadyApps + `)
			UNION ALL
			SELECT app, min(head) FROM queues INDEXED BY queues_later WHERE outbox = ?1 AND ` + isLater + ` GROUP BY app) heads
		GROUP BY app
	) h CROSS JOIN events e ON e.n = h.head) AS at`
)

// Stats implements [tracking.Store].
func (s *Store) Stats(ctx context.Context, now time.Time) (tracking.Stats, error) {
	var all []rows.Stat
	err := s.read(ctx, func(ctx context.Context) error {
		add := func(query string, args ...any) error {
			var list []struct {
				What, Name string
				N          int
				At         instant
			}
			err := s.list(ctx, &list, query, args...)
			for _, r := range list {
				all = append(all, rows.Stat{What: r.What, Name: r.Name, N: r.N, At: r.At.Time})
			}
			return err
		}
		if err := add(selectStats, int64(math.MinInt64), now.UnixMilli()); err != nil {
			return err
		}
		if err := add(countDead); err != nil {
			return err
		}
		var outboxes []string
		if err := s.list(ctx, &outboxes, selectOutboxes); err != nil {
			return err
		}
		for _, name := range outboxes {
			if err := add(selectUndelivered, name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return tracking.Stats{}, err
	}
	n := rows.Stats(all)
	n.Queue = s.writer.waiting()
	return n, nil
}
