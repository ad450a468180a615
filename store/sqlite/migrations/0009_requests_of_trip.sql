-- When a task is deleted, the requests for its trips go with it, whoever has them.
CREATE INDEX requests_by_trip ON requests (tracking_id);
