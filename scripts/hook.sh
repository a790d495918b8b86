# The commit-msg hook of a checkout. Source it after lib.sh.
# shellcheck shell=bash

HOOK_MARK='# Installed by scripts/setup of streamfs; delete this file to commit without it.'

# install_commit_hook: makes git check each commit message with .ci/subjects.py. Leaves alone a hook that
# somebody else wrote, and a checkout whose hooks lie in a folder of its owner's choice (core.hooksPath).
install_commit_hook() {
  local hook
  git -C "$ROOT" rev-parse --git-dir >/dev/null 2>&1 || return 0
  [[ -z $(git -C "$ROOT" config core.hooksPath) ]] || return 0
  hook=$(cd "$ROOT" && realpath -m "$(git rev-parse --git-path hooks/commit-msg)")
  [[ ! -e $hook ]] || grep -qxF "$HOOK_MARK" "$hook" || return 0
  mkdir -p "${hook%/*}"
  cat >"$hook" <<END
#!/bin/sh
$HOOK_MARK
rules=\$(git rev-parse --show-toplevel)/.ci/subjects.py
[ ! -f "\$rules" ] || exec python3 "\$rules" "\$1"
END
  chmod +x "$hook"
}
