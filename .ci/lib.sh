# What the scripts that install tools share. A script changes into its folder, names the folder .ci as ci, and sources this.
#
# Tools lie outside of the clone, by version, so that each clone on a machine finds what another has installed. `make clean-tools` removes them.
tools=${XDG_CACHE_HOME:-$HOME/.cache}/belfry
mkdir -p "$tools"

# alone NAME: until this script ends no other one installs NAME. Where there is no flock, as on macOS, nobody is kept out.
alone() {
	command -v flock >/dev/null || return 0
	exec 8>"$tools/$1.lock"
	flock 8
}

# venv_folder NAME REQUIREMENTS: prints where the virtual environment with exactly the packages of a file lies.
venv_folder() {
	echo "$tools/$1-$(cksum <"$2" | cut -d ' ' -f 1)"
}

# venv NAME REQUIREMENTS WHAT [PYTHON]: makes sure of that environment, after saying WHAT it will install.
venv() {
	folder=$(venv_folder "$1" "$2")
	! whole "$folder" || return 0
	alone "$1"
	! whole "$folder" || return 0
	echo "Will install into $folder: $3."
	rm -rf "$folder"
	"${4:-python3}" -m venv "$folder"
	"$folder/bin/python" -m pip install --quiet --no-deps --disable-pip-version-check -r "$2"
	: >"$folder/complete"
}

# whole FOLDER: an environment is of no use once the Python that it was made with is gone.
whole() {
	[ -f "$1/complete" ] && "$1/bin/python" -c '' 2>/dev/null
}

# at LINK FOLDER: has a place in the clone lead to a folder of tools.
at() {
	[ -L "$1" ] || rm -rf "$1"
	mkdir -p "$(dirname "$1")"
	ln -sfn "$2" "$1"
}
