#!/bin/sh
# run.sh: starts bin/belfry on a free port, has its OpenAPI document judged, generates a client in Python and one in TypeScript from it, has
# the types of both checked, and uses each against the server.
set -eu
cd "$(dirname "$0")/../.."
root=$(pwd)
tools=$root/.ci/cache/clients/bin
types=$root/tests/clients/typescript/node_modules

work=$(mktemp -d)
server=
finish() {
	if [ -n "$server" ]; then
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
	fi
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

TOKEN=$(bin/belfry token create -o json --scope admin --name clients --data "$work/data" | sed -n 's/.*"token": "\(.*\)".*/\1/p')
bin/belfry secret new-key "$work/secrets.key" >/dev/null

# With all that adds to the document.
bin/belfry serve -o json --data "$work/data" --listen 127.0.0.1:0 --auth required --allow-exec --secrets-key-file "$work/secrets.key" \
	--remote-queue far --log-format json >"$work/started" 2>"$work/log" &
server=$!
tries=0
while ! grep -q '^}' "$work/started"; do
	tries=$((tries + 1))
	if [ "$tries" -gt 3000 ] || ! kill -0 "$server" 2>/dev/null; then
		echo "belfry serve did not start:" >&2
		cat "$work/log" >&2
		exit 1
	fi
	sleep 0.1
done
ADDRESS=$(sed -n 's/.*"address": "\(.*\)".*/\1/p' "$work/started")
export ADDRESS TOKEN

mkdir "$work/python" "$work/typescript"
"$tools/python" - "$work/openapi.json" <<'END'
import os, sys, urllib.request
request = urllib.request.Request(os.environ["ADDRESS"] + "/openapi.json", headers={"Authorization": "Bearer " + os.environ["TOKEN"]})
with urllib.request.urlopen(request, timeout=300) as answer, open(sys.argv[1], "wb") as file:
    file.write(answer.read())
END
"$tools/openapi-spec-validator" "$work/openapi.json"

cp tests/clients/python/use.py "$work/python"
(
	cd "$work/python"
	PATH=$tools:$PATH
	openapi-python-client generate --path "$work/openapi.json" --meta none --output-path belfry_client --fail-on-warning
	# client.py is the generator's own, the same for every document, and mypy finds fault with how it leaves its contexts.
	printf '[mypy]\n[mypy-belfry_client.client]\nignore_errors = True\n' >mypy.ini
	mypy --cache-dir "$work/mypy" belfry_client
	mypy --cache-dir "$work/mypy" --strict use.py
	python use.py
)

cp tests/clients/typescript/use.ts tests/clients/typescript/tsconfig.json tests/clients/typescript/package.json "$work/typescript"
ln -s "$types" "$work/typescript/node_modules"
(
	cd "$work/typescript"
	node_modules/.bin/openapi-typescript "$work/openapi.json" -o belfry.d.ts
	node_modules/.bin/tsc -p .
	node built/use.js
)
echo "clients: 2 passed, 0 failed"
