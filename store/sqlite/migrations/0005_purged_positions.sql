-- The last position goes with the fixes. Where those had gone without it, a purge comes by once more.
UPDATE positions SET oldest_at = coalesce(fix_time, (SELECT max(time) FROM fixes f WHERE f.driver = positions.driver)) WHERE oldest_at IS NULL;
