package mail

import (
	"testing"

	"cairn/internal/fault"
	"cairn/internal/mail/mailtest"
)

func TestEveryCodeHasAKind(t *testing.T) {
	t.Parallel()
	for code, kind := range map[string]fault.Kind{
		CodeConfiguration: fault.Invalid, CodeMissing: fault.Invalid, CodeEmptyModel: fault.Invalid, CodeAgentName: fault.Invalid,
		CodeNotFound: fault.NotFound, CodeDenied: fault.Denied, CodeDiskFull: fault.Unavailable,
	} {
		mailtest.Want(t, code, kindOf(code), kind)
	}
}
