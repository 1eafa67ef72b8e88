package memory

import "encoding/json"

// What a hub checks again of what devices send, by the rules of memories §5.1 and
// §5.3. All of these fail with CodeInvalid and details.field, or as they say.

// SoundTitle checks the title and the description of a vault or a memory.
func SoundTitle(title, description string) error {
	return firstError(checkTitle(title), checkLength("description", description, maxDescription))
}

// SoundType checks a memoryType, which is not left out.
func SoundType(memoryType string) error { return checkType(memoryType) }

// SoundEntry checks the texts of an entry, and returns its metadata without blanks
// between its tokens. Too long a rawEntry is CodeEntryTooLarge, with limit and actual.
func SoundEntry(raw, summary string, tags map[string]string, metadata json.RawMessage) (json.RawMessage, error) {
	metadata, err := checkMetadata(metadata)
	return metadata, firstError(checkBody("rawEntry", raw, maxRaw, CodeEntryTooLarge), SoundPatch(&summary, tags), err)
}

// SoundPatch checks what of an entry may change; nil is what stays as it is.
func SoundPatch(summary *string, tags map[string]string) error {
	if summary == nil {
		summary = new(string)
	}
	return firstError(checkLength("summary", *summary, maxSummary), checkTags(tags))
}

// SoundReason checks why an entry is corrected.
func SoundReason(reason string) error {
	if reason == "" {
		return invalid("correctionReason", "correctionReason is required")
	}
	return checkLength("correctionReason", reason, maxReason)
}

// SoundContext checks a context document of at most so many characters. One that is
// too long is CodeContextTooLarge, with limit and actual.
func SoundContext(markdown string, most int) error {
	return firstError(checkBody("markdown", markdown, most, CodeContextTooLarge), checkContext(markdown))
}

// SoundKey checks an idempotency key or a hub key, which is not left out.
func SoundKey(key string) error {
	if key == "" {
		return invalid("key", "key is required")
	}
	return checkKey(key)
}
