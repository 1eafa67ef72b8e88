package mail

// The words of agent names: an adjective and a noun. The lists are sorted and in lower case.
// Words may be added but not removed, because names are kept.

// minWord is the length of the shortest word.
const minWord = 3

// adjectives are the first words of names: colours, weather, and qualities of pleasant
// colleagues.
var adjectives = [...]string{
	"amber", "azure", "black", "blue", "bold", "brave", "breezy", "bright", "brisk", "bronze", "brown", "calm",
	"clear", "clever", "cloudy", "cobalt", "copper", "coral", "cosmic", "cozy", "crimson", "crisp", "crystal",
	"daring", "dewy", "eager", "early", "emerald", "fair", "fancy", "fleet", "frosty", "gentle", "gilded",
	"glad", "gold", "grand", "granite", "gray", "green", "happy", "hardy", "hazy", "honest", "humble", "icy",
	"indigo", "ivory", "jade", "jolly", "keen", "kind", "lilac", "lively", "lofty", "loyal", "lucky", "lunar",
	"maroon", "mellow", "merry", "mighty", "mild", "mint", "misty", "modest", "mossy", "neat", "nimble", "noble",
	"ochre", "olive", "opal", "orange", "patient", "pearl", "pink", "polar", "proud", "purple", "quick", "quiet",
	"rainy", "rapid", "red", "rosy", "ruby", "rustic", "sage", "sandy", "sapphire", "scarlet", "serene", "sharp",
	"shiny", "silent", "silver", "sleek", "smooth", "snowy", "solar", "solid", "spry", "stable", "starry",
	"steady", "stellar", "stormy", "sturdy", "subtle", "sunny", "swift", "tidal", "topaz", "tranquil", "umber",
	"velvet", "violet", "vivid", "warm", "white", "windy", "wise", "witty", "yellow", "zesty",
}

// nouns are the second words: land, water, plants, animals and buildings.
var nouns = [...]string{
	"acorn", "anchor", "arch", "aspen", "badger", "bay", "beacon", "bear", "birch", "bison", "boulder", "bridge",
	"brook", "cabin", "canyon", "cape", "castle", "cave", "cedar", "chapel", "cliff", "cloud", "coast", "comet",
	"cove", "crane", "crater", "creek", "deer", "delta", "dog", "dolphin", "dove", "dune", "eagle", "elk", "elm",
	"falcon", "fern", "field", "finch", "fjord", "forest", "fox", "garden", "gate", "geyser", "glacier", "glade",
	"grove", "gull", "harbor", "hawk", "heron", "hill", "horizon", "island", "juniper", "lagoon", "lake",
	"lantern", "lark", "lighthouse", "lynx", "maple", "marsh", "marten", "meadow", "mesa", "mill", "moon",
	"moose", "moss", "mountain", "oak", "ocean", "orchard", "osprey", "otter", "owl", "palm", "peak",
	"pelican", "pine", "plain", "plateau", "pond", "prairie", "quail", "quarry", "raven", "reef", "ridge",
	"river", "robin", "rock", "salmon", "sea", "seal", "shore", "sparrow", "spring", "spruce", "squirrel",
	"star", "stone", "summit", "swan", "temple", "thistle", "thrush", "tiger", "tower", "trail", "trout",
	"turtle", "valley", "village", "walrus", "waterfall", "wave", "whale", "willow", "wolf", "wren",
}
