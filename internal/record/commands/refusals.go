package commands

import (
	"fmt"

	"cairn/internal/fault"
	"cairn/internal/record"
)

func sessionNotFound(id string) error {
	message := "this session has not opened any record of the project"
	if id != "" {
		message = fmt.Sprintf("session %.80q is not open in this project", id)
	}
	return record.Fail(fault.NotFound, record.CodeSessionNotFound, message, "start one: call activate with a record", map[string]any{"session_id": id})
}

func notActivated(id string) error {
	return record.Fail(fault.Conflict, record.CodeNotActivated, id+" is not activated in this session",
		fmt.Sprintf("call activate with id %s first", id), map[string]any{"id": id})
}

func parentNotActivated(id string) error {
	return record.Fail(fault.Conflict, record.CodeParentNotActivated, "the parent "+id+" is not activated in this session",
		fmt.Sprintf("call activate with id %s first", id), map[string]any{"parent_id": id})
}
