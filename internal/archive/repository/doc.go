// Package repository keeps files in one Git repository that people may use, too. It commits
// without the work tree and the index, and writes the work tree separately.
//
// An acknowledged commit is on main and on disk, whatever is killed afterwards. Any number
// of processes may commit to one repository, and so may people. A long-lived git fast-import
// creates the objects. git update-ref then moves main atomically from the value that was
// read to the new one. git runs without settings of the user or the system and without
// hooks, with a lower priority.
package repository
