package windsurf_test

import (
	"testing"

	"cairn/internal/harness/readtest"
)

func FuzzWindsurfHook(f *testing.F) {
	for _, s := range []string{
		`"pre_user_prompt","tool_info":{"user_prompt":["x"]}`, `"post_write_code","tool_info":{"file_path":"` + "\xff" + `","edits":[{"old_string":1,"new_string":"x"}]}`,
		`"post_mcp_tool_use","tool_info":{"mcp_server_name":"cairn","mcp_result":"{\"isError\":true}"}`, `"post_cascade_response","tool_info":[]`,
	} {
		f.Add([]byte(`{"trajectory_id":"t","cwd":"/k","agent_action_name":` + s + `}`))
	}
	f.Fuzz(func(t *testing.T, payload []byte) { readtest.FuzzHook(t, payload, "windsurf") })
}
