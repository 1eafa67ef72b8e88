// Package transfer exports the rows of the observation part, and imports the rows of an export.
//
// An export is checked as a whole before any row is stored. The import uses small transactions.
// The changes that it appends count as this device's own.
package transfer
