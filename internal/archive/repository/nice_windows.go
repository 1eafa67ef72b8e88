package repository

// lowerPriority does nothing: git runs with the priority of this process.
func lowerPriority(int) {}
