// Package vaults creates, lists and deletes vaults and memories. It also deletes entries, because
// the three deletes are alike: with a hub, each hides its object, waits for the hub's confirmation,
// and shows the object again if the hub refuses it or does not respond (memories §10.6).
package vaults
