#!/usr/bin/env bash
# Takes the pictures of docs/pictures from the demo's invented data: pictures.sh CAIRN
# Needs Chromium (make browser installs it), curl and jq.
set -euo pipefail
cairn=$(realpath "${1:-bin/cairn}")
cd "$(dirname "$0")/../.."
out=$PWD/docs/pictures
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
home=$(go run -C bench -tags pictures,sqlite_fts5,sqlite_math_functions ./demo --cairn "$cairn" --pictures | sed -n 's/^The temporary folder stays: //p')
export HOME=$home CAIRN_HOME=$home/.cairn
"$cairn" serve --http 127.0.0.1:0 2>"$home/serving" &
server=$!
trap 'kill -INT $server; wait $server; rm -rf "$home"' EXIT
until grep -q http "$home/serving"; do kill -0 $server; done
address=$(sed -n 's#.*serving http://\([^ ]*\) .*#\1#p' "$home/serving")
mkdir -p "$out"

# take NAME PAGE WIDTH HEIGHT [dark]
take() {
	local link theme=()
	link=$("$cairn" open --print --http "$address" | sed "s#next=%2F#next=$(jq -rn --arg p "$2" '$p|@uri')#")
	[ "${5:-}" = dark ] && theme=(--blink-settings=preferredColorScheme=0)
	"$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars "${theme[@]}" --window-size="$3,$4" --screenshot="$out/$1.png" "$link" >/dev/null 2>&1
}

session=$(curl -s -H "Authorization: Bearer $("$cairn" http-token)" "http://$address/?format=json" | jq -r '[.groups[0].sessions[] | select(.commits | length > 0)][-1].session_id')
take today / 1280 860
take today-dark / 1280 860 dark
take today-phone / 390 1100
take session "/sessions/$session" 1280 1100
take search '/search?q=why does the refund window test fail' 1280 900
take timeline /timeline 1280 900
take records /records/shop/R002 1280 720
take reservations-dark /reservations 1280 700 dark
take file '/files/shop?path=internal/refund/window.go&line=7' 1280 780
take worth '/worth?period=30d' 1280 900
