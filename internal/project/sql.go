package project

// projectColumns are the columns of row r that scanProject reads.
const projectColumns = `r.key, r.id, r.name, ifnull(r.uid, ''), ifnull(r.identity, ''), ifnull(r.root, ''), ifnull(r.origin_url, '')`

// leadsTo joins a row p with the row r that it was merged into, or with itself.
const leadsTo = ` FROM projects p
LEFT JOIN project_aliases a ON a.alias = p.id
JOIN projects r ON r.id = ifnull(a.project_id, p.id) `

// Statements about projects. An alias wins over an id: a merged project keeps its row and
// has an alias of the same name.
const (
	selectByName = `SELECT ` + projectColumns + ` FROM projects r
WHERE r.id = ifnull((SELECT project_id FROM project_aliases WHERE alias = ?1), ?1)`

	selectByRoot = `SELECT ` + projectColumns + `, m.root, m.identity FROM (
SELECT r.key, p.root, ifnull(p.identity, '') AS identity` + leadsTo + `WHERE p.root IN (SELECT value FROM json_each(?1))
UNION ALL SELECT c.project_key, c.root, c.identity FROM project_checkouts c WHERE c.root IN (SELECT value FROM json_each(?1))) m
JOIN projects r ON r.key = m.key ORDER BY length(m.root) DESC, r.key DESC`

	selectOwnRow = `SELECT ` + projectColumns + `, r.created_at, ifnull(r.created_ns, 0), ifnull(r.description, ''),
ifnull((SELECT project_id FROM project_aliases WHERE alias = r.id), '') FROM projects r WHERE r.key = ?`

	selectProject   = `SELECT ` + projectColumns + ` FROM projects r WHERE r.key = ?`
	selectFormerIDs = `SELECT a.alias FROM project_aliases a JOIN projects p ON p.id = a.alias WHERE a.project_id = ? AND p.root = ? ORDER BY a.alias`

	insertProject = `INSERT INTO projects (id, name, identity, root, origin_url, created_at, created_ns) VALUES (?, ?, ?, ?, ?, ?, ?)`
	insertCreated = `INSERT INTO projects (id, name, description, created_at, created_ns) VALUES (?, ?, ?, ?, ?)`
	clearIdentity = `UPDATE projects SET identity = NULL WHERE identity = ?`
	updatePlace   = `UPDATE projects SET name = ?, identity = ?, root = ?, origin_url = ? WHERE key = ?`
	updateOrigin  = `UPDATE projects SET origin_url = ? WHERE key = ?`

	selectAliases   = `SELECT alias FROM project_aliases WHERE project_id = ? ORDER BY alias`
	insertAlias     = `INSERT INTO project_aliases (alias, project_id) VALUES (?, ?)`
	updateAlias     = `UPDATE project_aliases SET project_id = ? WHERE alias = ?`
	redirectAliases = `UPDATE project_aliases SET project_id = ? WHERE project_id = ?`
	selectIsProject = `SELECT EXISTS (SELECT 1 FROM projects WHERE id = ?)`

	selectProjects = `SELECT ` + projectColumns + `, r.created_at,
(SELECT count(*) FROM sessions s WHERE s.project_id = r.id),
ifnull((SELECT max(last_seen) FROM sessions s WHERE s.project_id = r.id), 0) AS seen
FROM projects r WHERE NOT EXISTS (SELECT 1 FROM project_aliases a WHERE a.alias = r.id)
ORDER BY seen DESC, r.created_at DESC, r.id`

	selectNewest = `SELECT r.id FROM projects r WHERE NOT EXISTS (SELECT 1 FROM project_aliases a WHERE a.alias = r.id)
ORDER BY (SELECT max(last_seen) FROM sessions s WHERE s.project_id = r.id) DESC, r.created_at DESC, r.id LIMIT +?`

	selectAllKeys    = `SELECT k.text, r.id FROM project_keys k JOIN projects r ON r.key = k.project_key ORDER BY k.added_at, k.text`
	selectAllAliases = `SELECT alias, project_id FROM project_aliases ORDER BY alias`
)

// sessionColumns are the columns of session s and its project r that scanSession reads.
const sessionColumns = `s.key, s.id, r.id, r.key, ifnull(s.harness, ''), ifnull(s.model, ''), s.started_at,
ifnull(s.ended_at, 0), s.last_seen, ifnull(s.harness_pid, 0), ifnull(s.harness_pid_start, 0),
ifnull(s.checkout, ''), ifnull(s.closed_at, 0), ` + projectColumns

// Statements about sessions.
const (
	selectSession = `SELECT ` + sessionColumns + `, ifnull(s.summary, '') FROM sessions s
JOIN projects r ON r.id = s.project_id WHERE s.id = ?`

	// The nearest ancestor wins: a harness may run inside another one's tool call.
	selectByProcess = `SELECT ` + sessionColumns + `, '', p.key FROM json_each(?) p
JOIN sessions s ON s.harness_pid = p.value ->> 0 AND s.harness_pid_start = p.value ->> 1
JOIN projects r ON r.id = s.project_id
ORDER BY p.key, s.closed_at IS NOT NULL OR s.checkout IS NULL, s.last_seen DESC, s.ended_at IS NOT NULL, s.key DESC LIMIT 100`

	insertSession = `INSERT INTO sessions
(id, project_id, harness, model, started_at, ended_at, last_seen, harness_pid, harness_pid_start, checkout, closed_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	updateSession = `UPDATE sessions SET project_id = ?, harness = ?, model = ?, started_at = ?, ended_at = ?,
last_seen = ?, harness_pid = ?, harness_pid_start = ?, checkout = ?, closed_at = ? WHERE key = ?`

	updateLastSeen = `UPDATE sessions SET last_seen = ? WHERE key = ?`
	updateSummary  = `UPDATE sessions SET summary = ? WHERE key = ?`
	deleteSession  = `DELETE FROM sessions WHERE key = ?`
	moveSessions   = `UPDATE sessions SET project_id = ? WHERE project_id = ?`
)
