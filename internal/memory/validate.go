package memory

import "encoding/json"

// What a hub checks again of what devices send, by the rules of memories §5.1 and
// §5.3. All of these fail with CodeInvalid and details.field, or as they say.

// ValidateTitle checks the title and the description of a vault or a memory.
func ValidateTitle(title, description string) error {
	return firstError(checkTitle(title), checkLength("description", description, maxDescription))
}

// ValidateType checks a memoryType, which is not left out.
func ValidateType(memoryType string) error { return checkType(memoryType) }

// ValidateEntry checks the texts of an entry, and returns its metadata without blanks
// between its tokens. Too long a rawEntry is CodeEntryTooLarge, with limit and actual.
func ValidateEntry(raw, summary string, tags map[string]string, metadata json.RawMessage) (json.RawMessage, error) {
	metadata, err := checkMetadata(metadata)
	return metadata, firstError(checkBody("rawEntry", raw, maxRaw, CodeEntryTooLarge), ValidatePatch(&summary, tags), err)
}

// ValidatePatch checks what of an entry may change; nil is what stays as it is.
func ValidatePatch(summary *string, tags map[string]string) error {
	if summary == nil {
		summary = new(string)
	}
	return firstError(checkLength("summary", *summary, maxSummary), checkTags(tags))
}

// ValidateReason checks why an entry is corrected.
func ValidateReason(reason string) error {
	if reason == "" {
		return invalid("correctionReason", "correctionReason is required")
	}
	return checkLength("correctionReason", reason, maxReason)
}

// ValidateContext checks a context document of at most so many characters. One that is
// too long is CodeContextTooLarge, with limit and actual.
func ValidateContext(markdown string, most int) error {
	return firstError(checkBody("markdown", markdown, most, CodeContextTooLarge), checkContext(markdown))
}

// ValidateKey checks an idempotency key or a hub key, which is not left out.
func ValidateKey(key string) error {
	if key == "" {
		return invalid("key", "key is required")
	}
	return checkKey(key)
}
