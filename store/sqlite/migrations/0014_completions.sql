-- How many tasks were completed in each 2^19 milliseconds, some nine minutes, so that to count those of a day reads a few hundred
-- rows, and of tasks themselves only those of the nine minutes that the day begins in. The table of tasks keeps it by itself.
CREATE TABLE completions (
	app     INTEGER NOT NULL,
	span    INTEGER NOT NULL, -- completed_at >> 19
	outcome TEXT    NOT NULL,
	n       INTEGER NOT NULL,
	PRIMARY KEY (app, span, outcome)
) STRICT, WITHOUT ROWID;

INSERT INTO completions SELECT app, completed_at >> 19, outcome, count(*)
	FROM tasks WHERE completed_at IS NOT NULL AND status = 'completed' GROUP BY 1, 2, 3;

CREATE TRIGGER completions_added AFTER INSERT ON tasks
WHEN NEW.completed_at IS NOT NULL AND NEW.status = 'completed'
BEGIN
	INSERT INTO completions VALUES (NEW.app, NEW.completed_at >> 19, NEW.outcome, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER completions_changed AFTER UPDATE OF status, outcome, completed_at ON tasks
WHEN (OLD.completed_at IS NOT NULL AND OLD.status = 'completed' OR NEW.completed_at IS NOT NULL AND NEW.status = 'completed')
	AND (OLD.status, OLD.outcome, OLD.completed_at) IS NOT (NEW.status, NEW.outcome, NEW.completed_at)
BEGIN
	UPDATE completions SET n = n - 1 WHERE OLD.completed_at IS NOT NULL AND OLD.status = 'completed'
		AND app = OLD.app AND span = OLD.completed_at >> 19 AND outcome = OLD.outcome;
	DELETE FROM completions WHERE app = OLD.app AND span = OLD.completed_at >> 19 AND outcome = OLD.outcome AND n = 0;
	INSERT INTO completions SELECT NEW.app, NEW.completed_at >> 19, NEW.outcome, 1
		WHERE NEW.completed_at IS NOT NULL AND NEW.status = 'completed' ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER completions_removed AFTER DELETE ON tasks
WHEN OLD.completed_at IS NOT NULL AND OLD.status = 'completed'
BEGIN
	UPDATE completions SET n = n - 1 WHERE app = OLD.app AND span = OLD.completed_at >> 19 AND outcome = OLD.outcome;
	DELETE FROM completions WHERE app = OLD.app AND span = OLD.completed_at >> 19 AND outcome = OLD.outcome AND n = 0;
END;
