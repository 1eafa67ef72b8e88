// Package settings reads config.toml, the .cairn.toml of a repository and the environment
// variables that override keys. A repository can only make settings stricter.
package settings
