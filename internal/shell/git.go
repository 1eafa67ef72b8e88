package shell

import "strings"

// gitWrites reports whether git with these arguments pushes or commits. A dry run does neither.
func gitWrites(args []word) (push, commit bool) {
	sub, rest := gitSubcommand(args)
	switch sub {
	case "push":
		return !isDryRun(rest, "n", "o", " --push-option --repo --receive-pack --exec "), false
	case "commit":
		return false, !isDryRun(rest, "", "mFCct", " --message --file --author --date --template --trailer"+
			" --reuse-message --reedit-message --fixup --squash --cleanup --pathspec-from-file ")
	}
	return false, false
}

// gitSubcommand returns git's subcommand and its arguments, after the global options. The
// subcommand is "" after an option that only prints something, such as --version.
func gitSubcommand(args []word) (string, []word) {
	for len(args) > 0 {
		a := args[0].text
		args = args[1:]
		switch a {
		case "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source":
			args = args[min(1, len(args)):]
		case "-h", "--help", "-v", "--version", "--exec-path", "--html-path", "--man-path", "--info-path":
			return "", nil
		default:
			if !strings.HasPrefix(a, "-") {
				return a, args
			}
		}
	}
	return "", nil
}

// isDryRun reports whether a subcommand's options contain --dry-run, possibly abbreviated, or its
// short form. valued and long list the options that have an argument. Such an argument is not an
// option, even if it looks like one.
func isDryRun(args []word, short, valued, long string) bool {
	for i := 0; i < len(args); i++ {
		a := args[i].text
		switch {
		case a == "--":
			return false
		case len(a) >= len("--dr") && strings.HasPrefix("--dry-run", a):
			return true
		case strings.HasPrefix(a, "--"):
			if strings.Contains(long, " "+a+" ") {
				i++
			}
		case len(a) > 1 && a[0] == '-':
			flags := a[1:]
			if v := strings.IndexAny(flags, valued); v >= 0 {
				if v == len(flags)-1 {
					i++
				}
				flags = flags[:v]
			}
			if short != "" && strings.Contains(flags, short) {
				return true
			}
		}
	}
	return false
}
