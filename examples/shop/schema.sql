CREATE TABLE IF NOT EXISTS orders (
	id      TEXT PRIMARY KEY,
	address TEXT NOT NULL,
	link    TEXT NOT NULL DEFAULT '' -- to follow it on, once there is a task
);

-- Orders that no task is made of yet.
CREATE TABLE IF NOT EXISTS outbox (n INTEGER PRIMARY KEY, order_id TEXT NOT NULL UNIQUE);

-- What was told of an order, each event once.
CREATE TABLE IF NOT EXISTS news (
	n        INTEGER PRIMARY KEY,
	event_id TEXT NOT NULL UNIQUE,
	order_id TEXT NOT NULL,
	state    TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS news_of_order ON news (order_id, n);

CREATE VIEW IF NOT EXISTS order_page AS
SELECT id, address, link,
	coalesce((SELECT state FROM news WHERE order_id = id ORDER BY n DESC LIMIT 1), 'placed') AS state
FROM orders;
