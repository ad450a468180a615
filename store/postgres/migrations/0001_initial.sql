-- Times are UTC milliseconds; NULL is the zero time. Hashes are SHA-256; NULL is none. Texts compare byte for byte.
-- "app" is the short number of an application, and leads every key. "driver" is a number too, which no other driver ever has.

-- What of each application outlives its rows: no row that is gone had a greater version, and no driver who is gone a notice
-- of a greater id.
CREATE TABLE tracking.apps (
    n            int    GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id           text   COLLATE "C" NOT NULL UNIQUE,
    last_version bigint NOT NULL DEFAULT 0,
    last_notice  bigint NOT NULL DEFAULT 0
);

CREATE TABLE tracking.secrets (
    name  text  COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

-- What the service remembers of itself.
CREATE TABLE tracking.memos (
    name  text  COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);

CREATE TABLE tracking.tasks (
    app             int    NOT NULL,
    id              text   COLLATE "C" NOT NULL,
    seq             bigint GENERATED ALWAYS AS IDENTITY,
    version         bigint NOT NULL,
    type            int    NOT NULL,
    status          text   COLLATE "C" NOT NULL,
    outcome         text   COLLATE "C" NOT NULL,
    reason          text   COLLATE "C" NOT NULL,
    time            bigint,
    notes           text   COLLATE "C" NOT NULL,
    order_id        text   COLLATE "C" NOT NULL,
    pickup_lng      float8,
    pickup_lat      float8,
    pickup_address  text   COLLATE "C", -- NULL: no pickup
    pickup_name     text   COLLATE "C", -- NULL: no customer
    pickup_mobile   text   COLLATE "C",
    drop_lng        float8,
    drop_lat        float8,
    drop_address    text   COLLATE "C", -- NULL: no drop
    drop_name       text   COLLATE "C", -- NULL: no customer
    drop_mobile     text   COLLATE "C",
    driver_id       text   COLLATE "C" NOT NULL,
    person          text   COLLATE "C" NOT NULL,
    auto_assigned   bool   NOT NULL,
    waiting         bool   NOT NULL,
    excluded        text[] COLLATE "C", -- NULL: nobody
    key             text   COLLATE "C", -- NULL: none
    key_sum         bytea,
    geocode_at      bigint,
    link_generation bigint NOT NULL,
    link_hash       bytea,
    link_made_at    bigint,
    created_at      bigint NOT NULL,
    updated_at      bigint,
    assigned_at     bigint,
    started_at      bigint,
    picked_up_at    bigint,
    completed_at    bigint,
    window_from     bigint,
    window_to       bigint,
    due_at          bigint, -- when something is to be done about it
    more            jsonb,  -- an object of what most tasks do not have; NULL: nothing
    late_from       bigint, -- from when on it is late, as it is; NULL: never
    seeks           bool   NOT NULL DEFAULT false, -- a driver, now or later
    terms           text[] COLLATE "C", -- what it is found by; NULL: nothing
    wait_cell       bigint,             -- of where a driver is looked for, while it waits; see positions.cell
    personal        bool   NOT NULL DEFAULT true, -- whether it says anything of a person
    window_at       bigint GENERATED ALWAYS AS (coalesce(window_from, window_to, 9223372036854775807)) STORED,
    PRIMARY KEY (app, id)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX tasks_by_key               ON tracking.tasks (app, key) WHERE key IS NOT NULL;
CREATE INDEX        tasks_by_link              ON tracking.tasks (link_hash) WHERE link_hash IS NOT NULL;
CREATE INDEX        tasks_by_age               ON tracking.tasks (app, created_at, seq);
CREATE INDEX        tasks_by_status            ON tracking.tasks (app, status, created_at, seq);
CREATE INDEX        tasks_by_driver            ON tracking.tasks (app, driver_id, created_at, seq) WHERE driver_id <> '';
CREATE INDEX        tasks_by_driver_status     ON tracking.tasks (app, driver_id, status, created_at, seq) WHERE driver_id <> '';
CREATE INDEX        tasks_by_order             ON tracking.tasks (app, order_id, created_at, seq) WHERE order_id <> '';
CREATE INDEX        tasks_by_completion        ON tracking.tasks (app, completed_at) WHERE completed_at IS NOT NULL;
CREATE INDEX        tasks_by_driver_completion ON tracking.tasks (app, driver_id, completed_at)
    WHERE completed_at IS NOT NULL AND driver_id <> '';
CREATE INDEX        tasks_waiting              ON tracking.tasks (app, created_at, seq) WHERE waiting;
CREATE INDEX        tasks_waiting_near         ON tracking.tasks (app, wait_cell, seq) WHERE wait_cell IS NOT NULL;
CREATE INDEX        tasks_owed                 ON tracking.tasks (app, created_at, seq) WHERE late_from IS NOT NULL;
CREATE INDEX        tasks_late                 ON tracking.tasks (app, late_from) WHERE late_from IS NOT NULL;
CREATE INDEX        tasks_seeking              ON tracking.tasks (app, created_at, seq) WHERE seeks;
CREATE INDEX        tasks_by_window            ON tracking.tasks (app, window_at, created_at, seq);
CREATE INDEX        tasks_by_status_window     ON tracking.tasks (app, status, window_at, created_at, seq);
CREATE INDEX        tasks_by_terms             ON tracking.tasks USING gin (terms);
CREATE INDEX        tasks_to_geocode           ON tracking.tasks (geocode_at) WHERE geocode_at IS NOT NULL;
CREATE INDEX        tasks_due                  ON tracking.tasks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX        tasks_personal             ON tracking.tasks (completed_at) WHERE completed_at IS NOT NULL AND personal;
CREATE INDEX        tasks_ended                ON tracking.tasks (completed_at) WHERE completed_at IS NOT NULL;

CREATE TABLE tracking.trips (
    app             int    NOT NULL,
    id              text   COLLATE "C" NOT NULL,
    seq             bigint GENERATED ALWAYS AS IDENTITY,
    version         bigint NOT NULL,
    tracking_id     text   COLLATE "C" NOT NULL,
    driver_id       text   COLLATE "C" NOT NULL,
    person          text   COLLATE "C" NOT NULL,
    task_id         text   COLLATE "C" NOT NULL,
    status          int    NOT NULL,
    starts_at_lng   float8,
    starts_at_lat   float8,
    ends_at_lng     float8,
    ends_at_lat     float8,
    start_location  text   COLLATE "C" NOT NULL,
    end_location    text   COLLATE "C" NOT NULL,
    dest_lng        float8,
    dest_lat        float8,
    dest_address    text   COLLATE "C", -- NULL: no destination
    dest_name       text   COLLATE "C", -- NULL: no customer
    dest_mobile     text   COLLATE "C",
    started_at      bigint,
    ended_at        bigint,
    covers_until    bigint NOT NULL, -- the end of the window over fixes: ended_at, or the greatest number while active
    ttl             bigint,
    geocode_at      bigint,
    link_generation bigint NOT NULL,
    link_hash       bytea,
    link_made_at    bigint,
    created_at      bigint NOT NULL,
    updated_at      bigint,
    PRIMARY KEY (app, id)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX trips_active        ON tracking.trips (app, tracking_id) WHERE status = 1;
CREATE INDEX        trips_by_link       ON tracking.trips (link_hash) WHERE link_hash IS NOT NULL;
CREATE INDEX        trips_by_age        ON tracking.trips (app, created_at, seq);
CREATE INDEX        trips_by_status     ON tracking.trips (app, status, created_at, seq);
CREATE INDEX        trips_by_driver     ON tracking.trips (app, driver_id, created_at, seq);
CREATE INDEX        trips_by_tracking   ON tracking.trips (app, tracking_id, created_at, seq);
CREATE INDEX        trips_by_window     ON tracking.trips (app, driver_id, covers_until);
CREATE INDEX        trips_due           ON tracking.trips (ttl) WHERE status = 1;
CREATE INDEX        trips_due_by_driver ON tracking.trips (app, driver_id, ttl) WHERE status = 1;
CREATE INDEX        trips_to_geocode    ON tracking.trips (geocode_at) WHERE geocode_at IS NOT NULL;

CREATE TABLE tracking.drivers (
    app              int    NOT NULL,
    id               text   COLLATE "C" NOT NULL,
    n                bigint GENERATED BY DEFAULT AS IDENTITY, -- the order of insertion, too
    person           text   COLLATE "C" NOT NULL,
    version          bigint NOT NULL,
    name             text   COLLATE "C" NOT NULL,
    mobile           text   COLLATE "C" NOT NULL,
    email            text   COLLATE "C" NOT NULL,
    available        bool   NOT NULL,
    properties       jsonb, -- an object; NULL: none
    push             jsonb, -- an array; NULL: none
    route            jsonb, -- an array of stops, in order; NULL: nothing to do
    leg_at           bigint,
    max_open_tasks   bigint, -- NULL: as the options say
    silent           bool   NOT NULL,
    duty_at          bigint,
    off_duty_at      bigint,
    token_generation bigint NOT NULL,
    app_token        bytea,
    ingest_token     bytea,
    created_at       bigint NOT NULL,
    updated_at       bigint,
    PRIMARY KEY (app, id)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX drivers_by_number       ON tracking.drivers (app, n);
CREATE INDEX        drivers_by_app_token    ON tracking.drivers (app_token) WHERE app_token IS NOT NULL;
CREATE INDEX        drivers_by_ingest_token ON tracking.drivers (ingest_token) WHERE ingest_token IS NOT NULL;
CREATE INDEX        drivers_by_age          ON tracking.drivers (app, created_at, n);
CREATE INDEX        drivers_by_availability ON tracking.drivers (app, available, created_at, n);
CREATE INDEX        drivers_by_property     ON tracking.drivers USING gin (properties jsonb_path_ops) WHERE properties IS NOT NULL;

-- Where a driver is, a row for each, made and deleted with him. It is his lock: whoever changes the driver's row, or what
-- belongs to him (position, fixes, notices, requests, invite), locks this row first, and of several in order of driver.
-- No index holds what changes with each fix, so that most updates are HOT; that is what the fillfactor is for, too.
CREATE TABLE tracking.positions (
    app           int      NOT NULL,
    driver        bigint   NOT NULL,
    id            text     COLLATE "C" NOT NULL, -- the driver's, for ties
    class         smallint NOT NULL, -- 0 off duty, 1 silent; on offer without a limit of his own: 2 and the number of open
                                     -- tasks, 10 at most; with one: 11, and 12 when it is reached
    open_tasks    int      NOT NULL,
    cell          bigint,            -- Morton code of the place; NULL: no position
    heard         bigint   NOT NULL, -- the later of seen_at and duty_at >> 18, so that it changes every 4.4 minutes at most
    seen_at       bigint,
    oldest_at     bigint,            -- of the fixes that are not purged; NULL: there are none
    skew_least    float8,            -- NULL: not known
    skew_recent   float8,
    skew_arrivals bigint   NOT NULL DEFAULT 0,
    unread        bigint   NOT NULL DEFAULT 0,
    rewrites      bigint   NOT NULL DEFAULT 0,
    tail          text     COLLATE "C", -- NULL: nothing; '?': to be made anew from the fixes
    fix_time      bigint,            -- NULL: no position
    fix_lng       float8,
    fix_lat       float8,
    fix_event_id  text     COLLATE "C",
    fix_accuracy  float8,
    fix_speed     float8,
    fix_bearing   float8,
    fix_battery   float8,
    fix_trusted   bool,
    last_notice   bigint   NOT NULL, -- the greatest id given in the driver's feed
    purged_notice bigint   NOT NULL DEFAULT 0, -- the greatest id purged from it
    stamp         bigint   NOT NULL DEFAULT 0, -- another one whenever this row, but for notices, or the driver's is written
    PRIMARY KEY (app, driver)
) WITH (fillfactor = 50);

CREATE INDEX positions_near   ON tracking.positions (app, class, cell) WHERE cell IS NOT NULL;
CREATE INDEX positions_heard  ON tracking.positions (heard) WHERE class >= 2;
CREATE INDEX positions_oldest ON tracking.positions (oldest_at) WHERE oldest_at IS NOT NULL;

-- A negative mark: purged, but the fixes after it are still judged by it.
CREATE TABLE tracking.fixes (
    app      int      NOT NULL,
    driver   bigint   NOT NULL,
    time     bigint   NOT NULL,
    mark     smallint NOT NULL,
    trusted  bool     NOT NULL,
    lng      float8   NOT NULL,
    lat      float8   NOT NULL,
    event_id text     COLLATE "C", -- NULL: none
    accuracy float8,
    speed    float8,
    bearing  float8,
    battery  float8,
    PRIMARY KEY (app, driver, time)
);

-- Drivers who are deleted, while there are fixes and notices of theirs.
CREATE TABLE tracking.erased (
    app    int    NOT NULL,
    driver bigint NOT NULL,
    PRIMARY KEY (app, driver)
);

CREATE TABLE tracking.requests (
    app          int    NOT NULL,
    driver       bigint NOT NULL,
    tracking_id  text   COLLATE "C" NOT NULL,
    message      text   COLLATE "C" NOT NULL,
    dest_lng     float8,
    dest_lat     float8,
    dest_address text   COLLATE "C", -- NULL: no destination
    dest_name    text   COLLATE "C", -- NULL: no customer
    dest_mobile  text   COLLATE "C",
    description  text   COLLATE "C" NOT NULL,
    created_at   bigint NOT NULL,
    PRIMARY KEY (app, driver, tracking_id)
);

CREATE INDEX requests_by_age ON tracking.requests (created_at);

CREATE TABLE tracking.invites (
    app             int    NOT NULL,
    driver          bigint NOT NULL,
    version         bigint NOT NULL,
    link_hash       bytea,
    code_hash       bytea,
    created_at      bigint NOT NULL,
    link_expires_at bigint,
    code_expires_at bigint,
    joined_at       bigint,
    nonce_hash      bytea,
    generation      bigint NOT NULL,
    past_codes      bytea[], -- NULL: none
    over_at         bigint NOT NULL, -- the latest of the expiries and joined_at
    PRIMARY KEY (app, driver)
);

CREATE INDEX invites_by_link      ON tracking.invites (link_hash) WHERE link_hash IS NOT NULL;
CREATE INDEX invites_by_code      ON tracking.invites (code_hash, code_expires_at) WHERE code_hash IS NOT NULL;
CREATE INDEX invites_by_past_code ON tracking.invites USING gin (past_codes) WHERE past_codes IS NOT NULL;
CREATE INDEX invites_over         ON tracking.invites (over_at);

-- Whose a code is, in the whole store, until it expires.
CREATE TABLE tracking.codes (
    code_hash  bytea  PRIMARY KEY,
    app        int    NOT NULL,
    driver     bigint NOT NULL,
    expires_at bigint NOT NULL
);

CREATE TABLE tracking.keys (
    app        int    NOT NULL,
    id         text   COLLATE "C" NOT NULL,
    version    bigint NOT NULL,
    name       text   COLLATE "C" NOT NULL,
    hash       bytea,
    created_at bigint NOT NULL,
    revoked_at bigint,
    PRIMARY KEY (app, id)
);

CREATE UNIQUE INDEX keys_by_hash ON tracking.keys (hash) WHERE hash IS NOT NULL;

-- One row for each thing that events are about: its counter, and the lock of its queues.
CREATE TABLE tracking.subjects (
    app      int    NOT NULL,
    kind     text   COLLATE "C" NOT NULL,
    id       text   COLLATE "C" NOT NULL,
    n        bigint GENERATED ALWAYS AS IDENTITY,
    last_seq bigint NOT NULL,
    PRIMARY KEY (app, kind, id)
) WITH (fillfactor = 80);

CREATE UNIQUE INDEX subjects_by_number ON tracking.subjects (app, n);

-- n grows for each subject, whose row is locked from before it is drawn to the end of the commit, but not for all of them.
-- The place is in one order: it is given after the commit, and nothing that comes later is given a lesser one.
CREATE TABLE tracking.events (
    app         int    NOT NULL,
    n           bigint GENERATED ALWAYS AS IDENTITY,
    id          text   COLLATE "C" NOT NULL,
    type        text   COLLATE "C" NOT NULL,
    time        bigint,
    recorded_at bigint NOT NULL,
    actor       text   COLLATE "C" NOT NULL,
    subject     bigint NOT NULL,
    kind        text   COLLATE "C" NOT NULL, -- the subject's
    subject_id  text   COLLATE "C" NOT NULL,
    person      text   COLLATE "C" NOT NULL,
    seq         bigint NOT NULL,
    place       bigint, -- NULL: none was given yet
    data        jsonb,  -- an object; NULL: empty
    notices     jsonb,  -- an array; NULL: empty
    PRIMARY KEY (app, n)
);

CREATE UNIQUE INDEX events_by_id      ON tracking.events (app, id);
CREATE UNIQUE INDEX events_by_place   ON tracking.events (app, place) WHERE place IS NOT NULL;
CREATE INDEX        events_by_subject ON tracking.events (app, subject, place) WHERE place IS NOT NULL;
CREATE INDEX        events_unplaced   ON tracking.events (app, n) WHERE place IS NULL;
CREATE INDEX        events_by_age     ON tracking.events (recorded_at, n);

-- The last place that was given, and the lock of who gives more.
CREATE TABLE tracking.places (
    app  int    PRIMARY KEY,
    last bigint NOT NULL
);

-- What an outbox has to deliver of a subject. A row is there while there is something, or a lease.
CREATE TABLE tracking.queues (
    app          int    NOT NULL,
    subject      bigint NOT NULL,
    outbox       text   COLLATE "C" NOT NULL, -- its name
    head         bigint, -- the first undelivered event; NULL: none
    ready_at     bigint, -- it is not handed out before: the later of the head's retry_at and leased_until; NULL: at once
    owner        text   COLLATE "C", -- of the lease; NULL: none, or it was ended
    leased_until bigint,
    PRIMARY KEY (app, subject, outbox)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX queues_ready  ON tracking.queues (outbox, app, head) WHERE head IS NOT NULL AND ready_at IS NULL;
CREATE INDEX queues_later  ON tracking.queues (outbox, ready_at) WHERE head IS NOT NULL AND ready_at IS NOT NULL;
CREATE INDEX queues_leased ON tracking.queues (outbox, leased_until) WHERE leased_until IS NOT NULL;

-- What is not delivered, a row for each event and outbox.
CREATE TABLE tracking.deliveries (
    app      int      NOT NULL,
    subject  bigint   NOT NULL,
    outbox   text     COLLATE "C" NOT NULL,
    event    bigint   NOT NULL, -- its n
    state    smallint NOT NULL, -- 1 in the queue, 2 dead
    attempts int      NOT NULL,
    retry_at bigint,
    PRIMARY KEY (app, subject, outbox, event)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX deliveries_dead     ON tracking.deliveries (app, outbox, event) WHERE state = 2;
CREATE INDEX deliveries_by_event ON tracking.deliveries (app, event);

CREATE TABLE tracking.notices (
    app         int    NOT NULL,
    driver      bigint NOT NULL,
    id          bigint NOT NULL,
    kind        text   COLLATE "C" NOT NULL,
    event_id    text   COLLATE "C" NOT NULL,
    task_id     text   COLLATE "C" NOT NULL,
    tracking_id text   COLLATE "C" NOT NULL,
    time        bigint NOT NULL,
    PRIMARY KEY (app, driver, id)
);

CREATE INDEX notices_by_time ON tracking.notices (time);

-- What sweeps have handed out, for a while. It spares work and guards nothing, so it need not outlive a crash.
CREATE UNLOGGED TABLE tracking.claims (
    app   int    NOT NULL,
    sweep int    NOT NULL, -- a tracking.DueKind; 0: Matches
    kind  text   COLLATE "C" NOT NULL, -- the subject's
    id    text   COLLATE "C" NOT NULL,
    owner text   COLLATE "C" NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (app, sweep, kind, id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- What there may be only so much of, counted for all processes. After a crash it begins anew.
CREATE UNLOGGED TABLE tracking.limits (
    name  text   COLLATE "C" PRIMARY KEY,
    value bytea  NOT NULL,
    until bigint NOT NULL -- it is forgotten then
) WITH (fillfactor = 50);

-- The bytes that drivers give as proof.
CREATE TABLE tracking.files (
    app    int    NOT NULL,
    id     text   COLLATE "C" NOT NULL,
    task   text   COLLATE "C" NOT NULL,
    type   text   COLLATE "C" NOT NULL,
    put_at bigint NOT NULL,
    loose  bool   NOT NULL, -- until a purge has found that the task names it
    data   bytea  NOT NULL,
    PRIMARY KEY (app, id)
);

CREATE INDEX files_loose ON tracking.files (put_at) WHERE loose;
