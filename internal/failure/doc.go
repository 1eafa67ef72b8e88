// Package failure finds the line of a tool's output that explains why the tool failed.
//
// Each family of tools has rules. A rule finds one line. Strict rules match lines that
// only this family prints. Loose rules match lines that other tools print too. Find first
// applies the strict rules of the families that the command names. Then come the strict
// rules of all families, because a command such as make or npm runs other tools. Then
// come the loose rules of the named families, and at last the general rules. The result
// is never a progress line, a banner or an exit code, unless the output holds nothing
// else.
package failure
