//go:build conformance

package mcp

import sdk "github.com/modelcontextprotocol/go-sdk/mcp"

// NewConformanceServer is [NewServer] for the official conformance suite, which
// requires features that the product does not have. options can change the SDK's options
// before the server is created, features can change the server afterwards. Release
// builds do not contain it.
func NewConformanceServer(c Config, options func(*sdk.ServerOptions), features func(*sdk.Server)) (*Server, error) {
	s, err := newServer(c, options)
	if err != nil {
		return nil, err
	}
	features(s.sdk)
	return s, nil
}
