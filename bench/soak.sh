#!/usr/bin/env bash
# What `make soak` runs: processes killed again and again, processes that compete
# for one store, a server under load, and every fuzz target of the tree. It goes on after a failure,
# prints a line for each step and exits 1 if one failed.
#
#   CAIRN_SOAK_KILLS  how often each kill test kills (default 1000; 0: not at all); that of
#                     mail, with four kinds of victims, twice as often
#   CAIRN_SOAK_MAIL   how long the mix of mail is put on a server (default 10m; 0: not at all)
#   FUZZTIME          how long each fuzz target runs (default 5m; 0: not at all)
#   SOAK_LIMIT        the longest a step besides fuzzing may take (default 60m)
#   SOAK_LOGS         folder for what the steps print (default: a temporary one)
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

kills=${CAIRN_SOAK_KILLS:-1000}
mail=${CAIRN_SOAK_MAIL:-10m}
fuzztime=${FUZZTIME:-5m}
limit=${SOAK_LIMIT:-60m}
logs=${SOAK_LOGS:-$(mktemp -d)}
tags=sqlite_fts5,sqlite_math_functions
failed=0
steps=0
mkdir -p "$logs" || exit 2

# step NAME COMMAND... runs a command and tells how it went; of one that failed
# it shows the end of what it printed. A test that did not run at all has failed.
step() {
  local name=$1 start=$SECONDS result
  shift
  steps=$((steps + 1))
  log=$(printf '%s/%02d.log' "$logs" "$steps")
  if "$@" >"$log" 2>&1 && { ! grep -q 'testing: warning: no tests to run' "$log" || grep -q '^=== RUN' "$log"; }; then
    result=ok
  else
    result=FAILED
    failed=$((failed + 1))
  fi
  printf '%-6s  %5d s  %s\n' "$result" $((SECONDS - start)) "$name"
  if [ "$result" = FAILED ]; then
    tail -n 40 "$log" | sed 's/^/        /'
    printf '        all of it: %s\n' "$log"
  else
    summary "$log"
  fi
}

# summary shows what a log has to tell: seeds, counts and times of tests, figures that
# were held to a bar, with what was asked of each.
summary() {
  grep -E ' (met|NOT MET): ' "$1" | sed 's/^/      /'
  grep -E '^ +[A-Za-z0-9_]+_test\.go:[0-9]+: ' "$1" | sed -E 's/^ +[A-Za-z0-9_]+_test\.go:[0-9]+: /        /' | tail -n 6
  grep -E '^fuzz: elapsed' "$1" | tail -n 1 | sed 's/^/        /'
  return 0
}

tests() { go test -tags "$tags" -count=1 -v -timeout "$limit" "$@"; }

bench() { go -C bench run -tags "$tags" . --cairn "$PWD/bin/cairn" "$@"; }

list_targets() { go test -tags "$tags" -list '^Fuzz' ./...; }

# fuzz_targets reads what list_targets printed and prints "PACKAGE TARGET" lines.
fuzz_targets() {
  awk '
    /^Fuzz/ { found[n++] = $1; next }
    /^ok/   { for (i = 0; i < n; i++) print $2, found[i] }
            { n = 0 }' "$1"
}

if [ "$kills" != 0 ]; then
  export CAIRN_SOAK_KILLS=$kills
  step "writers of a store killed $kills times" tests -run Kill ./internal/store/...
  step "writers of records killed $kills times" tests -run Killed ./internal/record/...
  step "hooks, servers and imports killed $kills times" tests -run Killed -skip KilledWritersOfMail ./cmd/cairn
  step "commits to an archive killed $kills times" tests -run WhateverIsKilled ./internal/archive/...
  step "hubs over SQLite and PostgreSQL killed $kills times" tests -run Killed ./internal/hub/...
  export CAIRN_SOAK_KILLS=$((2 * kills))
  step "writers of mail killed $CAIRN_SOAK_KILLS times" tests -run KilledWritersOfMail ./cmd/cairn
  unset CAIRN_SOAK_KILLS
fi

step "rooms over encrypted stores" tests -run OverEncryptedStores ./internal/store/... ./internal/observation/... ./internal/record/...

export CAIRN_SOAK=1
step "eight processes write to one store for 10 s" tests -run EightProcesses ./internal/store/...
step "readers of an encrypted log beside 20,000 writes" tests -run TestReadersOfAnEncryptedLog ./internal/store/...
step "crowds of hooks beside a server and an import" tests -run 'Writers|HeldUp|TwoImports' ./cmd/cairn
step "logs, histories, archives and the past of records against their models" tests -run 'EqualsAModel|TheLogApplied|AsOfShows|ThePlainQuery|InAnyBatches|NeverMakesSomethingUp' ./internal/store/... ./internal/record/...
step "exports altered at random, and what their imports make" tests -run 'AnImportedExport|AnyLinesOfAnExport|MailInAnyOrder' .
step "a page of a store damaged, 1600 times" tests -run 'TestSalvageLosesNothing' ./internal/store/...
step "300 bits of a store with all four parts flipped, its end cut 50 times" tests -run 'TestAFlippedBitOrACutEnd' ./cmd/cairn
step "every page of a store damaged, plain and encrypted" tests -run 'TestSalvageKeepsEveryRow|TestEncryptedStoreIsSalvaged' ./cmd/cairn
step "three devices and two hubs over PostgreSQL killed for ten minutes" tests -run KilledDevicesAndHubsConverge ./internal/replica
step "PostgreSQL crashes and gets stuck under a hub" tests -run "PostgreSQLCrashes|DatabaseIsStuck|NotReplicated" ./internal/hub/...
step "PostgreSQL fails over under two hubs (Patroni, etcd)" tests -run FailsOver ./internal/hub/...
unset CAIRN_SOAK

CAIRN_SOAK_AGENTS=5m step "eight agents over four worktrees for five minutes, compacted, resumed, replaced and killed" tests -run TestEightAgents ./cmd/cairn

if [ "$mail" != 0 ]; then
  step "the mix of mail for $mail, 4,000 callers at once, then all that was acknowledged" bench --only mail --mail-time "$mail"
  step "mail into Git beside 1,000, 10,000 and 100,000 messages" bench --only mail-archive --mail-archive 100000
  step "memories: entries to hubs and searches, up to 100,000" bench --only memories --memory-entries 100000
fi

if [ "$fuzztime" != 0 ]; then
  step "fuzz targets listed" list_targets
  targets=$(fuzz_targets "$log")
  while read -r package target; do
    [ -n "$target" ] || continue
    step "$target in ${package#cairn/} for $fuzztime" \
      go test -tags "$tags" -run '^$' -fuzz "^$target\$" -fuzztime "$fuzztime" "$package"
  done <<<"$targets"
fi

if [ "$failed" -gt 0 ]; then
  echo "$failed of $steps steps failed; what they printed is in $logs"
  exit 1
fi
echo "all $steps steps passed"
