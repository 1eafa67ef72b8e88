package mail

import "strconv"

// beginning is the number of the message that a thread with a decimal id began
// with, 0 for other ids.
func beginning(thread *string) int64 {
	if thread == nil {
		return 0
	}
	id, err := strconv.ParseInt(*thread, 10, 64)
	if err != nil || id < 1 || decimal(id) != *thread {
		return 0
	}
	return id
}
