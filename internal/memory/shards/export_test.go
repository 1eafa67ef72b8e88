package shards

// Of is shardOf.
var Of = shardOf
