"""What is public, as a listing that is frozen and as a page; both are written by one command.

python -m tests.release.api
"""

import ast
import inspect
import re
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import evgp
from evgp import _defaults, errors

ROOT = Path(__file__).parents[2]
LISTING = Path(__file__).parent / "api.txt"
PAGE = ROOT / "docs" / "api.md"

# Rooms lend each other more names than these; those may change at any time.
PUBLIC: dict[str, tuple[str, ...]] = {
    "evgp": tuple(
        name for name in evgp.__all__ if not isinstance(getattr(evgp, name), ModuleType)
    ),
    "evgp.architectures": ("Choice", "candidates"),
    "evgp.bounds": ("Ceiling", "ceiling", "certify"),
    "evgp.comparison": ("DatasetSource", "Protocol", "read_rows", "summarise"),
    "evgp.audits": ("Audit", "Confirmation", "confirm"),
    "evgp.datasets": (
        "Dataset", "Known", "load", "load_csv", "locate", "look", "names", "subset",
    ),
    "evgp.errors": tuple(errors.__all__),
    "evgp.loop": ("Round",),
    "evgp.metrics": (
        "MetricError", "accuracy", "area", "bias", "calibration_error", "disagreement", "mse",
        "nll", "output_entropy", "output_variance", "pearson", "spearman", "variances",
    ),
    "evgp.nets": ("Finite", "LeakyRelu", "wide_resnet", "without_batchnorm"),
    "evgp.posterior": ("Prediction", "ntkgp", "trained"),
    "evgp.search": ("Exact", "Exchange", "Lazy", "Sharded", "Stochastic", "TwoRounds"),
    "evgp.selection": ("Request",),
    "evgp.strategies": (
        "BADGE", "BAIT", "BatchBALD", "CoreSet", "DropQuery", "EVGP", "EVGPMS", "Entropy",
        "Gradients", "Hybrid", "KMeans", "KMeansPlusPlus", "LCMD", "MLMOC", "Margin", "MaxHerding",
        "MaxVariance", "ProbCover", "Random", "Setting", "Strategy", "Thinned",
        "TypiClust", "strategy_named",
    ),
    "evgp.testing": ("Truth", "check_criterion", "check_kernel", "check_strategy"),
    "evgp.training": ("Ensemble", "Recipe"),
    "evgp.integrations.dask": ("connect", "executor"),
    "evgp.integrations.modal": ("query_strategy",),
    "evgp.integrations.skactiveml": ("EVGPQuery",),
    "evgp.integrations.sklearn": ("EVGPSelector",),
}  # fmt: skip

_TOP = """# Public names

Generated from the docstrings by `python -m tests.release.api`. These names, their arguments and
their fields are [stable](release.md#versions); a test compares their signatures with
`tests/release/api.txt`, so no change goes unnoticed. Everything else that can be imported may
change at any time. [In Python](python.md) has examples, and [the command line](cli.md) lists the
options of the command, which are stable too.

Names are loaded on first use, so `import evgp` does not import torch. Errors are subclasses of
`evgp.EvgpError` and of the built-in error that fits (`ValueError`, `MemoryError`, ...).
"""


def listing() -> str:
    """Every public name with its signature, as it is written in the sources."""
    lines = [
        "# Public names and signatures. After a deliberate change: python -m tests.release.api"
    ]
    for module, names in PUBLIC.items():
        for name in names:
            lines += ["", *_described(module, name)]
    return "\n".join(lines) + "\n"


def page() -> str:
    """Every public name in a table, then with its signature and docstring, as Markdown."""
    parts, shown = [_TOP], set()
    for module, names in PUBLIC.items():
        about = (inspect.getdoc(import_module(module)) or "").splitlines()[0]
        rows = [f"| `{name}` | {_line(module, name)} |" for name in names]
        parts.append("\n".join([f"## {module}", "", about, "", "| | |", "|---|---|", *rows, ""]))
        for name in names:
            thing = getattr(import_module(module), name)
            if thing not in shown:  # some names are at home in two places
                parts.append(_section(module, name))
            shown.add(thing)
    return "\n".join(parts)


def _section(module: str, name: str) -> str:
    """A heading, what is public about the name, and what its docstring says before examples."""
    lines = [_wrapped(line) for line in _described(module, name)]
    parts = _docstring(module, name).split("\n\n")
    reported = [_markdown(part) for part in parts if ">>> " not in part]
    return "\n".join(
        [f"### `{module}.{name}`", "", "```text", *lines, "```", "", "\n\n".join(reported), ""]
    )


def _markdown(part: str) -> str:
    """A part of a docstring; a section of numpydoc, whose rule Markdown would take for a heading,
    becomes a list.
    """
    title, _, rest = part.partition("\n")
    rule, _, body = rest.partition("\n")
    if not rule or set(rule) != {"-"}:
        return part
    items: list[str] = []
    for line in body.splitlines():
        if not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            quoted = ", ".join(f"`{word}`" for word in names.split(", "))
            items.append(f"- {quoted}" + (f" ({kind}):" if kind else ":"))
        else:
            items[-1] += f" {line.strip()}"
    return "\n".join([f"{title}:", "", *items])


def _wrapped(line: str, width: int = 96) -> str:
    """A long signature with one argument a line."""
    if len(line) <= width or "(" not in line:
        return line
    deep, cuts, quoted = 0, [], False
    for at, letter in enumerate(line):
        quoted ^= letter == "'"
        deep += 0 if quoted else (letter in "([{") - (letter in ")]}")
        if deep == 1 and not quoted and letter in "(,":
            cuts.append(at + 1)
        if deep == 0 and letter == ")" and not quoted:
            cuts.append(at)
            break
    edge = " " * (len(line) - len(line.lstrip()))
    parts = [line[a:b].strip() for a, b in pairwise(cuts)]
    inner = [f"{edge}    {part}" for part in parts]
    return "\n".join([line[: cuts[0]], *inner, f"{edge}{line[cuts[-1] :]}"])


def _docstring(module: str, name: str) -> str:
    return inspect.getdoc(getattr(import_module(module), name)) or ""


def _line(module: str, name: str) -> str:
    return " ".join(_docstring(module, name).split("\n\n")[0].split()).replace("|", "\\|")


def _described(module: str, name: str) -> list[str]:
    thing = getattr(import_module(module), name)
    node = _definition(thing)
    if isinstance(node, ast.FunctionDef):
        return [_with_values(f"{module}.{_signature(node, name)}")]
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    marks = [f"@{ast.unparse(decorator)}" for decorator in node.decorator_list]
    lines = [*marks, f"{module}.{name}" + (f"({bases})" if bases else "")]
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and not ast.unparse(part.target).startswith("_"):
            lines.append(f"    {ast.unparse(part)}")
        if isinstance(part, ast.Assign) and not ast.unparse(part.targets[0]).startswith("_"):
            lines.append(f"    {ast.unparse(part)}")
        if isinstance(part, ast.FunctionDef) and _is_public(part.name):
            marks = [f"@{ast.unparse(decorator)} " for decorator in part.decorator_list]
            lines.append(f"    {''.join(marks)}{_signature(part, part.name)}")
    return [_with_values(line) for line in lines]


def _with_values(line: str) -> str:
    """A line of a definition with the values of shared defaults in place of their names."""
    for name, value in vars(_defaults).items():
        line = re.sub(rf"(= ?){name}\b", rf"\g<1>{value!r}", line) if name.isupper() else line
    return line


def _is_public(method: str) -> bool:
    """What can be called, by its name or by a sign such as len() or []; how it looks may change."""
    if method.startswith("__") and method.endswith("__"):
        return method not in ("__post_init__", "__repr__", "__str__")
    return not method.startswith("_")


def _signature(node: ast.FunctionDef, name: str) -> str:
    parameters = f"({ast.unparse(node.args)})"
    return f"{name}{parameters}" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def _definition(thing: object) -> ast.ClassDef | ast.FunctionDef:
    plain = inspect.unwrap(thing) if inspect.isfunction(thing) else thing
    for node in reversed(_parsed(inspect.getsourcefile(plain)).body):  # type: ignore[arg-type]
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == plain.__name__:  # type: ignore[attr-defined]
            return node
    raise LookupError(f"{thing} is not defined at the top of its file")


@cache
def _parsed(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


if __name__ == "__main__":
    LISTING.write_text(listing(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
