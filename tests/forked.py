"""Code in a new process, as `python -c` runs it, without waiting for torch each time.

A process imports the heavy packages once and is forked for every call. It has imported nothing of
evgp by then, and the checks of types that the tests add are not in it.
"""

import atexit
import json
import subprocess
import sys
import tempfile
from pathlib import Path

Made = subprocess.CompletedProcess[str]

SERVER = """
import json, os, sys, traceback, types
import PIL.Image, jaxtyping, numpy, pandas, pyarrow.compute, pyarrow.csv, pyarrow.parquet
import scipy.cluster.hierarchy, scipy.stats, sklearn.cluster, sklearn.linear_model, torch

assert not any(name.split(".")[0] == "evgp" for name in sys.modules)

def run(code, arguments, folder):
    for number, name in (1, "out"), (2, "err"):
        file = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT)
        os.dup2(file, number)
    sys.argv = ["-c", *arguments]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        exec(compile(code, "<string>", "exec"), main.__dict__)
    except SystemExit as error:
        return int(error.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = run(*json.loads(line))
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

_running: list[subprocess.Popen[str]] = []


def python(code: str, *arguments: object) -> Made:
    """Run code with `sys.argv[1:]`: the exit code, and what was printed."""
    if not _running:
        command = [sys.executable, "-c", SERVER]
        _running.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        atexit.register(_end)
    (server,) = _running
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        words = [str(argument) for argument in arguments]
        server.stdin.write(json.dumps([code, words, folder]) + "\n")
        server.stdin.flush()
        ended = server.stdout.readline()
        assert ended, "the process that is forked has ended"
        out, err = (Path(folder, name).read_text(encoding="utf-8") for name in ("out", "err"))
    return Made(["python", "-c", code, *words], int(ended), out, err)


def _end() -> None:
    (server,) = _running
    assert server.stdin is not None and server.stdout is not None
    server.stdin.close()
    server.wait()
    server.stdout.close()
