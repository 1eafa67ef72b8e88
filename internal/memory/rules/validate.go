package rules

import (
	"cmp"
	"encoding/json"
	"strings"
)

// The hub checks again what devices send (memories §5.1, §5.3). The functions of this file
// return CodeInvalid with details.field, except where they name another code.

// ValidateTitle checks the title and the description of a vault or a memory.
func ValidateTitle(title, description string) error {
	return cmp.Or(CheckTitle(title), CheckLength("description", description, MaxDescription))
}

// ValidateType checks a memoryType, which is required.
func ValidateType(memoryType string) error {
	odd := strings.ContainsFunc(memoryType, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
	if odd || memoryType == "" || len(memoryType) > maxType {
		return Invalid("memoryType", "memoryType has 1 to %d of the characters a-z 0-9 _ -", maxType)
	}
	return nil
}

// ValidateEntry checks the texts of an entry and returns its metadata in compact form, nil
// for none. A rawEntry that is too long is CodeEntryTooLarge, with details limit and actual.
func ValidateEntry(raw, summary string, tags map[string]string, metadata json.RawMessage) (json.RawMessage, error) {
	metadata, err := checkMetadata(metadata)
	return metadata, cmp.Or(checkBody("rawEntry", raw, maxRaw, CodeEntryTooLarge), ValidatePatch(&summary, tags), err)
}

// ValidatePatch checks a new summary and new tags of an entry. Nil means unchanged.
func ValidatePatch(summary *string, tags map[string]string) error {
	if summary == nil {
		summary = new(string)
	}
	return cmp.Or(CheckLength("summary", *summary, MaxSummary), CheckTags(tags))
}

// ValidateReason checks the correctionReason of an entry, which is required.
func ValidateReason(reason string) error {
	if reason == "" {
		return Invalid("correctionReason", "correctionReason is required")
	}
	return CheckLength("correctionReason", reason, MaxReason)
}

// ValidateContext checks a context document of at most most characters. A document that is
// too long is CodeContextTooLarge, with details limit and actual.
func ValidateContext(markdown string, most int) error {
	return cmp.Or(checkBody("markdown", markdown, most, CodeContextTooLarge), checkContext(markdown))
}

// ValidateKey checks an idempotency key or a hub key, which is required.
func ValidateKey(key string) error {
	if key == "" {
		return Invalid("key", "key is required")
	}
	return CheckKey(key)
}
