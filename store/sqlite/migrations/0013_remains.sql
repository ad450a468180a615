-- Whether something was erased since all pages were last written anew: the one row says so. What older versions have left goes too.
CREATE TABLE remains (n INTEGER PRIMARY KEY) STRICT;
INSERT INTO remains SELECT 1 WHERE EXISTS (SELECT 1 FROM apps);
