// Package toolargs reads the arguments of tools. The fields of a struct and their tags
// declare them: the JSON Schema for clients and the checks of the values come from there.
//
// The parts of cairn have different conventions for wrong types, text instead of numbers,
// and errors. The style of a parameter selects them.
package toolargs
