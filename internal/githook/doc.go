// Package githook puts cairn's guard into the hooks of a repository and takes it
// out again (mail §8). It works on the files of one folder of hooks, and runs
// nothing.
//
// Git runs one file for each hook. The guard takes that place with a chain: a
// script that runs every program of hooks.d/HOOK in order and then the file that
// stood there before, which is kept beside it as HOOK.orig. The guard itself is one
// of those programs, so others may stand next to it.
//
// Both scripts carry a hash of their own text. So it can be told whether somebody
// changed them, and what was changed is never written over nor deleted.
package githook
