package entries

// ParseCursor is parseCursor.
var ParseCursor = parseCursor

// HotStatements must be searched by an index.
var HotStatements = map[string]string{"inflight": selectInflight, "newest": selectNewest, "oldest": selectOldest}
