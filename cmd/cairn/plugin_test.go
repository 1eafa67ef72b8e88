package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheMarketplaceOffersThePluginThatLiesHere reads the files that `claude plugin
// marketplace add` reads.
func TestTheMarketplaceOffersThePluginThatLiesHere(t *testing.T) {
	t.Parallel()
	read := func(path string, into any) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var market struct {
		Name    string
		Owner   struct{ Name string }
		Plugins []struct{ Name, Source string }
	}
	root := filepath.Join("..", "..")
	read(filepath.Join(root, ".claude-plugin", "marketplace.json"), &market)
	if market.Name != "cairn" || market.Owner.Name == "" || len(market.Plugins) != 1 {
		t.Fatalf("%+v", market)
	}
	var plugin struct{ Name, Version string }
	read(filepath.Join(root, market.Plugins[0].Source, ".claude-plugin", "plugin.json"), &plugin)
	if plugin.Name != market.Plugins[0].Name || !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(plugin.Version) {
		t.Errorf("%+v for %+v", plugin, market.Plugins[0])
	}
}

// TestSlashCommandsOfThePluginRunWhatCairnHas runs the commands that Claude Code runs
// before it sends a slash command to the model.
func TestSlashCommandsOfThePluginRunWhatCairnHas(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "plugin", "commands", "*.md"))
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	h := newHome(t)
	shell := regexp.MustCompile("!`(.*?)`|\\(cairn ([a-z ]+)[:)]")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(text), "---\ndescription: ") {
			t.Errorf("%s has no front matter: %v", file, err)
		}
		found := shell.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s calls nothing of cairn", file)
		}
		for _, m := range found {
			words := strings.Fields(m[2])
			if m[1] != "" {
				words = strings.Fields(strings.TrimPrefix(m[1], "cairn "))
				for i, word := range words { // up to the first redirection or pipe
					if strings.ContainsAny(word, "<>|&") || strings.HasPrefix(word, "2>") {
						words = words[:i]
						break
					}
				}
			}
			h.cairn(append(words, "--help")...)
		}
	}
}
