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

// Bearer is the caller over HTTP, determined by the token (memories §3). The zero value
// is the store's owner. Over standard input and output every caller is the owner.
type Bearer struct {
	User  string // the local user of memories; "" for the device's own
	Level memory.Level
}

// IsOwner reports whether the bearer is the store's owner. Only the owner may use tools
// and resources without users and levels, which means all except memories.
func (b Bearer) IsOwner() bool { return b == Bearer{} }

// bearerHeader carries the bearer from the listener to the call inside this process. A
// client's header of that name is removed.
const bearerHeader = "Cairn-Bearer"

func (b Bearer) set(h http.Header) {
	h.Set(bearerHeader, strconv.Itoa(int(b.Level))+" "+b.User)
}

// bearerOf returns the bearer of a request. Without an HTTP listener that is the owner. A
// malformed header gets the lowest level.
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

// ownersOnly returns the error for a token that is valid only for memories.
func ownersOnly() error {
	return fault.New(fault.Denied, memory.CodeForbidden, "this token is for memories only").
		WithHint("use the owner's token, which `cairn http-token` prints")
}

// ownerOnlyResources allows resources only to the owner. Tools check the bearer
// themselves.
func ownerOnlyResources(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		about := strings.HasPrefix(method, "resources/") || strings.HasPrefix(method, "subscriptions/")
		if about && !bearerOf(r.GetExtra()).IsOwner() {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fault.As(ownersOnly()).Message}
		}
		return next(ctx, method, r)
	}
}
