package mcp

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bearer is who calls over HTTP, as the token says (memories §3). The zero value is
// the store's owner, as everybody is over standard input and output.
type Bearer struct {
	User  string // the local user of memories; "" for the device's own
	Level memory.Level
}

// IsOwner reports whether a bearer may use what knows no users and no levels:
// everything but memories.
func (b Bearer) IsOwner() bool { return b == Bearer{} }

// bearerHeader carries the bearer from the listener to the call inside this process;
// what a client sends under that name is dropped.
const bearerHeader = "Cairn-Bearer"

func (b Bearer) set(h http.Header) {
	h.Set(bearerHeader, strconv.Itoa(int(b.Level))+" "+b.User)
}

// bearerOf is the bearer of a request: the owner where there is no listener, and who
// may do the least if it says something else than set does.
func bearerOf(extra *sdk.RequestExtra) Bearer {
	if extra == nil || extra.Header == nil || extra.Header.Get(bearerHeader) == "" {
		return Bearer{}
	}
	level, user, _ := strings.Cut(extra.Header.Get(bearerHeader), " ")
	n, err := strconv.ParseUint(level, 10, 8)
	if err != nil {
		n = uint64(memory.Read)
	}
	return Bearer{user, memory.Level(n)}
}

// ownersOnly is the error for what memories alone would have allowed.
func ownersOnly() error {
	return fault.New(fault.Denied, memory.CodeForbidden, "this token is for memories only").
		WithHint("use the owner's token, which `cairn http-token` prints")
}

// admitting keeps resources for the owner; tools see to it themselves.
func admitting(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		about := strings.HasPrefix(method, "resources/") || strings.HasPrefix(method, "subscriptions/")
		if about && !bearerOf(r.GetExtra()).IsOwner() {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fault.As(ownersOnly()).Message}
		}
		return next(ctx, method, r)
	}
}
