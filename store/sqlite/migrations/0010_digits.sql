-- The digits of any script are found as 0 to 9. What a task is found by is told anew.
INSERT INTO task_terms (task_terms) VALUES ('delete-all');
