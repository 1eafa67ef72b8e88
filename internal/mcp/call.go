package mcp

import (
	"cmp"
	"encoding/json"
	"reflect"

	"cairn/internal/mcp/toolargs"
	"cairn/internal/memory"
)

// Call contains what a tool knows about a call in addition to its arguments.
type Call struct {
	// Scope is the default of an omitted project argument. It is the current project; over
	// HTTP it is the URL's ?project=, else all projects (contract observations §8).
	Scope toolargs.Scope

	// Connection is the id of the cairn session of this transport session, used if no
	// other session is known ([cairn.NewSessionID]). It is unique and the same for all
	// calls of the transport session. It is "" if the transport has no sessions (HTTP since
	// revision 2026-07-28, and a plain POST). Over HTTP it survives a restart of the server.
	Connection string

	Remote     bool   // the call came over HTTP, so its client did not start this process
	AgentToken string // the token of an agent in an HTTP header, or "" (mail §4)

	common  any               // a pointer to the common arguments of the tool's part
	bearer  Bearer            // the caller's token
	trace   string            // the header traceparent
	key     string            // the header Idempotency-Key
	ignored []string          // undeclared names in the request, sorted; empty for a strict tool
	receipt *memory.WriteInfo // of a call that wrote memories, in addition to its result
}

// ProjectOf returns the project of a call without a project argument: the project in
// the HTTP URL, else standard.
func (c Call) ProjectOf(standard string) string { return cmp.Or(c.Scope.Name, standard) }

// decode reads the arguments of a call of t into a new value of its struct type, and
// returns a pointer to it. A strict tool rejects unknown arguments; the error names the
// first one. Other tools only note them in the call.
func (t Tool) decode(raw json.RawMessage, scope toolargs.Scope) (c Call, in any, err error) {
	c = Call{Scope: scope, receipt: new(memory.WriteInfo)}
	in, err = c.decode(raw, t.Params, t.in, t.common)
	if !t.strict {
		return c, in, err
	}
	unknown := c.ignoredNames()
	c.ignored = nil
	if err == nil && len(unknown) > 0 {
		err = toolargs.MemoryError(unknown[0], "unknown argument "+unknown[0])
	}
	return c, in, err
}

// decode reads the arguments of a call. It stores the common ones and the names of unknown
// ones in c, and returns a pointer to the others. Its errors are those of decodeArgs.
func (c *Call) decode(raw json.RawMessage, params []toolargs.Param, own, common reflect.Type) (in any, err error) {
	in, c.common, c.ignored, err = toolargs.Decode(raw, params, own, common, c.Scope)
	return in, err
}
