-- For pictures only: the demo plays its sessions within a second. This spreads them over a day,
-- some minutes from row to row, and gives them the agents that the demo registers.
CREATE TEMP TABLE spread AS
SELECT s.key, unixepoch() - p.before AS begins, p.agent, p.live
FROM (SELECT key, row_number() OVER (ORDER BY key) AS nth FROM sessions WHERE key IN (SELECT session_key FROM observation_rows)) s
JOIN (SELECT 1 AS nth, 72000 AS before, 'GreenCastle' AS agent, 0 AS live UNION ALL
      SELECT 2, 63000, 'RedStone', 0 UNION ALL
      SELECT 3, 20700, 'RedStone', 0 UNION ALL
      SELECT 4, 9900, 'GreenCastle', 0 UNION ALL
      SELECT 5, 240, 'BlueLake', 1) p ON p.nth = s.nth;

CREATE TEMP TABLE moved AS
SELECT o.id, w.begins + 240 * (row_number() OVER (PARTITION BY o.session_key ORDER BY o.id) - 1) + o.id * 37 % 150 AS at
FROM observation_rows o JOIN spread w ON w.key = o.session_key;
CREATE UNIQUE INDEX temp.moved_by_id ON moved (id);

UPDATE observation_rows SET timestamp = (SELECT at FROM moved m WHERE m.id = observation_rows.id) WHERE id IN (SELECT id FROM moved);
UPDATE turns SET at = (SELECT at FROM moved m WHERE m.id = turns.id) WHERE id IN (SELECT id FROM moved);
UPDATE prompt_rows SET timestamp = (SELECT min(timestamp) FROM observation_rows o WHERE o.prompt_id = prompt_rows.id)
WHERE id IN (SELECT prompt_id FROM observation_rows);
UPDATE sessions SET
  started_at = (SELECT min(timestamp) FROM observation_rows o WHERE o.session_key = sessions.key),
  last_seen = (SELECT max(timestamp) FROM observation_rows o WHERE o.session_key = sessions.key),
  ended_at = iif(ended_at IS NULL, NULL, (SELECT max(timestamp) FROM observation_rows o WHERE o.session_key = sessions.key))
WHERE key IN (SELECT key FROM spread);
UPDATE injection_rows SET timestamp = (SELECT started_at FROM sessions s WHERE s.key = session_key) WHERE session_key IN (SELECT key FROM spread);

INSERT OR IGNORE INTO mail_sessions (session_key, agent_id, source, bound_ts, ended_ts)
SELECT w.key, a.id, 'call', s.started_at, iif(w.live, NULL, s.last_seen)
FROM spread w JOIN sessions s ON s.key = w.key JOIN mail_agents a ON a.name = w.agent;
