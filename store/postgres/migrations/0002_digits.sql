-- Some databases of version 1 have it already.
CREATE INDEX IF NOT EXISTS requests_by_trip ON tracking.requests (app, tracking_id);
