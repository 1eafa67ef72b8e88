package harness

import "os"

// HooksFor returns hook entries that have only an event and a timeout.
func HooksFor(timeout int, events ...string) (hooks []HookEntry) {
	for _, event := range events {
		hooks = append(hooks, HookEntry{Event: event, Timeout: timeout})
	}
	return hooks
}

// IsFile reports whether a path is a regular file.
func IsFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Rules instructs a model to call cairn, for hosts whose hooks cannot provide a context.
const Rules = `<!-- cairn: {{head}} -->
## Memory and coordination (cairn)
- At the start of a session call the MCP tool ` + "`macro_start_session`" + ` of the server cairn; it shows what happened
  before, who else works here, and your mail.
- Before you look for how something was done or decided, call ` + "`recall`" + ` with a short question.
- Before you edit files that others may edit too, reserve them with ` + "`file_reservation_paths`" + `.
<!-- cairn: end -->
`
