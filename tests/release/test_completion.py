"""Completion, as a real shell asks for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent


def shell(script: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PATH": f"{BIN}:/usr/bin:/bin", "HOME": str(home)}
    command = ["bash", "--norc", *arguments, "-c", script]
    return subprocess.run(
        command, cwd=home, env=env, capture_output=True, text=True, check=True, timeout=120
    )


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("evgp pl", "plan"),
        ("evgp do", "doctor"),
        ("evgp pick --gre", "--greedy"),
        ("evgp pick --greedy ex", "exact exchange"),
        ("evgp nothing-like-this", ""),
        ("evgp pick po", ""),  # the shell itself offers files
    ],
)
def test_bash_is_offered_what_fits(words: str, offered: str, tmp_path: Path) -> None:
    script = f"""
    source <(evgp --show-completion bash)
    COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}
    _evgp_completion evgp
    echo "${{COMPREPLY[*]}}"; complete -p evgp
    """
    text, registered = shell(script, tmp_path).stdout.splitlines()
    assert text == offered
    assert registered == "complete -o default -F _evgp_completion evgp"


def test_bash_has_it_once_it_is_installed(tmp_path: Path) -> None:
    rest = "# mine"
    (tmp_path / ".bashrc").write_text(rest)
    result = shell("evgp --install-completion bash", tmp_path)
    assert ".bash_completions/evgp.sh" in result.stderr and result.stdout == ""
    assert (tmp_path / ".bashrc").read_text().startswith(rest)
    assert "_evgp_completion" in shell("source ~/.bashrc; complete -p evgp", tmp_path).stdout


@pytest.mark.parametrize("name", ["bash", "zsh", "fish", "powershell", "pwsh"])
def test_every_shell_has_a_script(name: str, tmp_path: Path) -> None:
    assert "_EVGP_COMPLETE" in shell(f"evgp --show-completion {name}", tmp_path).stdout


def test_another_shell_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    result = shell("evgp --show-completion tcsh; test $? = 2", tmp_path)
    assert "bash" in result.stderr and "fish" in result.stderr and result.stdout == ""


@pytest.mark.parametrize("how", ["zsh", "fish"])
def test_other_shells_are_answered(how: str, tmp_path: Path) -> None:
    env = f"_EVGP_COMPLETE=complete_{how} _TYPER_COMPLETE_FISH_ACTION=get-args"
    result = shell(f"env {env} _TYPER_COMPLETE_ARGS='evgp pl' evgp", tmp_path)
    assert "plan" in result.stdout and "audit" not in result.stdout
