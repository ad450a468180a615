-- What fixes change beside drivers' rows is written here first, of many drivers one behind another: see journal.go. A row of positions says
-- up to which place it has that.
CREATE TABLE recorded (
    n      INTEGER PRIMARY KEY,
    packed BLOB NOT NULL
) STRICT;

ALTER TABLE positions ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
