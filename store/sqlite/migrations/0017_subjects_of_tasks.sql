-- A task says which subject its events are about, so that this needs no index by the task's id: tasks have one. So it is with tasks
-- that are made with an event. Of all others the subject is found by its name.
ALTER TABLE tasks ADD COLUMN subject INTEGER; -- NULL: it is found by its name, if there is one
ALTER TABLE subjects ADD COLUMN named INTEGER NOT NULL DEFAULT 1; -- 0: a task says which it is
DROP INDEX subjects_by_id;
CREATE UNIQUE INDEX subjects_by_name ON subjects (app, kind, id) WHERE named = 1;
