#!/bin/sh
# run.sh: starts bin/belfry on a free port, with nothing in its data folder but a token, lets schemathesis try the API against
# its own OpenAPI document with that token, and without it where that must be refused, and stops it. Seeded, so that a failure
# comes again. EXAMPLES is how many cases each operation gets at most.
set -eu
cd "$(dirname "$0")/../.."
root=$(pwd)

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

token=$(bin/belfry token create -o json --scope admin --name schemathesis --data "$work/data" | sed -n 's/.*"token": "\(.*\)".*/\1/p')

bin/belfry secret new-key "$work/secrets.key" >/dev/null

# Without --allow-exec: the jobs of the cases are anything at all. Without a rate, which the cases would reach.
bin/belfry serve -o json --data "$work/data" --listen 127.0.0.1:0 --auth required --rate 0 --allow-loopback --secrets-key-file "$work/secrets.key" --log-format json >"$work/started" 2>"$work/log" &
server=$!
tries=0
while ! grep -q '^}' "$work/started"; do
	tries=$((tries + 1))
	if [ "$tries" -gt 100 ] || ! kill -0 "$server" 2>/dev/null; then
		echo "belfry serve did not start:" >&2
		cat "$work/log" >&2
		exit 1
	fi
	sleep 0.1
done
address=$(sed -n 's/.*"address": "\(.*\)".*/\1/p' "$work/started")

# try FLAGS...: tells how many cases it had, or all of its report where it found anything. One worker, in a folder of its own: what earlier
# runs found, or two threads do to each other, would change the cases.
try() {
	mkdir "$work/try"
	if ! (cd "$work/try" && "$root/.ci/venv/bin/st" --config-file "$root/tests/api/schemathesis.toml" run "$address/openapi.json" \
		--header "Authorization: Bearer $token" --seed "${SEED:-1}" --workers 1 --request-timeout 300 --no-color "$@") >"$work/report" 2>&1; then
		cat "$work/report" >&2
		return 1
	fi
	rm -r "$work/try"
	sed -n 's/^ *\([0-9]* generated, .*\)/\1/p' "$work/report"
}

began=$(date +%s)
cases=$(try --checks all --exclude-checks ignored_auth --mode all --phases examples,coverage,fuzzing,stateful --max-examples "${EXAMPLES:-60}")

# Whether an operation can be called without a token, or with a wrong one. An address may give so few wrong ones a second that this has a run of its own, at that pace.
unasked=$(try --checks ignored_auth --mode positive --phases examples,fuzzing,stateful --max-examples 3 --rate-limit 3/s)
if grep -q '"level":"ERROR"' "$work/log"; then
	echo "The server logged errors:" >&2
	grep '"level":"ERROR"' "$work/log" | head -5 >&2
	exit 1
fi
echo "schemathesis: cases: $cases, and without a token $unasked, in $(($(date +%s) - began)) s, no finding"
