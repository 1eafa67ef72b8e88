// Package transfer writes the rows of this part to an export, and stores the rows of an export.
//
// An export is checked as a whole before any of it is stored, in small transactions. The changes
// that an import appends are this device's own.
package transfer
