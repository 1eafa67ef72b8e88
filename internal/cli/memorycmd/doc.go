// Package memorycmd contains the commands for memories and for sharing them between devices: memory,
// hub, replication, whoami and health.
package memorycmd
