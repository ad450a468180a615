-- How often something before the newest good fix has changed: a path that was read holds while it stays.
ALTER TABLE positions ADD COLUMN rewrites INTEGER NOT NULL DEFAULT 0;
