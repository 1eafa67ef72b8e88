// Real agent programs against a scripted model. A module of its own, so that the product
// and its tests do not depend on it.
module cairn/agents

go 1.26.0
