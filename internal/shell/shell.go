package shell

import "strings"

// Use reports what the programs of a command line do.
type Use struct {
	Push, Commit, Github bool // git push, git commit, gh; not in quotes, not as a dry run
	OnlyCairn            bool // there is at least one program, and all are cairn
}

// Read reports what a command line runs (observations §5). tool is the name of the tool that ran
// it. The name selects the grammar: POSIX shell or PowerShell. A malformed line is parsed as far
// as possible.
func Read(line, tool string) Use {
	var use Use
	programs, cairns := 0, 0
	for _, c := range simpleCommands(line, isPowerShell(tool)) {
		name, args := program(c.words)
		if name == "" {
			continue
		}
		programs++
		switch {
		case name == "cairn":
			cairns++
		case c.quoted:
		case name == "gh":
			use.Github = true
		case name == "git":
			push, commit := gitWrites(args)
			use.Push, use.Commit = use.Push || push, use.Commit || commit
		}
	}
	use.OnlyCairn = programs > 0 && programs == cairns
	return use
}

func isPowerShell(tool string) bool {
	tool = strings.ToLower(tool)
	return strings.Contains(tool, "powershell") || strings.Contains(tool, "pwsh")
}

// Normal returns the form of a command that is compared with other runs (observations §10). It
// removes leading assignments and `cd … &&`, and collapses white space. If nothing would remain,
// it only collapses the white space.
func Normal(line string) string {
	drop := 0
	for _, c := range simpleCommands(line, false) {
		if c.nested {
			continue
		}
		if strings.TrimSpace(line[drop:c.start]) != "" { // other text precedes it
			break
		}
		words := c.words
		for len(words) > 0 && isAssignment(words[0]) {
			drop = words[0].end
			words = words[1:]
		}
		if len(words) > 0 && (!c.and || words[0].text != "cd") {
			break
		}
		drop = c.after
	}
	rest := strings.Fields(line[drop:])
	if len(rest) == 0 {
		rest = strings.Fields(line)
	}
	return strings.Join(rest, " ")
}

// program returns the name of the program that a simple command runs, without its directory and
// .exe, in lower case, and its arguments. It skips leading assignments, keywords and the wrappers
// sudo, env, time, command and nohup. A wrapper without a command is itself the program. The name
// is "" if the command runs nothing.
func program(words []word) (name string, args []word) {
	for len(words) > 0 {
		w := words[0]
		if isAssignment(w) || isKeyword(w) {
			words = words[1:]
			continue
		}
		if len(words) > 1 && strings.HasPrefix(w.text, "$") && words[1].text == "=" { // an assignment in PowerShell
			words = words[2:]
			continue
		}
		if w.isPlain() && opensClause(w.text) {
			return "", nil
		}
		name, args = programName(w.text), words[1:]
		if !isWrapper(name) || name == "command" && asksForCommand(args) {
			return name, args
		}
		words = dropOptions(args, name)
	}
	return name, args
}

func programName(path string) string {
	name := strings.ToLower(path[strings.LastIndexAny(path, `/\`)+1:])
	return strings.TrimSuffix(name, ".exe")
}

// isAssignment matches NAME=value, NAME+=value and NAME[i]=value.
func isAssignment(w word) bool {
	eq := strings.IndexByte(w.text[:w.plain], '=')
	if eq < 0 {
		return false
	}
	name := strings.TrimSuffix(w.text[:eq], "+")
	if i := strings.IndexByte(name, '['); i > 0 && strings.HasSuffix(name, "]") {
		name = name[:i]
	}
	for i := range len(name) {
		c := name[i]
		if !isLetter(c) && c != '_' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// isKeyword matches the keywords that precede a command.
func isKeyword(w word) bool {
	if !w.isPlain() {
		return false
	}
	switch w.text {
	case "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "esac", "!", "{", "}":
		return true
	}
	return false
}

// opensClause matches the keywords whose clause, up to the next operator, names no program.
func opensClause(text string) bool {
	return text == "for" || text == "case" || text == "select" || text == "function"
}

func isWrapper(name string) bool {
	switch name {
	case "sudo", "env", "time", "command", "nohup":
		return true
	}
	return false
}

// asksForCommand matches the arguments of `command -v`, which looks up a program and does not run
// it.
func asksForCommand(args []word) bool {
	return len(args) > 0 && strings.HasPrefix(args[0].text, "-") && strings.ContainsAny(args[0].text, "vV")
}

// dropOptions removes a wrapper's options and their arguments.
func dropOptions(args []word, wrapper string) []word {
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		option := args[0].text
		args = args[1:]
		if option == "--" {
			break
		}
		if len(args) > 0 && takesArgument(option, wrapper) {
			args = args[1:]
		}
	}
	return args
}

// takesArgument reports whether the next word is the argument of a wrapper's option.
func takesArgument(option, wrapper string) bool {
	short, long := "", ""
	switch wrapper {
	case "sudo":
		short = "CDRTUghprtu"
		long = " --chdir --chroot --close-from --command-timeout --group --host --other-user --prompt --role --type --user "
	case "env":
		short, long = "CSu", " --chdir --split-string --unset "
	case "time":
		short, long = "fo", " --format --output "
	}
	if strings.HasPrefix(option, "--") {
		return strings.Contains(long, " "+option+" ")
	}
	return strings.IndexAny(option, short) == len(option)-1
}

// ProgramWords returns the names of the programs in a command line. Each is followed by the first
// words of its arguments, which may name a tool (npx jest, python -m pytest).
func ProgramWords(line, tool string) (names []string) {
	const perCommand, most = 4, 40
	for _, c := range simpleCommands(line, isPowerShell(tool)) {
		name, args := program(c.words)
		if name == "" || name == "cd" || name == "echo" {
			continue
		}
		names = append(names, name)
		for i := 0; i < len(args) && i < perCommand; i++ {
			if w := args[i].text; !strings.HasPrefix(w, "-") && !strings.ContainsAny(w, " \n") {
				names = append(names, programName(w))
			}
		}
		if len(names) >= most {
			break
		}
	}
	return names
}
