-- Who the driver is that an event names, '-' for somebody who is gone; and in notices that are yet
-- to be pushed, "person": who is told.
ALTER TABLE events ADD COLUMN person TEXT NOT NULL DEFAULT '';
UPDATE events SET person = coalesce((
    SELECT d.person FROM subjects s JOIN drivers d
        ON d.app = events.app AND d.id = CASE s.kind WHEN 'driver' THEN s.id ELSE json_extract(events.data, '$.driver_id') END
    WHERE s.n = events.subject AND d.created_at <= events.recorded_at), '-')
WHERE (SELECT kind FROM subjects s WHERE s.n = events.subject) = 'driver' OR json_extract(data, '$.driver_id') IS NOT NULL;
UPDATE events SET notices = (
    SELECT json_group_array(json_set(j.value, '$.person', coalesce((
        SELECT d.person FROM drivers d JOIN notices o ON o.driver = d.seq
        WHERE d.app = events.app AND d.id = json_extract(j.value, '$.driver') AND o.id = json_extract(j.value, '$.id')), '-')))
    FROM json_each(events.notices) j)
WHERE notices IS NOT NULL AND (undelivered > 0 OR n IN (SELECT event FROM deliveries WHERE state = 2));
