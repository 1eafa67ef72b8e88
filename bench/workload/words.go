package workload

import (
	"math/rand/v2"
	"strings"
)

// vocabularySize is the number of words in the vocabulary.
const vocabularySize = 30_000

// commonWords contains the most frequent words, the most frequent first.
const commonWords = `the to a in and of test is for it that fix file error with this on from not we add run when
should be build check function failing why use now return config but update package then value call
type line make only if change one does first client server code request response token order read
write user list path store cache index query parser handler retry timeout refund ledger invoice
shipment signal window buffer stream batch worker queue lock deadlock commit branch merge release
deploy staging production rollback migration schema column table row key session cookie header
payload event hook metric alert trace span log level debug flag option default empty missing
unknown invalid duplicate stale flaky slow fast memory leak race panic overflow rounding decimal
currency locale timezone parse encode decode compress escape quote split join sort filter map reduce
group count sum mean limit offset page cursor scroll render layout button form input label modal
sidebar theme style color font icon image upload download import export backup restore sync replica
leader election quorum heartbeat lease ballot shard partition bucket hash digest signature
certificate cipher secret rotate expire refresh revoke grant role permission policy audit`

// vocabulary lists words, the most frequent first: known words, then words generated from
// syllables. It returns the same list at every call.
func vocabulary() []string {
	words := strings.Fields(commonWords)
	syllables := strings.Fields(`ba be bo bri ca ce cor da del dro en fa fi gar gle ha hel in ja ka ki lan lo lu
ma mer mi na nel no or pa pel qui ra ren ro sa sel shi ta tel tri ul va ven wo yor za zin`)
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for _, w := range words {
		seen[w] = true
	}
	for len(words) < vocabularySize {
		var b strings.Builder
		for range 2 + r.IntN(2) {
			b.WriteString(syllables[r.IntN(len(syllables))])
		}
		if w := b.String(); !seen[w] {
			seen[w] = true
			words = append(words, w)
		}
	}
	return words
}

// cjkPhrases returns phrases that are added to some prompts, to simulate users who do not write
// English.
func cjkPhrases() []string {
	return []string{
		"数据库连接超时", "修复订单退款的测试", "为什么缓存没有失效", "请检查日志里的错误", "把配置移到新的文件",
		"テストが失敗する理由を調べて", "在庫の計算を直してください", "設定ファイルを更新する", "결제 오류를 고쳐 주세요", "로그를 확인해 줘",
	}
}

// speaker chooses words with a frequency that depends on their rank.
type speaker struct {
	*rand.Rand
	words []string
	zipf  *rand.Zipf
}

func newSpeaker(r *rand.Rand, words []string) *speaker {
	return &speaker{r, words, rand.NewZipf(r, 1.12, 6, uint64(len(words)-1))}
}

func (s *speaker) word() string { return s.words[s.zipf.Uint64()] }

// noun returns a word that is not a function word.
func (s *speaker) noun() string {
	const functionWords = 60
	for {
		if n := s.zipf.Uint64(); n >= functionWords {
			return s.words[n]
		}
	}
}

// sentence returns a sentence of low to high words.
func (s *speaker) sentence(low, high int) string {
	var b strings.Builder
	for i := range low + s.IntN(high-low+1) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s.word())
	}
	return b.String()
}

// camel returns an identifier of n words, such as getOrderLedger.
func (s *speaker) camel(n int) string {
	var b strings.Builder
	b.WriteString(s.noun())
	for range n - 1 {
		b.WriteString(capital(s.noun()))
	}
	return b.String()
}

func capital(w string) string { return strings.ToUpper(w[:1]) + w[1:] }

// one returns a random element of of.
func one[T any](s *speaker, of []T) T { return of[s.IntN(len(of))] }
