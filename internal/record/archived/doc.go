// Package archived renders records as the files of the archive and reads them back: a page
// for each record, for people, and the changes themselves next to them.
//
// Equal changes give equal bytes, in whatever batches they are rendered. A reindex restores
// records from the files of history alone. Pages only show what such files lack.
package archived
