package wiring

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/tailscale/hujson"
)

// Codex runs a hook only if its user has trusted the hook's current form. config.toml stores the
// trusted form in [hooks.state."FILE:EVENT:GROUP:INDEX"], as a hash of the hook.

// codexTimeout is the timeout, in seconds, that Codex uses for a hook without a timeout.
const codexTimeout = 600

// stateFile is the end of the file name in a key of the state.
const stateFile = "hooks.json:"

// untrusted returns the events of cairn's hooks in Codex's hooks.json that config.toml does not
// list as trusted, in the order of the file. It returns nil for an unreadable file.
func untrusted(hooks, config contents) []string {
	var out []string
	if hooks.err != nil || hooks.doc == nil || config.err != nil {
		return nil
	}
	trusted := trustedHashes(config.config)
	events := hooks.doc.items("hooks")
	if events == nil || events.object == nil {
		return nil
	}
	for i := range events.object.Members {
		m := &events.object.Members[i]
		event := text(m.Name)
		groups, ok := itemsOf(&m.Value)
		if !ok {
			continue
		}
		for _, e := range hooks.hooks.entriesOf(groups, "") {
			key := fmt.Sprintf("%s:%d:%d", snakeCase(event), e.group, e.index)
			if trusted[key] != trustHash(event, groups.value(e.group), e.entry) {
				out = append(out, event)
			}
		}
	}
	return out
}

// trustedHashes returns the hashes of the trusted hooks by EVENT:GROUP:INDEX of hooks.json.
func trustedHashes(config map[string]any) map[string]string {
	hashes := map[string]string{}
	table, _ := config["hooks"].(map[string]any)
	state, _ := table["state"].(map[string]any)
	for key, v := range state {
		entry, _ := v.(map[string]any)
		at := strings.LastIndex(key, stateFile)
		if hash, _ := entry["trusted_hash"].(string); at >= 0 && entry["enabled"] != false {
			hashes[key[at+len(stateFile):]] = hash
		}
	}
	return hashes
}

// trustHash returns Codex's hash of a hook. It covers the event, the group's matcher and the
// hook itself, as JSON with sorted names.
func trustHash(event string, group *hujson.Value, entry *hujson.Object) string {
	hook := map[string]any{"type": "command", "command": "", "timeout": codexTimeout, "async": false}
	for _, name := range []string{"command", "timeout", "async", "statusMessage"} {
		if v := member(entry, name); v != nil {
			hook[name] = json.RawMessage(v.Pack())
		}
	}
	identity := map[string]any{"event_name": snakeCase(event), "hooks": []any{hook}}
	if o, ok := group.Value.(*hujson.Object); ok {
		if v := member(o, "matcher"); v != nil && text(*v) != "" {
			identity["matcher"] = text(*v)
		}
	}
	data, err := compactJSON(identity)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// compactJSON returns v as JSON without spaces. It does not escape <, > and &.
func compactJSON(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// snakeCase returns the name of an event in Codex's state.
func snakeCase(event string) string {
	var b strings.Builder
	for i, r := range event {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
