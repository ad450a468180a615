-- What the last arrivals say of a phone's clock, in seconds, and how much could not be read.
ALTER TABLE positions ADD COLUMN skew_least    REAL; -- NULL: not known
ALTER TABLE positions ADD COLUMN skew_recent   REAL;
ALTER TABLE positions ADD COLUMN skew_arrivals INTEGER NOT NULL DEFAULT 0;
ALTER TABLE positions ADD COLUMN unread        INTEGER NOT NULL DEFAULT 0;

-- Queues by application, so that one that has no room is passed over at the cost of one search, however much waits in it. What
-- may be handed out at once (ready_at is the least number) stands apart from what is leased or to be tried again later; that
-- is moved over when its time has come.
DROP INDEX queues_by_head;
DROP INDEX queues_ready;
CREATE INDEX queues_ready  ON queues (outbox, app, head) WHERE head IS NOT NULL AND ready_at = 0x8000000000000000;
CREATE INDEX queues_later  ON queues (outbox, ready_at) WHERE head IS NOT NULL AND ready_at > 0x8000000000000000;
CREATE INDEX queues_leased ON queues (outbox, leased_until) WHERE leased_until IS NOT NULL;

-- Waiting tasks are found in the index in process.
DROP INDEX tasks_waiting_by_app;

-- What ends of one driver's trips costs nothing of what ends elsewhere.
CREATE INDEX trips_due_by_driver ON trips (app, driver_id, ttl) WHERE status = 1;

-- Marks that outlive rows: who uses an id again goes on from there.
ALTER TABLE apps ADD COLUMN last_version INTEGER NOT NULL DEFAULT 0; -- no row of the application that is gone had a greater version
ALTER TABLE apps ADD COLUMN last_notice  INTEGER NOT NULL DEFAULT 0; -- nor had one of its drivers who is gone a notice of a greater id
UPDATE apps SET last_notice = coalesce((
    SELECT max(json_extract(j.value, '$.id')) FROM events e, json_each(e.notices) j WHERE e.app = apps.n AND e.notices IS NOT NULL), 0);

-- Who had the id: another value each time that a driver of it is made. What is older than the driver's row is of somebody before.
ALTER TABLE drivers ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE trips   ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks   ADD COLUMN person TEXT NOT NULL DEFAULT '';
UPDATE drivers SET person = lower(hex(randomblob(16)));
UPDATE trips SET person = coalesce((
    SELECT d.person FROM drivers d WHERE d.app = trips.app AND d.id = trips.driver_id AND d.created_at <= trips.created_at), '-');
UPDATE tasks SET person = coalesce((
    SELECT d.person FROM drivers d WHERE d.app = tasks.app AND d.id = tasks.driver_id
        AND (tasks.status <> 'completed' OR d.created_at <= coalesce(tasks.assigned_at, tasks.completed_at))), '-')
WHERE driver_id <> '';

-- Drivers who are deleted, by their seq, while there are fixes and notices of theirs. So notices refer to no driver any more.
CREATE TABLE erased (driver INTEGER PRIMARY KEY) STRICT;

ALTER TABLE notices RENAME TO notices_before;
CREATE TABLE notices (
    driver      INTEGER NOT NULL,
    id          INTEGER NOT NULL,
    kind        TEXT    NOT NULL,
    event_id    TEXT    NOT NULL,
    task_id     TEXT    NOT NULL,
    tracking_id TEXT    NOT NULL,
    time        INTEGER NOT NULL,
    PRIMARY KEY (driver, id)
) STRICT, WITHOUT ROWID;
INSERT INTO notices SELECT driver, id, kind, event_id, task_id, tracking_id, time FROM notices_before;
DROP TABLE notices_before;
CREATE INDEX notices_by_time ON notices (time);

-- A code belongs to an invite while it lives. Those that an invite has had are told from those that nobody had.
DROP INDEX invites_by_code;
CREATE INDEX invites_by_code ON invites (code_hash, code_expires_at) WHERE code_hash IS NOT NULL;
ALTER TABLE invites ADD COLUMN past_codes BLOB; -- hashes, one after another; NULL: none. The same in rows, to be found by: past_codes
CREATE TABLE past_codes (
    code_hash BLOB    NOT NULL,
    driver    INTEGER NOT NULL REFERENCES invites ON DELETE CASCADE,
    PRIMARY KEY (code_hash, driver)
) STRICT, WITHOUT ROWID;
CREATE INDEX past_codes_by_driver ON past_codes (driver);

-- Counts of open tasks that had drifted.
UPDATE drivers SET open_tasks = (
    SELECT count(*) FROM tasks t INDEXED BY tasks_by_driver_status
    WHERE t.app = drivers.app AND t.driver_id = drivers.id AND t.driver_id <> '' AND t.status IN ('assigned', 'in_progress'));

-- What else than the newest good fix the next one is judged by; NULL: nothing. '?': to be made anew from the fixes.
-- Marks of fixes: 1 good, 2 good with something open, 3 left out, 4 coarse, 5 left out among too many jumps, 6 coarse after too many coarse ones.
ALTER TABLE positions ADD COLUMN tail TEXT;
UPDATE positions SET tail = '?' WHERE cand_time IS NOT NULL;
ALTER TABLE positions DROP COLUMN cand_time;
ALTER TABLE positions DROP COLUMN cand_lng;
ALTER TABLE positions DROP COLUMN cand_lat;
ALTER TABLE positions DROP COLUMN cand_event_id;
ALTER TABLE positions DROP COLUMN cand_accuracy;
ALTER TABLE positions DROP COLUMN cand_speed;
ALTER TABLE positions DROP COLUMN cand_bearing;
ALTER TABLE positions DROP COLUMN cand_battery;
ALTER TABLE positions DROP COLUMN cand_trusted;

-- What the service remembers of itself.
CREATE TABLE memos (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
