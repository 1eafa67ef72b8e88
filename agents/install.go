package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// cacheFolder returns the folder in which programs are installed: AGENTS_NPM, else AGENTS_DIR,
// else a folder of the user's cache.
func cacheFolder() (string, error) {
	for _, name := range []string{"AGENTS_NPM", "AGENTS_DIR"} {
		if dir := os.Getenv(name); dir != "" {
			return dir, nil
		}
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "cairn-agents"), err
}

// install returns the folder of a program's commands. It installs the program with npm unless
// the pinned version is already installed.
func install(cache string, p Program) (string, error) {
	dir := filepath.Join(cache, p.Folder)
	bin := filepath.Join(dir, "node_modules", ".bin")
	if installedVersion(dir, p) == p.Version {
		return bin, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "installing %s@%s …\n", p.Package, p.Version)
	cmd := exec.Command("npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", dir, p.Package+"@"+p.Version)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("install %s: %w", p.Package, err)
	}
	return bin, nil
}

func installedVersion(dir string, p Program) string {
	data, err := os.ReadFile(filepath.Join(dir, "node_modules", filepath.FromSlash(p.Package), "package.json"))
	if err != nil {
		return ""
	}
	var about struct{ Version string }
	if json.Unmarshal(data, &about) != nil {
		return ""
	}
	return about.Version
}
