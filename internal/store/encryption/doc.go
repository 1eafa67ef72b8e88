// Package encryption encrypts a plain store, and finishes or undoes an encryption that was
// interrupted. At any instant there is one complete store, which the next process opens.
package encryption
