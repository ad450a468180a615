-- A driver's fixes, packed (fixpack.go): the newest ones beside his position, those before in blocks. A driver who has fixes
-- has one at least beside his position, and none in a block is as new as that.
ALTER TABLE positions ADD COLUMN open BLOB; -- NULL: he has no fixes

CREATE TABLE fix_blocks (
    n      INTEGER PRIMARY KEY,
    driver INTEGER NOT NULL,
    first  INTEGER NOT NULL, -- when its first fix was; it has all from then on that the next one has not
    fixes  BLOB    NOT NULL
) STRICT;
CREATE UNIQUE INDEX fix_blocks_by_time ON fix_blocks (driver, first);
