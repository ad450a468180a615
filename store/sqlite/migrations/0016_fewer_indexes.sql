-- Most tasks have no time window. Those of a status lie in tasks_by_status_window in the order of creation, and only those with a
-- window need another index for that. A list of all merges the walks of each status: there are four.
DROP INDEX tasks_by_age;
DROP INDEX tasks_by_status;
DROP INDEX tasks_by_window;
CREATE INDEX tasks_windowed ON tasks (app, status, created_at) WHERE window_at < 9223372036854775807;

-- Tasks of any other status, of which there are none as a rule.
CREATE INDEX tasks_other           ON tasks (app, created_at) WHERE status NOT IN ('created', 'assigned', 'in_progress', 'completed');
CREATE INDEX tasks_other_by_window ON tasks (app, window_at, created_at)
	WHERE status NOT IN ('created', 'assigned', 'in_progress', 'completed');

-- A table with a trigger on INSERT has SQLite keep, for each row that is added, what it would need to take it back. Tasks that are
-- completed when they are added, as in an import, are counted by who adds them.
DROP TRIGGER completions_added;
