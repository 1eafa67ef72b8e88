#!/usr/bin/env bash
# Runs the official MCP conformance suite against cairn's MCP edge, for both
# revisions on the same URL. Exits 1 when a required scenario fails.
# Needs go, npm and the npm registry. Downloads stay in a cache outside the tree:
# $CAIRN_CONFORMANCE_CACHE, or a folder in $TMPDIR. Further arguments go to the
# suite, for instance --verbose.
set -euo pipefail

suite=0.2.0-alpha.12
node=22.23.3
revisions=(2025-11-25 2026-07-28)

here=$(cd "$(dirname "$0")" && pwd)
cache=${CAIRN_CONFORMANCE_CACHE:-${TMPDIR:-/tmp}/cairn-conformance-$(id -u)-$suite}
mkdir -p "$cache"
if [ ! -x "$cache/node_modules/node/bin/node" ] || [ ! -d "$cache/node_modules/@modelcontextprotocol/conformance" ]; then
	npm install --prefix "$cache" --no-audit --no-fund --loglevel=error \
		"node@$node" "@modelcontextprotocol/conformance@$suite"
fi
run() { "$cache/node_modules/node/bin/node" "$@"; }

work=$(mktemp -d)
server=
cleanup() {
	if [ -n "$server" ]; then kill -INT "$server" 2>/dev/null && wait "$server" || true; fi
	rm -rf "$work"
}
trap cleanup EXIT

(cd "$here" && go build -tags conformance -o "$work/server" .)
mkfifo "$work/url"
"$work/server" >"$work/url" 2>"$work/log" &
server=$!
read -r url <"$work/url" || {
	cat "$work/log"
	exit 1
}

# other prints the checks that neither passed nor failed a requirement.
other='
const { readdirSync, readFileSync } = require("fs");
for (const run of readdirSync(process.argv[1])) {
  for (const c of JSON.parse(readFileSync(process.argv[1] + "/" + run + "/checks.json", "utf8"))) {
    if (c.status === "WARNING" || c.status === "SKIPPED") {
      console.log("  " + c.status.toLowerCase() + " " + c.id + ": " + (c.errorMessage || ""));
    }
  }
}'

status=0
for revision in "${revisions[@]}"; do
	echo "=== MCP $revision, suite $suite, $url"
	run "$cache/node_modules/@modelcontextprotocol/conformance/dist/index.js" server --url "$url" \
		--requirements "$revision" --output-dir "$work/$revision" "$@" >"$work/$revision.txt" 2>&1 || status=1
	if grep -q '^=== SUMMARY ===' "$work/$revision.txt"; then
		sed -n '/^=== SUMMARY ===/,$p' "$work/$revision.txt" | tail -n +2
		run -e "$other" "$work/$revision"
	else
		cat "$work/$revision.txt"
		status=1
	fi
done
if [ "$status" -ne 0 ]; then
	echo "required scenarios failed; the server said:"
	cat "$work/log"
fi
exit "$status"
