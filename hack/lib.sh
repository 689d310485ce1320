# Functions that the scripts here have in common; they source this file.

groups=()

# start_group starts a command as a process group of its own, in the background.
start_group() {
	set -m
	"$@" &
	groups+=($!)
	set +m
}

# end_groups ends what start_group started, with SIGKILL after so many seconds: as a trap of EXIT it leaves nothing running.
end_groups() {
	local group deadline=$((SECONDS + $1))
	[[ -z ${ticker:-} ]] || end_ticker
	for group in "${groups[@]}"; do
		kill -- "-$group" 2>/dev/null
	done
	for group in "${groups[@]}"; do
		while kill -0 -- "-$group" 2>/dev/null && ((SECONDS < deadline)); do
			sleep 0.1
		done
		kill -KILL -- "-$group" 2>/dev/null
	done
	((${#groups[@]} == 0)) || wait "${groups[@]}" 2>/dev/null
}

# start_ticker runs a command every 8 s, until end_ticker or the end of the script: it prints what is going on, so that no one waits in
# silence.
start_ticker() {
	local parent=$BASHPID
	(
		exec {never}<> <(:) # a read that times out waits without a process of its own, which could outlive this one
		while ! read -rt 8 -u "$never" _ && kill -0 "$parent" 2>/dev/null; do
			"$@"
		done
	) &
	ticker=$!
	disown "$ticker" # a wait in the script does not wait for it
}

end_ticker() {
	kill "$ticker" 2>/dev/null || true
	ticker=
}

# print_last_line prints what runs, for how long, and the last line of its output. Arguments: NAME START FILE
print_last_line() {
	printf '%s: %d s: %s\n' "$1" $((SECONDS - $2)) "$(tail -qn 1 "$3" | cut -c 1-120)" >&2
}

# with_clock runs a command, and prints every 8 s for how long it has run, beside what the command prints. Arguments: NAME COMMAND...
with_clock() {
	local name=$1 code=0 ticker
	shift
	start_ticker print_time_of "$name" "$SECONDS"
	"$@" || code=$?
	end_ticker
	return "$code"
}

print_time_of() { printf '%s: %d s\n' "$1" $((SECONDS - $2)) >&2; }

# with_progress runs a command, and prints every 8 s the last line of what it printed; all of that only if it fails.
# Arguments: NAME COMMAND...
with_progress() {
	local name=$1 code=0 printed ticker
	shift
	printed=$(mktemp)
	echo "$name" >&2
	start_ticker print_last_line "$name" "$SECONDS" "$printed"
	"$@" >"$printed" 2>&1 </dev/null || code=$?
	end_ticker
	((code == 0)) || cat "$printed" >&2
	rm -f "$printed"
	return "$code"
}

# install_packages installs Debian packages, and reports whether that could be done: it takes root and apt-get. Of several
# scripts at once, one installs.
install_packages() {
	((EUID == 0)) && command -v apt-get >/dev/null || return 1
	# Without a network each command fails once and at once, rather than after retries.
	local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends -o Acquire::Retries=0 -o APT::Update::Error-Mode=any)
	(
		flock -n 9 || { echo 'waiting for another installation of packages' && flock 9; }
		echo "installing $*"
		{ have_candidates "$@" && "${apt[@]}" install "$@"; } || { "${apt[@]}" update && "${apt[@]}" install "$@"; }
	) 9>/run/phoneproof-packages.lock >&2
}

# have_candidates reports whether apt's lists name a version of each package.
have_candidates() {
	local package
	for package in "$@"; do
		LC_ALL=C apt-cache policy "$package" | grep -q '^  Candidate: [^(]' || return
	done
}

# processor_time prints the processor time, in seconds, of the processes that a process has started and that have ended.
processor_time() {
	local stat
	read -ra stat <"/proc/$1/stat" # cutime and cstime are in hundredths of a second
	echo $(((stat[15] + stat[16]) / 100))
}

# stolen_time prints the seconds for which the machine's processors were given to other machines of its host since it was started.
stolen_time() {
	local cpu
	{ read -ra cpu </proc/stat; } 2>/dev/null # in hundredths of a second, of all processors
	echo $((${cpu[8]:-0} / 100))
}

# disk_wait prints the seconds since the machine was started in which something waited for a disk, if the kernel measures that.
disk_wait() {
	local pressure
	{ read -r pressure </proc/pressure/io; } 2>/dev/null || pressure='total=0'
	echo $((${pressure##*total=} / 1000000))
}

stolen_before=$(stolen_time) disk_wait_before=$(disk_wait)

# print_time prints how long the script has run, and the processor time of what it ran, beside its budget; and what it lacked: a red
# test of a run for which the machine was slow looks different from one of a run for which it was not.
print_time() {
	printf '%s: %d s, %d s of processor time, %d s stolen by other machines, %d s with a wait for the disk; budget on 2 cores: %s\n' \
		"$1" "$SECONDS" "$(processor_time $$)" $(($(stolen_time) - stolen_before)) $(($(disk_wait) - disk_wait_before)) "$2"
}
