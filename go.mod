module cairn

go 1.26
