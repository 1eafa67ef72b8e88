// Package githook installs cairn's guard into the Git hooks of a repository and removes it (mail
// §8). It changes files in one hooks folder and runs nothing.
//
// Git runs one file for each hook. cairn puts a chain there: a script that runs every program of
// hooks.d/HOOK in order, then the original hook. The original is kept as HOOK.orig. The guard is
// one of these programs, so other programs can be installed next to it.
//
// Both scripts contain a hash of their own text. It shows whether they were edited. Edited files
// are neither overwritten nor deleted.
//
// # Why: guards of commits
//
// The chain allows several programs for one hook. A hash in each script identifies cairn's files
// and shows edits without a separate list. The original hook is linked under its second name
// before the chain is renamed over it, so a killed installation leaves a complete hook. Shell
// hooks that depend on their own name (husky's) are sourced, under that name. Only exit code 1
// of cairn stops git: a missing, failing or older program is not a veto. At commits the default
// mode is block, because git cannot ask the user there. The default warn of guard.mode applies
// to edits. The limit of 4 ms is CPU time. As elapsed time, it made a guard on a busy machine
// miss five of a hundred conflicts. After 100 ms of elapsed time the guard gives up in any case.
package githook
