-- They are in blocks since version 11.
DROP TABLE fixes;
