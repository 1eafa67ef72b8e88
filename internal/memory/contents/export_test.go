package contents

// HotStatements must be searched by an index.
var HotStatements = map[string]string{"by key": selectByHub, "by id": selectByID, "by row": selectByRow, "context": selectNewestContext}
