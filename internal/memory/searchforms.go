package memory

// base is the word that another one is a form of, where Porter's rules do not see it:
// irregular verbs and plurals, and words of daily life that say the same. Any other
// word is its own.
func base(word string) string {
	switch word {
	case "arisen", "arose":
		return "arise"
	case "awoke", "awoken":
		return "awake"
	case "worse", "worst":
		return "bad"
	case "beaten":
		return "beat"
	case "became":
		return "become"
	case "began", "begun", "commence", "start":
		return "begin"
	case "bent":
		return "bend"
	case "huge", "large":
		return "big"
	case "bicycle", "cycle":
		return "bike"
	case "bound":
		return "bind"
	case "bit", "bitten":
		return "bite"
	case "bled":
		return "bleed"
	case "blew", "blown":
		return "blow"
	case "broke", "broken":
		return "break"
	case "brought":
		return "bring"
	case "built":
		return "build"
	case "burnt":
		return "burn"
	case "bought", "purchase":
		return "buy"
	case "vehicle":
		return "car"
	case "caught":
		return "catch"
	case "children":
		return "child"
	case "chose", "chosen":
		return "choose"
	case "color":
		return "colour"
	case "came":
		return "come"
	case "business", "firm":
		return "company"
	case "crept":
		return "creep"
	case "father", "papa":
		return "dad"
	case "dealt":
		return "deal"
	case "dug":
		return "dig"
	case "did", "done":
		return "do"
	case "physician":
		return "doctor"
	case "drawn", "drew":
		return "draw"
	case "dreamt":
		return "dream"
	case "drank", "drunk":
		return "drink"
	case "driven", "drove":
		return "drive"
	case "ate", "eaten":
		return "eat"
	case "test":
		return "exam"
	case "fallen", "fell":
		return "fall"
	case "fave", "favourite":
		return "favorite"
	case "fed":
		return "feed"
	case "felt":
		return "feel"
	case "fought":
		return "fight"
	case "found":
		return "find"
	case "repair":
		return "fix"
	case "flew", "flown":
		return "fly"
	case "feet":
		return "foot"
	case "forgot", "forgotten":
		return "forget"
	case "forgave", "forgiven":
		return "forgive"
	case "froze", "frozen":
		return "freeze"
	case "refrigerator":
		return "fridge"
	case "got", "gotten":
		return "get"
	case "present":
		return "gift"
	case "gave", "given":
		return "give"
	case "goes", "gone", "went":
		return "go"
	case "best", "better":
		return "good"
	case "grandmother":
		return "grandma"
	case "grandfather":
		return "grandpa"
	case "grew", "grown":
		return "grow"
	case "hung":
		return "hang"
	case "had":
		return "have"
	case "heard":
		return "hear"
	case "hid", "hidden":
		return "hide"
	case "held":
		return "hold"
	case "home":
		return "house"
	case "career", "work":
		return "job"
	case "kept":
		return "keep"
	case "knives":
		return "knife"
	case "knew", "known":
		return "know"
	case "laid":
		return "lay"
	case "led":
		return "lead"
	case "learnt":
		return "learn"
	case "left":
		return "leave"
	case "lent":
		return "lend"
	case "lain":
		return "lie"
	case "lives":
		return "life"
	case "lost":
		return "lose"
	case "made":
		return "make"
	case "men":
		return "man"
	case "meant":
		return "mean"
	case "met":
		return "meet"
	case "mama", "mother", "mum":
		return "mom"
	case "mice":
		return "mouse"
	case "film":
		return "movie"
	case "paid":
		return "pay"
	case "people":
		return "person"
	case "image", "photograph", "pic", "picture":
		return "photo"
	case "ridden", "rode":
		return "ride"
	case "rang", "rung":
		return "ring"
	case "risen", "rose":
		return "rise"
	case "ran":
		return "run"
	case "said":
		return "say"
	case "saw", "seen":
		return "see"
	case "sought":
		return "seek"
	case "sold":
		return "sell"
	case "sent":
		return "send"
	case "sewn":
		return "sew"
	case "shaken", "shook":
		return "shake"
	case "shelves":
		return "shelf"
	case "shone":
		return "shine"
	case "shot":
		return "shoot"
	case "shown":
		return "show"
	case "sang", "sung":
		return "sing"
	case "sank", "sunk":
		return "sink"
	case "sat":
		return "sit"
	case "slept":
		return "sleep"
	case "spoke", "spoken":
		return "speak"
	case "spent":
		return "spend"
	case "stood":
		return "stand"
	case "stole", "stolen":
		return "steal"
	case "stuck":
		return "stick"
	case "struck":
		return "strike"
	case "swore", "sworn":
		return "swear"
	case "swam", "swum":
		return "swim"
	case "taken", "took":
		return "take"
	case "taught":
		return "teach"
	case "tore", "torn":
		return "tear"
	case "told":
		return "tell"
	case "thought":
		return "think"
	case "threw", "thrown":
		return "throw"
	case "teeth":
		return "tooth"
	case "television":
		return "tv"
	case "understood":
		return "understand"
	case "holiday", "trip":
		return "vacation"
	case "woke", "woken":
		return "wake"
	case "wore", "worn":
		return "wear"
	case "wove", "woven":
		return "weave"
	case "wives":
		return "wife"
	case "won":
		return "win"
	case "women":
		return "woman"
	case "written", "wrote":
		return "write"
	}
	return word
}
