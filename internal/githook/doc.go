// Package githook installs cairn's guard into the Git hooks of a repository and removes it
// (mail §8). It changes files in one hooks folder and runs nothing.
//
// Git runs one file for each hook. The guard takes that place with a chain: a
// script that runs every program of hooks.d/HOOK in order and then the file that
// stood there before, which is kept next to it as HOOK.orig. The guard itself is one
// of those programs, so others may stand next to it.
//
// Both scripts carry a hash of their own text. So it can be told whether somebody
// changed them, and what was changed is never written over nor deleted.
//
// # Why: guards of commits
//
// Git runs one file per hook, so the guard's place is taken by a chain that runs
// hooks.d/HOOK/* and then what stood there, renamed. Both scripts carry a hash of their
// text, which tells without a ledger whose a file is and whether somebody changed it.
// What stood there is linked under its second name before the chain is renamed over it,
// so a killed installation leaves a whole hook. Shell hooks that go by their own name
// (husky's) are sourced, under that name. Only exit code 1 of cairn stops git: a
// missing, failing or older program is no veto. At commits the mode is block unless
// somebody set one, for there is nobody to ask; warn as the default of guard.mode is
// about edits. There the limit of 4 ms is CPU time: by the clock a guard on a busy
// machine missed five of a hundred conflicts (100 ms more is the end).
package githook
