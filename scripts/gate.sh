# The mechanism of scripts/test: runs stages, times them, and says what passed. Source it after lib.sh.
# shellcheck shell=bash
#
# A stage prints what it finds and returns whether it passed. It calls `skip` for each thing that it
# cannot do on this machine, and `second_attempt` for each test that passed only when it was repeated.
# $TMPDIR is a directory of this run's own.

GROUP=gate                          # the group that is run when no stage is named: gate, long or quick
declare -a ONLY=()                  # the stages that are named
declare -a STAGES=() TIMES=() FAILED=()
BEHIND_PROCESS=                     # the process of begin_behind

skip() { say "skipped: $1" && say "$1" >>"$STREAMFS_SKIPPED"; }
second_attempt() { say "$1" >>"$TMPDIR/second-attempts"; }

# budget <seconds> <seconds with --long>
budget() { [[ -z ${STREAMFS_LONG:-} ]] && say "$1" || say "$2"; }

# is_wanted <groups> <id>: whether this run has the stage, by name or else by group.
is_wanted() {
  if [[ ${#ONLY[@]} -gt 0 ]]; then
    [[ " ${ONLY[*]} " == *" $2 "* ]]
  else
    [[ ",$1," == *",$GROUP,"* ]]
  fi
}

# run_stage <name> <budget in seconds> <command>...: records the time and the result, and goes on.
run_stage() {
  local name=$1 budget=$2 start=$SECONDS result=ok
  shift 2
  say "=== $name"
  "$@" || { result=FAILED && FAILED+=("$name"); }
  local spent=$((SECONDS - start))
  [[ $spent -le $budget ]] || result+=", over its budget of $budget s"
  TIMES+=("$(printf '%5d s  %-36s %s' "$spent" "$name" "$result")")
}

# required <name> <budget in seconds> <command>...: ends the run when it fails.
required() {
  local before=${#FAILED[@]}
  run_stage "$@"
  [[ ${#FAILED[@]} -eq $before ]] || finish
}

# stage <groups> <id> <name> <budget in seconds> <command>...: runs the stage if this run wants it.
# With LISTING set it only records the stage.
stage() {
  if [[ -n ${LISTING:-} ]]; then
    STAGES+=("$(printf '%-12s %-10s %s' "$2" "${1%%,*}" "$3")")
  elif is_wanted "$1" "$2"; then
    run_stage "$3" "$4" "${@:5}"
  fi
}

# know_stages: calls the caller's `stages`, fills STAGES, and ends the program (2) if ONLY names no stage.
know_stages() {
  local name
  LISTING=1 stages
  for name in "${ONLY[@]}"; do
    printf '%s\n' "${STAGES[@]}" | grep -q "^$name " ||
      { printf '%s: no stage is called %s; --list prints their names\n' "${0##*/}" "$name" >&2 && exit 2; }
  done
}

# behind <job>...: runs jobs one after the other; leaves the output and the exit code of each in $TMPDIR.
behind() {
  local job code start
  for job in "$@"; do
    code=0 start=$SECONDS
    # shellcheck disable=SC2086  # a job is a command with its words
    ($job) >"$TMPDIR/$job.log" 2>&1 || code=$?
    echo "($((SECONDS - start)) s behind other stages)" >>"$TMPDIR/$job.log"
    echo "$code" >"$TMPDIR/$job.new" && mv "$TMPDIR/$job.new" "$TMPDIR/$job.code"
  done
}

# begin_behind <job>...: starts jobs that look at no clock and make no mount or loop device, in the
# order in which stages ask for them by join_behind. They use the processor time that stages leave.
begin_behind() {
  # The scheduler compares sessions (autogroups) first and looks at nice only inside one.
  # Leaks are not looked for: mounts and loop devices that appear meanwhile belong to stages.
  setsid bash -c "$(declare -f); $(declare -p ROOT BUILD STAMPS VENV "${!VM_@}")
    watched() { \"\$@\"; }
    { echo 19 >/proc/\$\$/autogroup; } 2>/dev/null; behind \"\$@\"" "$0" "$@" &
  BEHIND_PROCESS=$!
}

# join_behind <job>: waits for a job, at normal priority, and prints its output. Runs the job itself
# where begin_behind was not called.
join_behind() {
  if [[ -z $BEHIND_PROCESS ]]; then
    # shellcheck disable=SC2086  # a job is a command with its words
    ($1)
    return
  fi
  { echo 0 >"/proc/$BEHIND_PROCESS/autogroup"; } 2>/dev/null || true
  while [[ ! -f $TMPDIR/$1.code ]] && kill -0 "$BEHIND_PROCESS" 2>/dev/null; do sleep 0.2; done
  { echo 19 >"/proc/$BEHIND_PROCESS/autogroup"; } 2>/dev/null || true
  cat "$TMPDIR/$1.log"
  [[ -f $TMPDIR/$1.code && $(<"$TMPDIR/$1.code") -eq 0 ]]
}

# alone <command>...: runs a command while the jobs of begin_behind are stopped.
alone() {
  local code=0
  [[ -z $BEHIND_PROCESS ]] || pkill -STOP -s "$BEHIND_PROCESS" || true
  "$@" || code=$?
  [[ -z $BEHIND_PROCESS ]] || pkill -CONT -s "$BEHIND_PROCESS" || true
  return "$code"
}

# begin_run: makes $TMPDIR, which is removed at the end with everything in it.
begin_run() {
  TMPDIR=$(mktemp -d /tmp/streamfs-test.XXXXXX)
  chmod 755 "$TMPDIR" # an ordinary user's mounts are tested in it
  export TMPDIR STREAMFS_SKIPPED=$TMPDIR/skipped
  trap end_run EXIT
}

end_run() {
  [[ -z $BEHIND_PROCESS ]] || pkill -KILL -s "$BEHIND_PROCESS" || true
  rm -rf --one-file-system "$TMPDIR"
}

# noted <file>: prints the lines of a file in $TMPDIR, each once, and sets COUNT to their number.
noted() {
  COUNT=0
  [[ -s $TMPDIR/$1 ]] || return 0
  COUNT=$(wc -l <"$TMPDIR/$1")
  say "=== ${1/-/ }" && sort "$TMPDIR/$1" | uniq -c
}

# finish: prints the times and one closing line, and exits: 0 if no stage failed. The line says
# "All passed" only for a whole gate in which nothing was skipped and nothing was repeated.
finish() {
  local exceptions='' COUNT
  say "=== times"
  printf '%s\n' "${TIMES[@]}"
  say "$(printf '%5d s  in all' "$SECONDS")"
  [[ ${#ONLY[@]} -eq 0 && $GROUP != quick ]] || exceptions+="; not the whole gate"
  noted skipped
  [[ $COUNT -eq 0 ]] || exceptions+="; $COUNT skipped"
  noted second-attempts
  [[ $COUNT -eq 0 ]] || exceptions+="; $COUNT only at a second attempt"
  [[ ${#FAILED[@]} -eq 0 ]] || die "failed: $(printf '%s; ' "${FAILED[@]}")"
  if [[ -z $exceptions ]]; then say "All passed."; else say "Passed${exceptions/;/:}."; fi
  exit 0
}
