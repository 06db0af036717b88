-- What `redial verify` finds, as plain SQL for the sqlite3 shell: the yardstick of benches/verify.sh.
SELECT status, count(*) FROM requests GROUP BY status;
SELECT count(*) FROM requests r LEFT JOIN tickets t ON t.request_id = r.request_id
  WHERE r.status = 'done' AND t.request_id IS NULL;
SELECT count(*) FROM tickets t LEFT JOIN requests r ON r.request_id = t.request_id WHERE r.request_id IS NULL;
SELECT count(*) FROM (SELECT args_hash FROM requests GROUP BY args_hash HAVING count(*) > 1);
SELECT count(*) FROM (SELECT title FROM tickets GROUP BY title HAVING count(DISTINCT request_id) > 1);
