-- Where a task is in the order of creation, over all applications: the milliseconds of created_at, and the
-- lowest 15 bits for those created in the same one. It is the rowid of its terms.
ALTER TABLE tasks ADD COLUMN place INTEGER;
UPDATE tasks SET place = p.place FROM (
    SELECT seq, (created_at << 15) + row_number() OVER (PARTITION BY created_at ORDER BY seq) - 1 AS place FROM tasks
) AS p WHERE tasks.seq = p.seq;
CREATE UNIQUE INDEX tasks_by_place ON tasks (place);

ALTER TABLE tasks ADD COLUMN late_from INTEGER; -- NULL: never, as things are
ALTER TABLE tasks ADD COLUMN seeks INTEGER NOT NULL DEFAULT 0; -- a driver, now or later
ALTER TABLE tasks ADD COLUMN window_at INTEGER
    GENERATED ALWAYS AS (coalesce(window_from, window_to, 9223372036854775807)) VIRTUAL;
CREATE INDEX tasks_owed             ON tasks (app, created_at) WHERE late_from IS NOT NULL;
CREATE INDEX tasks_late             ON tasks (app, late_from) WHERE late_from IS NOT NULL;
CREATE INDEX tasks_seeking          ON tasks (app, created_at) WHERE seeks = 1;
CREATE INDEX tasks_by_window        ON tasks (app, window_at, created_at);
CREATE INDEX tasks_by_status_window ON tasks (app, status, window_at, created_at);

-- What a task is found by, whole terms only, without the texts themselves. What is deleted leaves no trace.
CREATE VIRTUAL TABLE task_terms USING fts5 (terms, content = '', columnsize = 0, detail = none, tokenize = 'ascii');
INSERT INTO task_terms (task_terms, rank) VALUES ('secure-delete', 1);
