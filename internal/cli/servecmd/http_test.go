package servecmd

import (
	"slices"
	"testing"
)

func TestTheHostOfTheAddressIsServed(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string][]string{
		":0": nil, "0.0.0.0:1": nil, "[::]:1": nil, "[fe80::1%eth0]:1": nil, "bad": nil,
		"10.1.2.3:80": {"10.1.2.3"}, "[2001:db8::1]:80": {"[2001:db8::1]"}, "desk.example:80": {"desk.example"},
	} {
		l := listener{addr: addr}
		if got := l.own(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
}
