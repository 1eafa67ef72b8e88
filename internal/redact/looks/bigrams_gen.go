//go:build ignore

// Command bigrams_gen measures how often one letter follows another in the
// words of the Go distribution's sources and prints the table of bigrams.go:
//
//	go run bigrams_gen.go > bigrams.go
package main

import (
	"fmt"
	"io/fs"
	"log"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		log.Fatal(err)
	}
	var count [26][26]float64
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		countPairs(&count, string(text))
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print("package looks\n\n" +
		"// bigrams[26*a+b] measures how unlikely it is in language that letter b follows letter a:\n" +
		"// 'K' is what a random letter would be, every letter of the alphabet above it half a bit\n" +
		"// rarer in words, every one below half a bit more frequent. Made by bigrams_gen.go from\n" +
		"// the Go distribution's sources.\n" +
		"const bigrams = \"\" +\n")
	for a, row := range count {
		total := 0.0
		for _, n := range row {
			total += n
		}
		fmt.Print("\t\"")
		for _, n := range row {
			halfBits := 2 * math.Log2((total+26)/26/(n+1))
			fmt.Print(string(rune('K' + int(math.Round(max(-7, min(8, halfBits)))))))
		}
		fmt.Print("\"", map[bool]string{true: "\n", false: " +\n"}[a == 25])
	}
}

// countPairs counts the letter pairs in the words of text. A change from lower to upper
// case ends a word.
func countPairs(count *[26][26]float64, text string) {
	previous := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		lower := c | 0x20
		if lower < 'a' || lower > 'z' {
			previous = 0
			continue
		}
		if previous != 0 && !(c < 'a' && previous >= 'a') {
			count[previous|0x20-'a'][lower-'a']++
		}
		previous = c
	}
}
