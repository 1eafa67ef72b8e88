package ranking

import "strings"

// base returns the base form of a word where Porter's rules do not find it: for irregular
// verbs and plurals, and for common synonyms. Other words are returned unchanged.
func base(word string) string {
	for low, high := 0, len(forms); low < high; { // both are starts of lines
		line := low + (high-low)/2
		for line > low && forms[line-1] != '\n' {
			line--
		}
		n := 0 // length of the common prefix
		for n < len(word) && forms[line+n] == word[n] && word[n] != ' ' {
			n++
		}
		rest := forms[line+n:]
		end := strings.IndexByte(rest, '\n')
		switch {
		case n == len(word) && rest[0] == ' ':
			return rest[1:end]
		case n == len(word) || word[n] < rest[0]:
			high = line
		default:
			low = line + n + end + 1
		}
	}
	return word
}

// forms has one line per form: the form, a space, its base. The lines are sorted by the bytes
// of the forms, so that base searches the text itself and no table is built when the program
// starts.
const forms = `arisen arise
arose arise
ate eat
awoke awake
awoken awake
beaten beat
became become
began begin
begun begin
bent bend
best good
better good
bicycle bike
bit bite
bitten bite
bled bleed
blew blow
blown blow
bought buy
bound bind
broke break
broken break
brought bring
built build
burnt burn
business company
came come
career job
caught catch
children child
chose choose
chosen choose
color colour
commence begin
crept creep
cycle bike
dealt deal
did do
done do
drank drink
drawn draw
dreamt dream
drew draw
driven drive
drove drive
drunk drink
dug dig
eaten eat
fallen fall
father dad
fave favorite
favourite favorite
fed feed
feet foot
fell fall
felt feel
film movie
firm company
flew fly
flown fly
forgave forgive
forgiven forgive
forgot forget
forgotten forget
fought fight
found find
froze freeze
frozen freeze
gave give
given give
goes go
gone go
got get
gotten get
grandfather grandpa
grandmother grandma
grew grow
grown grow
had have
heard hear
held hold
hid hide
hidden hide
holiday vacation
home house
huge big
hung hang
image photo
kept keep
knew know
knives knife
known know
laid lay
lain lie
large big
learnt learn
led lead
left leave
lent lend
lives life
lost lose
made make
mama mom
meant mean
men man
met meet
mice mouse
mother mom
mum mom
paid pay
papa dad
people person
photograph photo
physician doctor
pic photo
picture photo
present gift
purchase buy
ran run
rang ring
refrigerator fridge
repair fix
ridden ride
risen rise
rode ride
rose rise
rung ring
said say
sang sing
sank sink
sat sit
saw see
seen see
sent send
sewn sew
shaken shake
shelves shelf
shone shine
shook shake
shot shoot
shown show
slept sleep
sold sell
sought seek
spent spend
spoke speak
spoken speak
start begin
stole steal
stolen steal
stood stand
struck strike
stuck stick
sung sing
sunk sink
swam swim
swore swear
sworn swear
swum swim
taken take
taught teach
teeth tooth
television tv
test exam
thought think
threw throw
thrown throw
told tell
took take
tore tear
torn tear
trip vacation
understood understand
vehicle car
went go
wives wife
woke wake
woken wake
women woman
won win
wore wear
work job
worn wear
worse bad
worst bad
wove weave
woven weave
written write
wrote write
`
