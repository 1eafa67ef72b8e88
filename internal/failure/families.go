package failure

import "strings"

// allFamilies returns the table of tool families. The order is the order in which
// strict rules are tried on the output of a command that names no family.
func allFamilies() []family {
	return []family{
		{strict: []rule{first(starting("Command timed out after", "Command was automatically cancelled"))}},
		typeScript(), rust(), python(), golang(), javaScript(), jvm(), ruby(), compilers(), otherLanguages(),
		git(), containers(), network(), makeFamily(), npm(),
	}
}

func rust() family {
	return family{
		programs: "cargo rustc rustup clippy-driver maturin wasm-pack trunk",
		strict: []rule{
			first(starting("error[E")),
			first(isPanic),
		},
		loose: []rule{
			first(but(starting("error: ", "error["), holding("could not compile", "aborting due to", "test failed, to rerun",
				"target failed", "targets failed", "process didn't exit", "build failed"))),
		},
	}
}

// isPanic matches the first line of a Rust panic.
func isPanic(s string) bool {
	return strings.HasPrefix(s, "thread '") && strings.Contains(s, "' panicked at ") ||
		strings.HasPrefix(s, "thread '") && strings.Contains(s, ") panicked at ")
}

func python() family {
	return family{
		programs: "python python2 python3 pytest py.test pip pip3 uv uvx poetry pdm hatch tox nox mypy ruff flake8 pylint black " +
			"pyright unittest django-admin manage.py ipython conda pipenv",
		strict: []rule{
			pytestReason,
			tracebackReason,
			first(func(s string) bool {
				return strings.HasPrefix(s, "FAILED ") && strings.Contains(s, "::") ||
					strings.HasPrefix(s, "ERROR ") && strings.Contains(s, ".py")
			}),
			first(func(s string) bool { return located(s, ".py", ": error: ") || isLintCode(s) }),
			ruffReason,
			first(holding(": No module named ", ": can't open file ")),
			syntaxReason,
		},
		loose: []rule{
			last(isException),
			first(but(starting("ERROR: ", "error: "), isMeaningless)),
			first(holding(": error: ")),
		},
	}
}

func golang() family {
	return family{
		programs: "go gofmt golangci-lint staticcheck gotestsum dlv",
		strict: []rule{
			first(starting("panic: ", "fatal error: ", "WARNING: DATA RACE")),
			goPlaceReason,
			goTestReason,
			goSetupReason,
			first(but(starting("go: "), starting("go: downloading", "go: finding", "go: extracting", "go: added", "go: upgraded",
				"go: downgraded", "go: removed", "go: creating", "go: to add", "go: found"))),
			first(holding("no Go files in ", "no required module provides package", "build constraints exclude all Go files")),
		},
		loose: []rule{
			first(but(starting("FAIL\t"), holding("[build failed]"))),
		},
	}
}

func typeScript() family {
	return family{
		programs: "tsc vue-tsc tsx ts-node tsup",
		strict:   []rule{first(func(s string) bool { return afterNumber(s, "error TS") })},
	}
}

func javaScript() family {
	return family{
		programs: "node npx bunx bun deno jest vitest mocha ava eslint prettier biome next vite webpack rollup esbuild playwright cypress nx turbo lerna",
		strict: []rule{
			eslintReason,
			jestReason,
			first(starting("✘ [ERROR] ", "ERROR in ", "Module not found: ", "✖ failed to load config")),
			stackReason,
		},
		loose: []rule{
			first(isException),
			first(but(starting("not ok "), holding("# TODO", "# SKIP"))),
			first(but(starting("✖ ", "✗ ", "× ", "[error] "), holding(" problem"))),
			first(but(starting("error: ", "error ", "Error: "), isMeaningless)),
		},
	}
}

func npm() family {
	return family{
		programs: "npm yarn pnpm corepack",
		strict: []rule{
			first(holding("Missing script:", "ERR_PNPM_")),
			first(isNpmReason),
			first(but(starting("error "), func(s string) bool { return isMeaningless(s) || strings.Contains(s, "Command failed") })),
		},
	}
}

// isNpmReason matches npm's error lines except those that only frame the reason.
func isNpmReason(s string) bool {
	rest, ok := strings.CutPrefix(s, "npm error ")
	if !ok {
		rest, ok = strings.CutPrefix(s, "npm ERR! ")
	}
	rest = strings.TrimSpace(rest)
	if !ok || rest == "" {
		return false
	}
	for _, p := range [...]string{
		"code ", "errno ", "path ", "syscall ", "command ", "A complete log", "Lifecycle script", "dest ", "file ", "workspace ",
		"location ", "signal ", "Exit status ", "Failed at the ", "This is probably not", "node_modules", "fetch", "This is related",
		"gyp info",
	} {
		if strings.HasPrefix(rest, p) {
			return false
		}
	}
	return true
}

func jvm() family {
	return family{
		programs: "mvn mvnw gradle gradlew java javac kotlinc kotlin sbt scala ant",
		strict: []rule{
			first(func(s string) bool {
				return strings.HasPrefix(s, "[ERROR] ") && (strings.Contains(s, ".java:[") || strings.Contains(s, ".kt:[") || strings.Contains(s, ".kt: (")) ||
					located(s, ".java", ": error: ") || strings.HasPrefix(s, "e: ") && strings.Contains(s, ".kt")
			}),
			surefireReason,
			gradleTestReason,
			last(starting("Caused by: ")),
			first(starting("Exception in thread ")),
			gradleReason,
			first(isMavenReason),
		},
		loose: []rule{first(isException)},
	}
}

// isMavenReason matches Maven's error lines except those that only frame the reason.
func isMavenReason(s string) bool {
	rest, ok := strings.CutPrefix(s, "[ERROR] ")
	if !ok {
		return false
	}
	rest = strings.TrimSpace(rest)
	for _, p := range [...]string{
		"COMPILATION ERROR", "Tests run:", "Failures:", "Errors:", "-> [Help", "To see the full", "Re-run Maven", "For more information",
		"There are test failures", "Please refer to", "[Help ", "See ", "After correcting",
	} {
		if strings.HasPrefix(rest, p) {
			return false
		}
	}
	return strings.ContainsFunc(rest, isLetter)
}

func ruby() family {
	return family{
		programs: "ruby rspec rake rails bundle bundler gem minitest rubocop",
		strict: []rule{
			first(starting("Failure/Error:")),
			first(func(s string) bool { return strings.HasSuffix(s, "]:") && strings.Contains(s, ".rb:") }),
			first(func(s string) bool {
				return strings.Contains(s, ".rb:") && strings.HasSuffix(s, ")") && strings.Contains(s, ":in ") && strings.Contains(s, "Error")
			}),
			rakeReason,
			first(func(s string) bool {
				return strings.Contains(s, ".rb:") && holding(": E: ", ": C: ", ": W: ", ": F: ")(s)
			}),
			first(holding("Could not find gem ", "Could not find ", "Bundler::")),
		},
		loose: []rule{first(isException), first(starting("rspec ./"))},
	}
}

func compilers() family {
	return family{
		programs: "gcc g++ cc c++ clang clang++ cmake ninja ld swift swiftc xcodebuild meson bazel zig ctest",
		strict: []rule{
			first(func(s string) bool { return compilerError(s) }),
			first(holding("undefined reference to ", "multiple definition of ", "Undefined symbols for architecture", "duplicate symbol ", "ld: cannot find ")),
			first(starting("CMake Error")),
			first(holding("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "runtime error: ")),
		},
		loose: []rule{
			first(holding(": error: ", ": fatal error: ")),
			first(starting("FAILED: ", "error: ")),
		},
	}
}

func otherLanguages() family {
	return family{
		programs: "dotnet msbuild php phpunit composer mix elixir ghc cabal stack dart flutter",
		strict: []rule{
			first(func(s string) bool {
				return afterNumber(s, ": error CS", ": error MSB", ": error NU", ": error FS", ": error NETSDK")
			}),
			first(starting("Error Message:")),
			first(starting("PHP Fatal error: ", "PHP Parse error: ", "Fatal error: Uncaught", "Failed asserting that ")),
			first(starting("** (")),
		},
		loose: []rule{first(starting("error: ", "Error: ", "ERROR: "))},
	}
}

func git() family {
	return family{
		programs: "git gh hub glab jj",
		strict: []rule{
			first(starting("CONFLICT (")),
			first(starting("remote: error: ", "ERROR: Repository not found", "ERROR: Permission")),
			first(but(holding("Permission denied (", "Host key verification failed", "Could not resolve host"), starting("curl: "))),
			first(starting("! [rejected]", "! [remote rejected]")),
			first(starting("fatal: ")),
		},
		loose: []rule{
			first(starting("error: ", "ERROR: ")),
			first(starting("gh: ", "GraphQL: ", "HTTP ")),
			first(starting("The following paths are ignored", "nothing to commit", "nothing added to commit", "no changes added to commit")),
			first(holding("Please tell me who you are", "unknown flag", "unknown command", "unknown option")),
		},
	}
}

func containers() family {
	return family{
		programs: "docker docker-compose podman buildah kubectl helm terraform tofu pulumi ansible ansible-playbook",
		strict: []rule{
			first(holding("Error response from daemon: ", "Cannot connect to the Docker daemon", "failed to connect to the docker API")),
			first(starting("Error from server", "The connection to the server ", "Unable to connect to the server")),
			first(func(s string) bool { return strings.HasPrefix(s, "fatal: [") && strings.Contains(s, "]: ") }),
		},
		loose: []rule{
			first(starting("ERROR: failed to ", "failed to solve: ")),
			first(starting("Error: ", "error: ", "ERROR: ")),
		},
	}
}

func network() family {
	return family{
		programs: "curl wget ssh scp rsync psql mysql sqlite3 redis-cli aws gcloud az",
		strict: []rule{
			first(starting("curl: (")),
			first(holding("An error occurred (")),
			first(starting("ssh: ", "rsync error: ", "ERROR: (gcloud.")),
		},
		loose: []rule{first(holding("ERROR: ", "Error: ", "ERROR ", "error: "))},
	}
}

func makeFamily() family {
	return family{
		programs: "make gmake bmake just mise task",
		strict: []rule{
			first(func(s string) bool { return strings.Contains(s, ": *** ") && !strings.Contains(s, "] Error ") }),
			first(starting("error: Justfile", "error: Recipe ", "mise ERROR no task")),
		},
	}
}
