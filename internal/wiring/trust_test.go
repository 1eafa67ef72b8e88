package wiring

import (
	"slices"
	"testing"
)

// The hashes that Codex 0.169.0 wrote for this file.
const (
	trustedHooks = `{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"/opt/cairn/bin/cairn record --from codex","timeout":10}]}],
"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"lint --all"},{"type":"command","command":"/opt/cairn/bin/cairn record --from codex --assist","timeout":10,"statusMessage":"asking"}]},{"matcher":"*","hooks":[{"type":"command","command":"/opt/cairn/bin/cairn record --from codex --assist","timeout":10}]}],
"Stop":[{"hooks":[{"type":"command","command":"\"/opt/my cairn/cairn\" record --from codex","timeout":7}]}],
"SubagentStop":[{"hooks":[{"type":"command","command":"/opt/cairn/bin/cairn record --from codex"}]}]}}`

	trustState = `[hooks.state."/home/jo/.codex/hooks.json:pre_tool_use:0:1"]
trusted_hash = "sha256:c34e67a4812eba9d4fc9f0db48df82989017627463104c499100e3d27465cd30"
[hooks.state."/home/jo/.codex/hooks.json:pre_tool_use:1:0"]
trusted_hash = "sha256:c12bb90e740f3b90041115e7087c37e631b3c7506ee4c2399fcaffa9d823d6f7"
[hooks.state."/home/jo/.codex/hooks.json:session_start:0:0"]
trusted_hash = "sha256:a1669ed983aa054d8161f2d397bbf8c4a9a263ee4b6cb81a3183d2cbd9f9b18d"
[hooks.state."/home/jo/.codex/hooks.json:subagent_stop:0:0"]
trusted_hash = "sha256:97ad6a52751c97ae122190e8c8ce74452ce20e46d533ad422752b9c484b63942"
[hooks.state."/home/jo/.codex/hooks.json:stop:0:0"]
trusted_hash = "sha256:96ab149648d0eafd46e9b3eb3543d9b620ad9b52cd21ba2ee5e9e5525b90b0d9"
`
)

func TestHooksThatCodexDoesNotTrustAreTold(t *testing.T) {
	t.Parallel()
	all := []string{"SessionStart", "PreToolUse", "PreToolUse", "Stop", "SubagentStop"}
	for name, c := range map[string]struct {
		state string
		want  []string
	}{
		"never asked":       {"", all},
		"all trusted":       {trustState, nil},
		"one has changed":   {trustState + "[hooks.state.\"/home/jo/.codex/hooks.json:stop:0:1\"]\ntrusted_hash = \"sha256:00\"\n", nil},
		"turned off again":  {trustState + "enabled = false\n", []string{"Stop"}},
		"not what it seems": {"hooks = 3\n", all},
	} {
		d := newDesk(t)
		d.write(".codex/hooks.json", trustedHooks)
		d.write(".codex/config.toml", c.state)
		for _, r := range Inspect(d.Paths) {
			if want := c.want; r.Harness == Codex && !slices.Equal(r.Untrusted, want) || r.Harness != Codex && r.Untrusted != nil {
				t.Errorf("%s: %s: %v", name, r.Harness, r.Untrusted)
			}
		}
	}
	d := newDesk(t)
	changed := `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"\"/opt/my cairn/cairn\" record --from codex","timeout":8}]}]}}`
	d.write(".codex/hooks.json", changed)
	d.write(".codex/config.toml", trustState)
	for _, r := range Inspect(d.Paths) {
		if r.Harness == Codex && !slices.Equal(r.Untrusted, []string{"Stop"}) {
			t.Errorf("a hook that has changed: %v", r.Untrusted)
		}
	}
}
