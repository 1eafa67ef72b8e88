package words

// stopWords are English words that say nothing about the subject of a question, sorted:
// articles, pronouns, prepositions, auxiliary and empty verbs, question words.
var stopWords = [...]string{
	"a", "about", "above", "according", "across", "actual", "actually", "after", "afterwards", "again",
	"against", "ago", "all", "almost", "along", "already", "also", "although", "always", "am", "among", "an",
	"and", "another", "any", "anybody", "anymore", "anyone", "anything", "anyway", "are", "aren", "around",
	"as", "aside", "ask", "asked", "at", "away", "back", "basically", "be", "became", "because", "become",
	"been", "before", "began", "begin", "behind", "being", "below", "beside", "besides", "between", "both",
	"but", "by", "came", "can", "cannot", "cant", "come", "could", "couldn", "d", "decide", "decided", "did",
	"didn", "do", "does", "doesn", "doing", "don", "done", "down", "during", "each", "either", "else", "end",
	"ended", "ends", "especially", "etc", "even", "ever", "every", "everything", "exactly", "explain",
	"explained", "few", "find", "for", "found", "from", "further", "gave", "get", "gets", "getting", "give",
	"given", "go", "goes", "going", "gone", "got", "had", "happen", "happened", "happening", "happens", "has",
	"hasn", "have", "haven", "having", "he", "hello", "help", "her", "here", "hers", "herself", "hi", "him",
	"himself", "his", "hm", "how", "however", "i", "if", "in", "instead", "into", "is", "isn", "it", "its",
	"itself", "just", "kind", "knew", "know", "known", "last", "lately", "later", "least", "less", "let",
	"lets", "like", "ll", "look", "looked", "looking", "lot", "m", "made", "mainly", "make", "makes", "making",
	"many", "may", "maybe", "me", "mean", "means", "meant", "might", "mine", "more", "most", "mostly", "much",
	"must", "my", "myself", "name", "near", "need", "needed", "needs", "neither", "never", "next", "no",
	"nobody", "none", "nor", "not", "nothing", "now", "of", "off", "often", "ok", "okay", "on", "once", "one",
	"ones", "only", "onto", "or", "other", "others", "otherwise", "ought", "our", "ours", "ourselves", "out",
	"over", "own", "particular", "perhaps", "please", "possible", "possibly", "previously", "probably", "put",
	"quite", "rather", "re", "really", "reason", "recall", "regarding", "remember", "s", "said", "same", "saw",
	"say", "says", "see", "seem", "seemed", "seems", "seen", "several", "shall", "she", "should", "shouldn",
	"show", "since", "so", "some", "somebody", "somehow", "someone", "something", "sometime", "sometimes",
	"somewhere", "still", "such", "sure", "t", "take", "taken", "talk", "talked", "tell", "than", "thank",
	"thanks", "that", "the", "their", "theirs", "them", "themselves", "then", "there", "therefore", "these",
	"they", "thing", "things", "think", "this", "those", "though", "thought", "through", "thus", "till", "to",
	"together", "told", "too", "took", "toward", "towards", "tried", "try", "trying", "turn", "turned", "under",
	"until", "up", "upon", "us", "use", "used", "uses", "using", "usually", "ve", "very", "via", "want",
	"wanted", "wants", "was", "wasn", "way", "ways", "we", "well", "went", "were", "weren", "what", "whatever",
	"when", "whenever", "where", "wherever", "whether", "which", "whichever", "while", "who", "whole", "whom",
	"whose", "why", "will", "with", "within", "without", "won", "work", "worked", "working", "would", "wouldn",
	"yes", "yet", "you", "your", "yours", "yourself",
}

// askingVerbs are verbs that introduce a question after verbOpeners and at the start of a
// sentence. Elsewhere they name something, usually a command. Sorted.
var (
	askingVerbs = [...]string{"end", "explain", "find", "help", "look", "name", "show"}
	verbOpeners = [...]string{"and", "can", "could", "i", "it", "me", "please", "them", "to", "us", "we", "you"}
)

// commonWords are everyday English words that say little about the subject of a question,
// sorted.
var commonWords = [...]string{
	"able", "add", "added", "adding", "allow", "allowed", "answer", "answered", "appear", "appeared", "applied",
	"apply", "area", "arrive", "bad", "beginning", "believe", "best", "better", "big", "bit", "bring",
	"brought", "build", "built", "call", "called", "care", "carry", "case", "cause", "caused", "certain",
	"chance", "change", "changed", "changes", "changing", "check", "checked", "choice", "choose", "chose",
	"chosen", "clean", "clear", "close", "complain", "complained", "complete", "concern", "consider", "contain",
	"contains", "content", "correct", "count", "cover", "create", "created", "creating", "current", "currently",
	"cut", "day", "days", "deal", "default", "difference", "different", "difficult", "direct", "discuss",
	"discussed", "discussion", "early", "easy", "effect", "empty", "enough", "entire", "entries", "entry",
	"example", "exist", "existing", "exists", "expect", "expected", "extra", "fact", "fail", "failed", "far",
	"fast", "feature", "field", "fine", "finish", "finished", "fix", "fixed", "fixing", "follow", "following",
	"follows", "form", "forth", "free", "full", "fully", "general", "good", "great", "group", "grow", "guess",
	"half", "hand", "handle", "handled", "hard", "high", "hit", "hold", "hope", "idea", "important", "improve",
	"inside", "issue", "issues", "join", "large", "lead", "learn", "leave", "leaves", "left", "length", "level",
	"life", "line", "lines", "list", "little", "live", "long", "lose", "lost", "low", "main", "major", "manage",
	"match", "matter", "measure", "mention", "mentioned", "miss", "missing", "mistake", "moment", "move",
	"moved", "named", "names", "new", "nice", "note", "notice", "noticed", "number", "numbers", "object",
	"occur", "old", "open", "opened", "option", "order", "original", "overall", "part", "parts", "pass",
	"people", "person", "piece", "place", "plan", "point", "points", "prefer", "present", "prevent", "previous",
	"print", "printed", "prints", "problem", "problems", "process", "produce", "produced", "proper", "properly",
	"propose", "proposed", "provide", "provided", "purpose", "question", "questions", "quick", "quickly",
	"quiet", "raise", "raised", "ran", "reach", "read", "ready", "real", "receive", "recent", "recently",
	"reject", "rejected", "relevant", "remain", "remains", "remove", "removed", "removing", "rename", "replace",
	"replaced", "report", "reported", "request", "required", "result", "results", "return", "returned",
	"returns", "rid", "right", "room", "rule", "run", "running", "runs", "save", "saved", "second", "section",
	"sense", "separate", "set", "sets", "setting", "short", "showed", "shown", "shows", "side", "sign",
	"similar", "simple", "single", "size", "small", "solution", "solve", "solved", "sort", "sound", "special",
	"specific", "spot", "stand", "standard", "start", "started", "starting", "state", "stay", "step", "steps",
	"stop", "stopped", "store", "stored", "story", "style", "subject", "suggest", "suggested", "suppose",
	"supposed", "switch", "talking", "task", "term", "terms", "text", "third", "times", "title", "today", "top",
	"topic", "total", "touch", "track", "true", "twice", "type", "types", "unclear", "understand", "unexpected",
	"update", "updated", "useful", "user", "users", "usual", "value", "values", "various", "version", "view",
	"wait", "walk", "watch", "week", "weeks", "wish", "wonder", "word", "words", "world", "worry", "worse",
	"worst", "write", "writes", "writing", "written", "wrong", "wrote", "year", "years",
}
