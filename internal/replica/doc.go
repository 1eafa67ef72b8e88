// Package replica takes a device's memories to a hub and brings back what other
// devices sent there (memories §10.3, §13).
package replica
