# What the scripts of this folder share. Each emulator has one script, NAME, with the verbs
#   install   fetch what it needs, at exact versions, after saying so; nothing to do once it stands
#   start     start it on the loopback of this network namespace, and wait until it listens
#   stop      stop it, by its process ID
# A script says at its top: name, port (a fixed one: localstack/test gives each run a network of its own), and then sources this.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
ci=$here/../.ci
# shellcheck source=../.ci/lib.sh
. "$ci/lib.sh"
programs=$tools/emulators # what is installed
cache=$ci/cache/emulators # what runs here has its logs, process IDs and data in
mkdir -p "$programs" "$cache"

# java_tools makes sure of a Java that runs the emulators, and of Maven, which fetches them.
java_tools() {
	missing=
	command -v java >/dev/null || missing="$missing default-jre-headless"
	command -v mvn >/dev/null || missing="$missing maven"
	# shellcheck disable=SC2086 # a list of packages
	[ -z "$missing" ] || "$ci/system" $missing
	major=$(java -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p')
	if [ "${major:-0}" -lt 17 ]; then
		echo "$name needs Java 17 or newer, and java is of version ${major:-unknown}." >&2
		return 1
	fi
}

# jars GROUP ARTIFACT VERSION: fetches an artifact and all that it needs into $programs/ARTIFACT-VERSION, checksums verified.
# The folder has its name only when it is complete.
jars() {
	folder=$programs/$2-$3
	[ -d "$folder" ] && return
	java_tools
	alone "$2"
	[ -d "$folder" ] && return
	echo "Will fetch $1:$2:$3 and what it needs with Maven, some 50 MB, into $programs."
	rm -rf "$folder.part"
	mkdir -p "$folder.part"
	cat >"$folder.part/pom.xml" <<-END
		<project xmlns="http://maven.apache.org/POM/4.0.0">
		<modelVersion>4.0.0</modelVersion>
		<groupId>belfry</groupId><artifactId>emulator</artifactId><version>1</version>
		<dependencies><dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version></dependency></dependencies>
		</project>
	END
	(cd "$folder.part" && mvn --quiet --batch-mode --strict-checksums \
		org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DincludeScope=runtime -DoutputDirectory=.)
	if [ ! -f "$folder.part/$2-$3.jar" ]; then
		echo "Maven fetched no $2-$3.jar." >&2
		return 1
	fi
	mv "$folder.part" "$folder"
}

# go_program PACKAGE VERSION: builds a program of a Go module into $programs/PROGRAM-VERSION, checksums verified.
go_program() {
	folder=$programs/${1##*/}-$2
	[ -d "$folder" ] && return
	alone "${1##*/}"
	[ -d "$folder" ] && return
	echo "Will build $1 v$2 with Go, in a minute, into $programs."
	rm -rf "$folder.part"
	mkdir -p "$folder.part"
	(cd "$folder.part" && GOFLAGS='' GOBIN=$folder.part "${GO:-go}" install "$1@v$2")
	mv "$folder.part" "$folder"
}

# listening tells whether somebody in this network namespace listens on $port.
listening() {
	grep -q ":$(printf %04X "$port") [0-9A-F]*:0000 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# start COMMAND...: starts it, with its output in a log, and waits until it listens, 60 s at most.
start() {
	if listening; then
		echo "$name: somebody listens on port $port already." >&2
		return 1
	fi
	"$@" >"$cache/$name.log" 2>&1 &
	pid=$!
	echo "$pid" >"$cache/$name.pid"
	tries=0
	until listening; do
		tries=$((tries + 1))
		if [ "$tries" -gt 600 ] || ! kill -0 "$pid" 2>/dev/null; then
			echo "$name did not start:" >&2
			tail -20 "$cache/$name.log" >&2
			stop
			return 1
		fi
		sleep 0.1
	done
}

# stop ends what start started, and waits until it is gone. An old process ID may be somebody else's by now, or of another
# process namespace: only a process of what was installed is ended.
stop() {
	[ -f "$cache/$name.pid" ] || return 0
	pid=$(cat "$cache/$name.pid")
	rm -f "$cache/$name.pid"
	grep -q "$tools" "/proc/$pid/cmdline" 2>/dev/null || return 0
	kill "$pid" 2>/dev/null || return 0
	tries=0
	while kill -0 "$pid" 2>/dev/null; do
		tries=$((tries + 1))
		[ "$tries" -le 50 ] || kill -9 "$pid" 2>/dev/null || true
		sleep 0.1
	done
}

usage() {
	echo "usage: localstack/$name install|start|stop" >&2
	exit 2
}
