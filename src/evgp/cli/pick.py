"""`evgp pick`: rank the rows of a table, or the images of a folder, to label first."""

from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from evgp.cli._options import PickOptions, with_options
from evgp.cli._output import Meter, guarded, note, progress, show, show_json, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evgp._executor import Executor
    from evgp.datasets import PoolData


@guarded
@with_options(PickOptions)
def pick(options: PickOptions) -> None:
    """Pick the rows or images of POOL that are most worth labelling, best first.

    Prints the rank, id (or row number, from 0), gain and remaining variance of each pick: as a
    table on a terminal, tab-separated in a pipe. The first N picks are a good batch of size N.

    \b
    Examples:
      evgp pick pool.csv -k 100 --id image -o picks.csv --report report.html
      evgp pick pool.parquet --costs minutes --budget 480 --drop label
      evgp pick pool.csv -k 50 --labelled picks.csv --test test.csv --json
      evgp pick embeddings.npy -k 1000 --features raw
      evgp pick mails.parquet -k 100 --text subject,body --embed models/all-MiniLM-L6-v2
      evgp pick images/ -k 100 --network cnn --report report.html --copy-to picks/
      evgp pick pool.npz -k 100 --network my_package.nets:build --weights net.safetensors
      evgp pick folder-of-parquet/ -k 1000 --memory 2GB -o picks.csv
      evgp pick folder-of-parquet/ -k 1000 --dask tcp://10.0.0.1:8786 --cache /shared/evgp
    """
    from evgp.cli._output import in_flags, noted
    from evgp.cli._picked import PickOutput, check_copies, check_paths, name_of, read_request
    from evgp.selection.plan import planned

    output, report, quiet = options.output, options.report, options.quiet
    check_paths(output, report, (options.pool, options.labelled, options.test))
    if options.copy_to is not None:
        check_copies(options.copy_to, options.pool)
    cluster = nullcontext() if options.dask is None else _on_cluster(options.dask)
    with progress(quiet) as bar, cluster as executor:
        meter = Meter(bar)
        network, request, notes = read_request(options, executor, meter)
        note(notes, quiet=quiet)
        if options.copy_to is not None:
            check_copies(options.copy_to, request.pool)
        selection, more = noted(planned(request).run)
    name = name_of(network, options)
    messages = dict.fromkeys((*more, *map(in_flags, selection.warnings)))
    more = [text for text in messages if text not in notes]
    command = _settings(options, request.pool)
    settings = {**selection.settings, **command, "network": name}
    features = getattr(selection, "_features", ())
    selection = replace(selection, settings=settings)
    picked = PickOutput(selection, request.pool, (*notes, *more), features)
    _, late = noted(lambda: picked.write(output, report, options.memory, options.copy_to))
    picked = replace(picked, notes=(*picked.notes, *late))
    if options.json:
        show_json(picked.document())
    else:
        show(picked.columns())
    note([*more, *late], quiet=quiet)
    if not quiet:
        pace = "" if settings["method"] == "dense" else meter.pace(len(request.x))
        tell(picked.summary(output, report, pace, options.copy_to))


@contextmanager
def _on_cluster(address: str) -> "Iterator[Executor]":
    """Connect to the Dask cluster at an address."""
    from evgp.integrations.dask import connect, executor

    with connect(address) as client:
        yield executor(client)


def _settings(options: PickOptions, pool: "PoolData") -> dict[str, object]:
    """Return the options that are needed to repeat the run."""
    from evgp.datasets.options import READING

    finite = options.network != "mlp"
    files = {
        "labelled_file": options.labelled,
        "test_file": options.test,
        "weights": options.weights,
    }
    return {
        **{name: getattr(options, name) for name in READING if name != "scale"},
        **{name: None if path is None else str(path) for name, path in files.items()},
        "drop": list(pool.options.drop) or None,
        "unit": options.unit if finite else None,
        "draws": options.draws if finite else None,
    }
