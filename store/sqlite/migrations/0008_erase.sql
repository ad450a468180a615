-- Whether a task says anything of a person. Of those that were there before it is looked at when their time has come.
ALTER TABLE tasks ADD COLUMN personal INTEGER NOT NULL DEFAULT 1;
CREATE INDEX tasks_personal ON tasks (completed_at) WHERE completed_at IS NOT NULL AND personal = 1;
CREATE INDEX tasks_ended    ON tasks (completed_at) WHERE completed_at IS NOT NULL;
