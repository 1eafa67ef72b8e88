package replication

// HotStatements must be searched by an index.
var HotStatements = map[string]string{
	"ready streams": selectReady, "failing streams": selectFailing, "next due": selectNextDue, "delayed": selectDelayed, "to be sent": selectToSend,
	"pending": anyUnsettled,
}
