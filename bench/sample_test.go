package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestQuantilesAreNearestRanks(t *testing.T) {
	t.Parallel()
	hundred := sample{}
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	for _, c := range []struct {
		name string
		of   sample
		q    float64
		want time.Duration
	}{
		{"nothing", nil, 0.5, 0},
		{"one", sample{7}, 0.99, 7},
		{"median of four is the second", sample{4, 1, 3, 2}, 0.5, 2},
		{"median of five is the third", sample{5, 1, 4, 2, 3}, 0.5, 3},
		{"p99 of a hundred", hundred, 0.99, 99},
		{"p95 of a hundred", hundred, 0.95, 95},
		{"largest", hundred, 1, 100},
		{"smallest", hundred, 0, 1},
	} {
		before := slices.Clone(c.of)
		if got := c.of.at(c.q); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if !slices.Equal(before, c.of) {
			t.Errorf("%s: the sample was reordered", c.name)
		}
	}
}

func TestMeasurementsAreTakenInTurn(t *testing.T) {
	t.Parallel()
	order := ""
	note := func(name string) func() error { return func() error { order += name; return nil } }
	if err := inTurn(3, note("a"), note("b")); err != nil || order != "ababab" {
		t.Errorf("%s, %v", order, err)
	}
}

func TestTableAlignsColumnsAndTellsTargets(t *testing.T) {
	t.Parallel()
	tab := newTable("hook", "one call", "p50 ms", "calls")
	tab.add("naïve", 1500*time.Microsecond, 12).target("≤ 2 ms", true)
	tab.add("a longer name", 21*time.Millisecond, 1234567).target("≤ 2 ms", false)
	tab.add("none", nil, nil)
	tab.note("%d lost", 0)
	var b strings.Builder
	if err := tab.print(&b); err != nil {
		t.Fatal(err)
	}
	want := `
hook: one call
                 p50 ms      calls
  naïve            1.50         12  met: ≤ 2 ms
  a longer name    21.0  1,234,567  NOT MET: ≤ 2 ms
  none
  0 lost
`
	if b.String() != want {
		t.Errorf("got:%s\nwant:%s", b.String(), want)
	}
}

func TestOnlyNamesExperiments(t *testing.T) {
	t.Parallel()
	all, err := selected("")
	if err != nil || len(all) != len(experiments()) {
		t.Errorf("%d experiments, %v", len(all), err)
	}
	some, err := selected("size,hook")
	if err != nil || len(some) != 2 || some[0].name != "hook" || some[1].name != "size" {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := selected("hook,nonsense"); err == nil {
		t.Error("an unknown name was taken")
	}
}
