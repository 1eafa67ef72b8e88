package harness

import (
	"iter"
	"path"
	"strings"

	"cairn/internal/harness/lazyjson"
	"cairn/internal/observation"
)

// The maximum number of files of one patch. Finished calls have a lower limit than announced ones,
// because they are stored in one transaction.
const (
	MaxPatchFiles     = 1000
	MaxAnnouncedFiles = 50_000
)

const (
	PatchBegin = "*** Begin Patch"
	PatchEnd   = "*** End Patch"
	PatchTool  = "apply_patch"
)

// PatchCalls returns the calls for a patch in Codex's own format, one per file in the order of the
// patch. A moved file produces two calls, for the old and the new path. Relative paths start at
// dir, "" for the working directory. Text without a file returns no calls.
func PatchCalls(id, tool, patch, dir string) []observation.Call {
	return PatchCallsUpTo(MaxPatchFiles, id, tool, patch, dir)
}

// PatchCallsUpTo is PatchCalls with another limit for the number of files.
func PatchCallsUpTo(limit int, id, tool, patch, dir string) []observation.Call {
	var calls []observation.Call
	add := func(action observation.Action, file string) *observation.Call {
		calls = append(calls, observation.Call{
			ID: id, Part: len(calls), Tool: tool, Action: action, Path: inFolder(dir, file),
		})
		return &calls[len(calls)-1]
	}
	for part := range patchParts(patch) {
		if len(calls) >= limit {
			break
		}
		file := part.file
		switch part.verb {
		case "Add File":
			add(observation.Write, file).Created = true
		case "Update File":
			add(observation.Edit, file)
		case "Delete File":
			add(observation.Edit, file).Deleted = true
		case "Move to":
			if n := len(calls); n > 0 && calls[n-1].Action == observation.Edit && !calls[n-1].Deleted {
				calls[n-1].Deleted = true
				add(observation.Write, file).Created = true
			}
		}
		if n := len(calls); n > 0 && !calls[n-1].Deleted {
			addHunks(&calls[n-1], part.body)
		}
	}
	return calls
}

// addHunks adds the passages of one file of a patch to a call. A new file is a single passage.
func addHunks(c *observation.Call, body string) {
	for i, hunk := range strings.Split("\n"+body, "\n@@") {
		if i == 0 {
			hunk = strings.TrimPrefix(hunk, "\n")
		} else {
			_, hunk, _ = strings.Cut(hunk, "\n") // the rest of the line is a location
		}
		if hunk != "" {
			addPiece(c, diffPiece(strings.Lines(hunk)))
		}
	}
}

// patchPart is a header line of a patch with the lines that follow it.
type patchPart struct {
	verb, file string
	body       string
}

// patchParts yields the parts of a patch. Content lines of a patch begin with a sign, so they
// never look like a header.
func patchParts(patch string) iter.Seq[patchPart] {
	return func(yield func(patchPart) bool) {
		if i := strings.Index(patch, PatchBegin); i >= 0 {
			patch = patch[i+len(PatchBegin):]
		}
		var part patchPart
		from, at := 0, 0
		for line := range strings.Lines(patch) {
			start := at
			at += len(line)
			end := strings.HasPrefix(line, PatchEnd)
			header, ok := strings.CutPrefix(line, "*** ")
			if !ok {
				continue
			}
			verb, file, ok := strings.Cut(header, ":")
			if file = strings.TrimSpace(file); !end && (!ok || file == "") {
				continue
			}
			if part.body = patch[from:start]; part.verb != "" && !yield(part) {
				return
			}
			part, from = patchPart{verb: verb, file: file}, at
			if end {
				return
			}
		}
		if part.body = patch[from:]; part.verb != "" {
			yield(part)
		}
	}
}

// inFolder joins a path of a patch to the directory that a command changed to.
func inFolder(dir, file string) string {
	if dir == "" || path.IsAbs(file) || len(file) > 1 && file[1] == ':' {
		return file
	}
	return path.Join(dir, file)
}

// PatchText returns the patch in the input of the apply_patch tool, "" if there is none. The patch
// is the input itself, or its member command, input or patch. The member may also be an array of
// the program's name and the patch.
func PatchText(input lazyjson.Value) string {
	if input.Kind() == '"' {
		return input.Text()
	}
	for _, value := range input.Pick("command", "input", "patch") {
		if value.Kind() == '"' {
			return value.Text()
		}
		for word := range value.Elements() {
			if w := word.Text(); strings.Contains(w, PatchBegin) {
				return w
			}
		}
	}
	return ""
}
