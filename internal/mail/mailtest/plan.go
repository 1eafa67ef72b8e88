package mailtest

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cairn/internal/store"
)

// arguments is how many arguments a query takes.
func arguments(query string) (n int) {
	for _, m := range regexp.MustCompile(`\?(\d*)`).FindAllStringSubmatch(query, -1) {
		if m[1] == "" {
			n++
		} else if i, _ := strconv.Atoi(m[1]); i > n {
			n = i
		}
	}
	return n
}

// scanned is the table of rows that a line of a plan goes through from end to end,
// "" for none. Projects are few; what newest, f and the like hold is limited.
func scanned(line string) string {
	rest, found := strings.CutPrefix(line, "SCAN ")
	table, how, _ := strings.Cut(rest, " ")
	if !found || strings.Contains(how, "VIRTUAL TABLE INDEX") || slices.Contains([]string{"newest", "f", "CONSTANT"}, table) || table[0] == '(' {
		return ""
	}
	return table
}

// Plan returns the lines of the plan of a query.
func Plan(t testing.TB, s *store.Store, query string) (lines []string) {
	t.Helper()
	err := s.Read(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		rows, err := tx.Query(ctx, "EXPLAIN QUERY PLAN "+query, make([]any, arguments(query))...)
		if err != nil {
			return err
		}
		for rows.Next() {
			var id, parent, unused int
			var line string
			if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
				return err
			}
			lines = append(lines, line)
		}
		return rows.Err()
	})
	if err != nil || len(lines) == 0 {
		t.Errorf("%s: %v", query, err)
	}
	return lines
}

// NoScans fails the test if one of some queries, by name, reads a whole table, with or
// without statistics.
func NoScans(t testing.TB, s *store.Store, queries map[string]string) {
	t.Helper()
	for _, statistics := range []bool{false, true} {
		if statistics {
			err := s.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
				_, err := tx.Exec(ctx, "ANALYZE")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for name, query := range queries {
			for _, line := range Plan(t, s, query) {
				derived := strings.Contains(query, ") m\n") || strings.Contains(query, ") m ") // m is a limited subquery
				if table := scanned(line); table == "" || table == "p" || table == "m" && derived {
					continue
				}
				t.Errorf("%s (statistics: %v): %s", name, statistics, line)
			}
		}
	}
}
