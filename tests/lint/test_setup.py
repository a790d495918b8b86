"""Set-up leaves no file that forbids services, even when it is killed."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

# Runs in a mount namespace of its own, where the two folders are empty. `apt-get` is a program that
# notes whether services are forbidden, names its parent's process, and waits until it may end.
BODY = r"""
mkdir -p /etc/postgresql-common
for folder in /usr/sbin /etc/postgresql-common; do mount -t tmpfs none $folder; done
mkdir bin && cat >bin/apt-get <<'END'
#!/bin/sh
/usr/sbin/policy-rc.d; echo "forbidden $?" >>noted
echo $PPID >parent
while [ ! -e go ]; do sleep 0.05; done
END
chmod +x bin/apt-get
export PATH=$PWD/bin:$PATH
"""


def in_namespace(folder: Path, script: str) -> str:
    command = ["unshare", "--mount", "bash", "-euc", BODY + script]
    environment = {**os.environ, "SCRIPTS": str(SCRIPTS)}
    done = subprocess.run(
        command,
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


INSTALL = 'bash -euc ". $SCRIPTS/packages.sh; apt_install x"'
LEFT = "ls /usr/sbin /etc/postgresql-common/createcluster.d"
NOTHING = "/etc/postgresql-common/createcluster.d:\n\n/usr/sbin:\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
def test_services_are_forbidden_while_apt_runs_and_not_after(tmp_path: Path) -> None:
    assert in_namespace(tmp_path, f"touch go; {INSTALL}; cat noted; {LEFT}") == (
        "forbidden 101\n" + NOTHING
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
def test_a_killed_set_up_leaves_no_file_once_apt_has_ended(tmp_path: Path) -> None:
    kill = """
until [ -s parent ]; do sleep 0.05; done
kill -KILL $(cat parent); ls /usr/sbin; touch go
for i in $(seq 100); do [ -e /usr/sbin/policy-rc.d ] || break; sleep 0.05; done
"""
    assert in_namespace(tmp_path, f"{INSTALL} & {kill} {LEFT}") == "policy-rc.d\n" + NOTHING


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
def test_the_file_of_somebody_else_stays(tmp_path: Path) -> None:
    theirs = (
        "printf '#!/bin/sh\\nexit 7\\n' >/usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d"
    )
    printed = in_namespace(tmp_path, f"{theirs}; touch go; {INSTALL}; cat noted; ls /usr/sbin")
    assert printed == "forbidden 7\npolicy-rc.d\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
def test_the_file_of_a_set_up_that_was_killed_with_its_group_is_removed_by_the_next(
    tmp_path: Path,
) -> None:
    add = "ADDED=(); add_for_now 755 /usr/sbin/policy-rc.d '#!/bin/sh' 'exit 101'"
    stale = f'bash -euc ". $SCRIPTS/packages.sh; {add}"'
    printed = in_namespace(tmp_path, f"{stale}; ls /usr/sbin; touch go; {INSTALL}; {LEFT}")
    assert printed == "policy-rc.d\n" + NOTHING
