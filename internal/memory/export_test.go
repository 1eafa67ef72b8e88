package memory

// HotStatements must be searched by an index.
var HotStatements = map[string]string{"memory": selectMemory, "answer": selectAnswer, "own put": selectOwnPut}
