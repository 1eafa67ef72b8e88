package ranking

import (
	"strings"
	"testing"
)

// everyForm are the words that base knows, after what they are forms of.
const everyForm = `
arise: arisen arose; awake: awoke awoken; bad: worse worst; beat: beaten; become: became; begin: began begun commence start; bend: bent
big: huge large; bike: bicycle cycle; bind: bound; bite: bit bitten; bleed: bled; blow: blew blown; break: broke broken; bring: brought
build: built; burn: burnt; buy: bought purchase; car: vehicle; catch: caught; child: children; choose: chose chosen; colour: color
come: came; company: business firm; creep: crept; dad: father papa; deal: dealt; dig: dug; do: did done; doctor: physician; draw: drawn drew
dream: dreamt; drink: drank drunk; drive: driven drove; eat: ate eaten; exam: test; fall: fallen fell; favorite: fave favourite; feed: fed
feel: felt; fight: fought; find: found; fix: repair; fly: flew flown; foot: feet; forget: forgot forgotten; forgive: forgave forgiven
freeze: froze frozen; fridge: refrigerator; get: got gotten; gift: present; give: gave given; go: goes gone went; good: best better
grandma: grandmother; grandpa: grandfather; grow: grew grown; hang: hung; have: had; hear: heard; hide: hid hidden; hold: held; house: home
job: career work; keep: kept; knife: knives; know: knew known; lay: laid; lead: led; learn: learnt; leave: left; lend: lent; lie: lain
life: lives; lose: lost; make: made; man: men; mean: meant; meet: met; mom: mama mother mum; mouse: mice; movie: film; pay: paid
person: people; photo: image photograph pic picture; ride: ridden rode; ring: rang rung; rise: risen rose; run: ran; say: said
see: saw seen; seek: sought; sell: sold; send: sent; sew: sewn; shake: shaken shook; shelf: shelves; shine: shone; shoot: shot; show: shown
sing: sang sung; sink: sank sunk; sit: sat; sleep: slept; speak: spoke spoken; spend: spent; stand: stood; steal: stole stolen; stick: stuck
strike: struck; swear: swore sworn; swim: swam swum; take: taken took; teach: taught; tear: tore torn; tell: told; think: thought
throw: threw thrown; tooth: teeth; tv: television; understand: understood; vacation: holiday trip; wake: woke woken; wear: wore worn
weave: wove woven; wife: wives; win: won; woman: women; write: written wrote
`

func TestBaseKnowsEveryForm(t *testing.T) {
	t.Parallel()
	known := 0
	for group := range strings.SplitSeq(strings.ReplaceAll(strings.TrimSpace(everyForm), "\n", "; "), "; ") {
		want, list, ok := strings.Cut(group, ": ")
		if !ok {
			t.Fatalf("%q is no group", group)
		}
		for form := range strings.FieldsSeq(list) {
			known++
			if got := base(form); got != want {
				t.Errorf("%s is a form of %q, want %s", form, got, want)
			}
		}
		if got := base(want); got != want {
			t.Errorf("%s is a form of %q", want, got)
		}
	}
	if lines := strings.Count(forms, "\n"); lines != known {
		t.Errorf("the table has %d lines, and %d forms are known", lines, known)
	}
}

func TestFormsAreSorted(t *testing.T) {
	t.Parallel()
	last := ""
	for line := range strings.Lines(forms) {
		form, of, _ := strings.Cut(line, " ")
		if form == "" || strings.TrimSpace(of)+"\n" != of || strings.Contains(of, " ") {
			t.Errorf("%q is no line of the table", line)
		}
		if form <= last {
			t.Errorf("%s comes after %s", form, last)
		}
		last = form
	}
}

func TestAnyOtherWordIsItsOwn(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"", "a", "aros", "arosee", "zzz", "é", "ate eat", "eat\nate", "\n", " ", "Ate", "wrot", "written wrote", "refund"} {
		if got := base(word); got != word {
			t.Errorf("%q became %q", word, got)
		}
	}
}
