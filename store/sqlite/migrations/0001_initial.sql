-- Times are UTC milliseconds; NULL is the zero time. Hashes are SHA-256; NULL is none. Texts are never NULL unless it says so.
-- "app" and "driver" are short numbers for ids that would otherwise stand in every index.

CREATE TABLE secrets (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE apps (
    n  INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE tasks (
    seq             INTEGER PRIMARY KEY,
    app             INTEGER NOT NULL REFERENCES apps,
    id              TEXT    NOT NULL,
    version         INTEGER NOT NULL,
    type            INTEGER NOT NULL,
    status          TEXT    NOT NULL,
    outcome         TEXT    NOT NULL,
    reason          TEXT    NOT NULL,
    time            INTEGER,
    notes           TEXT    NOT NULL,
    order_id        TEXT    NOT NULL,
    pickup_lng      REAL,
    pickup_lat      REAL,
    pickup_address  TEXT, -- NULL: no pickup
    pickup_name     TEXT, -- NULL: no customer
    pickup_mobile   TEXT,
    drop_lng        REAL,
    drop_lat        REAL,
    drop_address    TEXT, -- NULL: no drop
    drop_name       TEXT, -- NULL: no customer
    drop_mobile     TEXT,
    driver_id       TEXT    NOT NULL,
    auto_assigned   INTEGER NOT NULL,
    waiting         INTEGER NOT NULL,
    excluded        TEXT, -- a JSON array of driver ids; NULL: none
    key             TEXT, -- NULL: none
    key_sum         BLOB,
    geocode_at      INTEGER,
    link_generation INTEGER NOT NULL,
    link_hash       BLOB,
    link_made_at    INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER,
    assigned_at     INTEGER,
    started_at      INTEGER,
    picked_up_at    INTEGER,
    completed_at    INTEGER
) STRICT;

-- The rowid, seq, ends every index.
CREATE UNIQUE INDEX tasks_by_id  ON tasks (app, id);
CREATE UNIQUE INDEX tasks_by_key ON tasks (app, key) WHERE key IS NOT NULL;
CREATE INDEX tasks_by_link              ON tasks (link_hash) WHERE link_hash IS NOT NULL;
CREATE INDEX tasks_by_age               ON tasks (app, created_at);
CREATE INDEX tasks_by_status            ON tasks (app, status, created_at);
CREATE INDEX tasks_by_driver            ON tasks (app, driver_id, created_at) WHERE driver_id <> '';
CREATE INDEX tasks_by_driver_status     ON tasks (app, driver_id, status, created_at) WHERE driver_id <> '';
CREATE INDEX tasks_by_order             ON tasks (app, order_id, created_at) WHERE order_id <> '';
CREATE INDEX tasks_by_completion        ON tasks (app, completed_at) WHERE completed_at IS NOT NULL;
CREATE INDEX tasks_by_driver_completion ON tasks (app, driver_id, completed_at) WHERE completed_at IS NOT NULL AND driver_id <> '';
CREATE INDEX tasks_waiting              ON tasks (created_at) WHERE waiting = 1;
CREATE INDEX tasks_waiting_by_app       ON tasks (app, created_at) WHERE waiting = 1;
CREATE INDEX tasks_to_geocode           ON tasks (geocode_at) WHERE geocode_at IS NOT NULL;

CREATE TABLE trips (
    seq             INTEGER PRIMARY KEY,
    app             INTEGER NOT NULL REFERENCES apps,
    id              TEXT    NOT NULL,
    version         INTEGER NOT NULL,
    tracking_id     TEXT    NOT NULL,
    driver_id       TEXT    NOT NULL,
    task_id         TEXT    NOT NULL,
    status          INTEGER NOT NULL,
    starts_at_lng   REAL,
    starts_at_lat   REAL,
    ends_at_lng     REAL,
    ends_at_lat     REAL,
    start_location  TEXT    NOT NULL,
    end_location    TEXT    NOT NULL,
    dest_lng        REAL,
    dest_lat        REAL,
    dest_address    TEXT, -- NULL: no destination
    dest_name       TEXT, -- NULL: no customer
    dest_mobile     TEXT,
    started_at      INTEGER,
    ended_at        INTEGER,
    covers_until    INTEGER NOT NULL, -- the end of the window over fixes: ended_at, or the greatest number while active
    ttl             INTEGER,
    geocode_at      INTEGER,
    link_generation INTEGER NOT NULL,
    link_hash       BLOB,
    link_made_at    INTEGER,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER
) STRICT;

CREATE UNIQUE INDEX trips_by_id  ON trips (app, id);
CREATE UNIQUE INDEX trips_active ON trips (app, tracking_id) WHERE status = 1;
CREATE INDEX trips_by_link       ON trips (link_hash) WHERE link_hash IS NOT NULL;
CREATE INDEX trips_by_age        ON trips (app, created_at);
CREATE INDEX trips_by_status     ON trips (app, status, created_at);
CREATE INDEX trips_by_driver     ON trips (app, driver_id, created_at);
CREATE INDEX trips_by_tracking   ON trips (app, tracking_id, created_at);
CREATE INDEX trips_by_window     ON trips (app, driver_id, covers_until);
CREATE INDEX trips_due           ON trips (ttl) WHERE status = 1;
CREATE INDEX trips_due_by_app    ON trips (app, ttl) WHERE status = 1;
CREATE INDEX trips_to_geocode    ON trips (geocode_at) WHERE geocode_at IS NOT NULL;

-- AUTOINCREMENT: the number of a deleted driver is never given again.
CREATE TABLE drivers (
    seq              INTEGER PRIMARY KEY AUTOINCREMENT,
    app              INTEGER NOT NULL REFERENCES apps,
    id               TEXT    NOT NULL,
    version          INTEGER NOT NULL,
    name             TEXT    NOT NULL,
    mobile           TEXT    NOT NULL,
    email            TEXT    NOT NULL,
    available        INTEGER NOT NULL,
    properties       TEXT, -- a JSON object; NULL: none. The same in rows, to be searched: driver_properties
    push             TEXT, -- a JSON array; NULL: none
    open_tasks       INTEGER NOT NULL,
    silent           INTEGER NOT NULL,
    duty_at          INTEGER,
    off_duty_at      INTEGER,
    token_generation INTEGER NOT NULL,
    app_token        BLOB,
    ingest_token     BLOB,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER,
    last_notice      INTEGER NOT NULL DEFAULT 0, -- the greatest id given in the driver's feed
    purged_notice    INTEGER NOT NULL DEFAULT 0  -- the greatest id purged from it
) STRICT;

CREATE UNIQUE INDEX drivers_by_id    ON drivers (app, id);
CREATE INDEX drivers_by_app_token    ON drivers (app_token) WHERE app_token IS NOT NULL;
CREATE INDEX drivers_by_ingest_token ON drivers (ingest_token) WHERE ingest_token IS NOT NULL;
CREATE INDEX drivers_by_age          ON drivers (app, created_at);
CREATE INDEX drivers_by_availability ON drivers (app, available, created_at);

CREATE TABLE driver_properties (
    app        INTEGER NOT NULL,
    key        TEXT    NOT NULL,
    value      TEXT    NOT NULL,
    created_at INTEGER NOT NULL, -- the driver's, so that a property lists its drivers oldest first
    driver     INTEGER NOT NULL REFERENCES drivers ON DELETE CASCADE,
    PRIMARY KEY (app, key, value, created_at, driver)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX driver_properties_by_driver ON driver_properties (driver, key);

-- Where a driver is lives apart from his row, and costs it no version.
CREATE TABLE positions (
    driver        INTEGER PRIMARY KEY REFERENCES drivers ON DELETE CASCADE,
    seen_at       INTEGER,
    oldest_at     INTEGER, -- of the fixes that are not purged; NULL: there are none
    fix_time      INTEGER, -- NULL: no position
    fix_lng       REAL,
    fix_lat       REAL,
    fix_event_id  TEXT,
    fix_accuracy  REAL,
    fix_speed     REAL,
    fix_bearing   REAL,
    fix_battery   REAL,
    fix_trusted   INTEGER,
    cand_time     INTEGER, -- NULL: no candidate
    cand_lng      REAL,
    cand_lat      REAL,
    cand_event_id TEXT,
    cand_accuracy REAL,
    cand_speed    REAL,
    cand_bearing  REAL,
    cand_battery  REAL,
    cand_trusted  INTEGER
) STRICT;

CREATE INDEX positions_by_oldest ON positions (oldest_at) WHERE oldest_at IS NOT NULL;

-- A driver's fixes lie together in order of time. There are so many of them that they have no index and no look-up of their driver.
-- A negative mark: purged, but the fixes after it are still judged by it.
CREATE TABLE fixes (
    driver   INTEGER NOT NULL,
    time     INTEGER NOT NULL,
    mark     INTEGER NOT NULL,
    lng      REAL    NOT NULL,
    lat      REAL    NOT NULL,
    event_id TEXT    NOT NULL,
    accuracy REAL,
    speed    REAL,
    bearing  REAL,
    battery  REAL,
    trusted  INTEGER NOT NULL,
    PRIMARY KEY (driver, time)
) STRICT, WITHOUT ROWID;

CREATE TABLE requests (
    driver       INTEGER NOT NULL REFERENCES drivers ON DELETE CASCADE,
    tracking_id  TEXT    NOT NULL,
    message      TEXT    NOT NULL,
    dest_lng     REAL,
    dest_lat     REAL,
    dest_address TEXT, -- NULL: no destination
    dest_name    TEXT, -- NULL: no customer
    dest_mobile  TEXT,
    description  TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (driver, tracking_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX requests_by_age ON requests (created_at);

CREATE TABLE invites (
    driver          INTEGER PRIMARY KEY REFERENCES drivers ON DELETE CASCADE,
    version         INTEGER NOT NULL,
    link_hash       BLOB,
    code_hash       BLOB,
    created_at      INTEGER NOT NULL,
    link_expires_at INTEGER,
    code_expires_at INTEGER,
    joined_at       INTEGER,
    nonce_hash      BLOB,
    generation      INTEGER NOT NULL,
    over_at         INTEGER NOT NULL -- the latest of the expiries and joined_at
) STRICT;

CREATE INDEX invites_by_link        ON invites (link_hash) WHERE link_hash IS NOT NULL;
CREATE UNIQUE INDEX invites_by_code ON invites (code_hash) WHERE code_hash IS NOT NULL;
CREATE INDEX invites_over           ON invites (over_at);

CREATE TABLE keys (
    app        INTEGER NOT NULL REFERENCES apps,
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    hash       BLOB,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER,
    PRIMARY KEY (app, id)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX keys_by_hash ON keys (hash) WHERE hash IS NOT NULL;

-- One row for each thing that events are about: its counter.
CREATE TABLE subjects (
    n        INTEGER PRIMARY KEY,
    app      INTEGER NOT NULL REFERENCES apps,
    kind     TEXT    NOT NULL,
    id       TEXT    NOT NULL,
    last_seq INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX subjects_by_id ON subjects (app, kind, id);

-- AUTOINCREMENT: the order of commit goes on after a purge.
CREATE TABLE events (
    n           INTEGER PRIMARY KEY AUTOINCREMENT,
    app         INTEGER NOT NULL REFERENCES apps,
    id          TEXT    NOT NULL,
    type        TEXT    NOT NULL,
    time        INTEGER,
    recorded_at INTEGER NOT NULL,
    actor       TEXT    NOT NULL,
    subject     INTEGER NOT NULL REFERENCES subjects,
    seq         INTEGER NOT NULL,
    data        TEXT, -- a JSON object; NULL: empty
    notices     TEXT, -- a JSON array; NULL: empty
    undelivered INTEGER NOT NULL -- in how many outboxes; at 0 it may be purged
) STRICT;

CREATE UNIQUE INDEX events_by_id ON events (app, id);
CREATE INDEX events_by_app       ON events (app);
CREATE INDEX events_by_subject   ON events (subject);
CREATE INDEX events_over         ON events (recorded_at) WHERE undelivered = 0;

-- What an outbox has to deliver of a subject. A row is there while there is something, or a lease.
CREATE TABLE queues (
    subject      INTEGER NOT NULL REFERENCES subjects,
    outbox       TEXT    NOT NULL, -- its name
    app          INTEGER NOT NULL, -- the subject's
    head         INTEGER, -- the first undelivered event; NULL: none
    ready_at     INTEGER NOT NULL, -- the queue is not handed out before: the later of the head's retry_at and leased_until
    owner        TEXT, -- of the lease; NULL: none, or it was ended
    leased_until INTEGER,
    PRIMARY KEY (subject, outbox)
) STRICT, WITHOUT ROWID;

CREATE INDEX queues_by_head ON queues (outbox, head, ready_at, app) WHERE head IS NOT NULL;
CREATE INDEX queues_ready   ON queues (outbox, ready_at) WHERE head IS NOT NULL;

-- What is not delivered, a row for each event and outbox. The event is no foreign key: that would want an index on it, to be written with each row.
CREATE TABLE deliveries (
    subject  INTEGER NOT NULL, -- the event's
    outbox   TEXT    NOT NULL, -- its name
    state    INTEGER NOT NULL, -- 1 in the queue, 2 dead
    event    INTEGER NOT NULL,
    app      INTEGER NOT NULL, -- the event's
    attempts INTEGER NOT NULL,
    retry_at INTEGER,
    PRIMARY KEY (subject, outbox, state, event)
) STRICT, WITHOUT ROWID;

CREATE INDEX deliveries_dead          ON deliveries (app, outbox, event) WHERE state = 2;
CREATE INDEX deliveries_dead_by_event ON deliveries (event) WHERE state = 2; -- for the purge

CREATE TABLE notices (
    driver      INTEGER NOT NULL REFERENCES drivers ON DELETE CASCADE,
    id          INTEGER NOT NULL,
    kind        TEXT    NOT NULL,
    event_id    TEXT    NOT NULL,
    task_id     TEXT    NOT NULL,
    tracking_id TEXT    NOT NULL,
    time        INTEGER NOT NULL,
    PRIMARY KEY (driver, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX notices_by_time ON notices (time);
