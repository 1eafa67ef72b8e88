package transfer

import (
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"

	"cairn/internal/observation"
	"cairn/internal/project"
)

// Limits of the values in an export. Ids above maxExportedID could exhaust the ids of a store.
const (
	maxExportedID   = 1 << 40
	maxExportedText = 64 << 10 // bytes of one text
)

// Check returns a human-readable error if a row from an export is invalid, else nil.
func (e *Exported) Check() error {
	if why := e.checkValues(); why != nil {
		return why
	}
	if why := checkTexts(e.SourceEvent, e.ToolName, e.Content, e.FilePath, e.PathKey, string(e.Metadata),
		e.ToolUseID, e.AgentID, e.HarnessPromptID); why != nil {
		return why
	}
	if e.Prompt == nil {
		return nil
	}
	return e.Prompt.check()
}

// checkValues checks all fields except texts.
func (e *Exported) checkValues() error {
	switch {
	case !isExportedID(e.ID):
		return errors.New("its id is out of range")
	case !observation.IsType(e.ObsType):
		return fmt.Errorf("no rows are of type %.40q", e.ObsType)
	case !project.ValidTime(e.Timestamp):
		return errors.New("its time is out of range")
	case e.Session == "" || e.Project == "":
		return errors.New("it has no session or no project")
	case e.PromptID < 0 || e.Part < 0 || e.Part > maxExportedText:
		return errors.New("one of its numbers is out of range")
	case len(e.Metadata) > 0 && e.Metadata[0] != '{':
		return errors.New("its metadata is not a JSON object")
	}
	return e.checkRole()
}

// checkRole checks that prompts and messages, and no other rows, have a prompt and no call.
func (e *Exported) checkRole() error {
	isPrompt := e.ObsType == observation.TypePrompt || e.ObsType == observation.TypeMessage
	switch {
	case isPrompt != (e.Prompt != nil):
		return errors.New("prompts and answers, and only they, have a prompt")
	case isPrompt && (e.PromptID != 0 || e.ToolUseID != ""):
		return errors.New("it cannot be a prompt and a call")
	}
	return nil
}

func (q *ExportedPrompt) check() error {
	switch {
	case !isExportedID(q.ID) || !project.ValidTime(q.Timestamp):
		return errors.New("its prompt's id or time is out of range")
	case q.Source != "user" && q.Source != "agent":
		return errors.New("its prompt's source is neither user nor agent")
	case len(q.HarnessPromptID)+len(q.AgentID)+len(q.SourceUUID) > maxExportedText:
		return errors.New("one of its prompt's texts is too long")
	}
	return nil
}

func isExportedID(id int64) bool { return 1 <= id && id <= maxExportedID }

func checkTexts(texts ...string) error {
	for _, text := range texts {
		if len(text) > maxExportedText || !utf8.ValidString(text) {
			return errors.New("one of its texts is too long")
		}
	}
	return nil
}

// Check returns a human-readable error if a salt or hash from an export is invalid, else nil.
func (e *ExportedForgotten) Check() error {
	for _, s := range e.Salts {
		if b, err := hex.DecodeString(s); err != nil || len(b) != 32 {
			return errors.New("a salt is not 32 bytes in hex")
		}
	}
	for _, t := range e.Hashes {
		if b, err := hex.DecodeString(t.Hash); err != nil || len(b) != 16 {
			return errors.New("a hash is not 16 bytes in hex")
		}
	}
	return nil
}
