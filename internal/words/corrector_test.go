package words

import (
	"maps"
	"testing"
)

func TestUnknownWordsGetTheNearestKnownOne(t *testing.T) {
	t.Parallel()
	const text = "The refund was exhausted by getUserById; Écluse, reconciliation and тесты too."
	for unknown, want := range map[string]string{
		"exhaustd": "exhausted", "exahusted": "exhausted", "exhast": "", "refnud": "refund", "rfnud": "", "refu": "refund", "ref": "",
		"Reconcilation": "reconciliation", "reconsilation": "reconciliation", "usre": "user", "getUserByIdd": "getuserbyid", "ecluze": "ecluse", "тестя": "тесты", "zebra": "",
	} {
		c := NewCorrector([]string{unknown})
		c.Learn(text)
		all := c.Corrections()
		if got := Corrected([]string{unknown}, all); want != "" && got[0] != want || want == "" && (len(all) > 0 || got[0] != unknown) {
			t.Errorf("%q: %q, want %q", unknown, all, want)
		}
	}
	c := NewCorrector([]string{"refnd", "zebra"})
	c.Learn("refunds")
	c.Learn("refund")
	if got := c.Corrections(); !maps.Equal(got, map[string]string{"refnd": "refund"}) {
		t.Errorf("the nearest of several: %v", got)
	}
}
