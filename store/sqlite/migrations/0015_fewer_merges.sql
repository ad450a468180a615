-- Segments of what tasks are found by are merged when there are 16 alike, not 4: each term is written half as often, for a search
-- that looks in some more of them.
INSERT INTO task_terms (task_terms, rank) VALUES ('automerge', 16);
