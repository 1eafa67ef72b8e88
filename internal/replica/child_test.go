package replica_test

// childMain runs what a child process of a test is to do; false if this is none.
func childMain() bool { return false }
