-- What a driver has to do, in order: a JSON array of stops; NULL: nothing. It stands for the number of open tasks.
ALTER TABLE drivers ADD COLUMN route TEXT;
ALTER TABLE drivers ADD COLUMN leg_at INTEGER;
ALTER TABLE drivers ADD COLUMN max_open_tasks INTEGER; -- NULL: as the options say
UPDATE drivers SET route = (
    SELECT json_group_array(json_object('TaskID', id, 'Leg', leg) ORDER BY assigned_at, seq, leg = 'drop') FROM (
        SELECT t.id, t.assigned_at, t.seq, legs.value AS leg
        FROM tasks t INDEXED BY tasks_by_driver_status, json_each(iif(t.type = 1, '["pickup"]', iif(t.type = 3 AND t.picked_up_at IS NULL, '["pickup","drop"]', '["drop"]'))) legs
        WHERE t.app = drivers.app AND t.driver_id = drivers.id AND t.driver_id <> '' AND t.status IN ('assigned', 'in_progress')
    )
) WHERE open_tasks > 0;
UPDATE drivers SET route = NULL WHERE route = '[]';
ALTER TABLE drivers DROP COLUMN open_tasks;

ALTER TABLE tasks ADD COLUMN window_from INTEGER;
ALTER TABLE tasks ADD COLUMN window_to INTEGER;
ALTER TABLE tasks ADD COLUMN due_at INTEGER; -- when something is to be done about it
ALTER TABLE tasks ADD COLUMN more TEXT; -- a JSON object of what most tasks do not have; NULL: nothing
CREATE INDEX tasks_due ON tasks (due_at) WHERE due_at IS NOT NULL;

-- The bytes that drivers give as proof. 
CREATE TABLE files (
    n      INTEGER PRIMARY KEY,
    app    INTEGER NOT NULL REFERENCES apps,
    id     TEXT    NOT NULL,
    task   TEXT    NOT NULL,
    type   TEXT    NOT NULL,
    put_at INTEGER NOT NULL,
    loose  INTEGER NOT NULL, -- 1 until a purge has found that the task names it
    data   BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX files_by_id ON files (app, id);
CREATE INDEX files_loose ON files (put_at) WHERE loose = 1;
