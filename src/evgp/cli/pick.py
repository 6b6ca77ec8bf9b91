"""`evgp pick`: from a table or a folder of images to a ranked list of what to label."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evgp.cli._output import Meter, guarded, note, progress, show, show_json, tell
from evgp.cli._wanted import PickOptions, wanting

if TYPE_CHECKING:
    from evgp.cli._asked import PickCall
    from evgp.datasets import PoolData


@guarded
@wanting
def pick(wanted: PickOptions) -> None:
    """Pick the rows or images of POOL that are worth labelling first, best first.

    Prints rank, id (or row number, from 0), gain and the variance left after each pick: a table on
    a terminal, tab-separated in a pipe. Any first part of the list is a sensible smaller batch.

    \b
    Examples:
      evgp pick pool.csv -k 100 --id image -o picks.csv --report report.html
      evgp pick pool.parquet --costs minutes --budget 480 --drop label
      evgp pick pool.csv -k 50 --labelled picks.csv --test test.csv --json
      evgp pick embeddings.npy -k 1000 --features raw
      evgp pick images/ -k 100 --network cnn --report report.html
      evgp pick pool.npz -k 100 --network my_package.nets:build --weights net.safetensors
      evgp pick folder-of-parquet/ -k 1000 --memory 2GB -o picks.csv
      evgp pick folder-of-parquet/ -k 1000 --dask tcp://10.0.0.1:8786 --cache /shared/evgp
    """
    from evgp.cli import _picked
    from evgp.cli._asked import PickCall, PoolView
    from evgp.cli._output import noted
    from evgp.selection.plan import planned

    output, report, quiet = wanted.output, wanted.report, wanted.quiet
    _picked.check_paths(output, report, (wanted.pool, wanted.labelled, wanted.test))
    asked = PickCall.of(wanted)
    with progress(quiet) as bar, asked.reading():
        pool = asked.pool(bar)
    note(pool.notes, quiet=quiet)
    with progress(quiet) as bar, asked.reading(), asked.executor() as executor:
        meter = Meter(bar)
        request, notes = noted(lambda: asked.request(pool, executor=executor, progress=meter))
        note(notes, quiet=quiet)
        selection, more = noted(planned(request).run)
    with asked.reading():
        seen = PoolView.of(pool, selection, shown=report is not None)
    more = list(dict.fromkeys((*more, *selection.warnings)))
    selection = replace(selection, settings={**selection.settings, **_again(wanted, asked, pool)})
    picked = _picked.PickOutput(selection, seen, (*pool.notes, *notes, *more))
    network = asked.described.told(asked.network)
    _, said = noted(lambda: picked.write(output, report, network=network))
    more += said
    picked = replace(picked, notes=(*picked.notes, *said))
    if wanted.json:
        show_json(picked.document())
    else:
        show(picked.columns())
    note(more, quiet=quiet)
    if not quiet:
        tell(picked.told(output, report, meter.told(len(pool))))


def _again(wanted: PickOptions, asked: "PickCall", pool: "PoolData") -> dict[str, object]:
    """What the command was given, so that the run can be repeated from its record."""
    from evgp.nets import Network

    finite = not isinstance(asked.network, Network)
    return {
        "standardise": not wanted.no_standardise,
        "impute": wanted.impute,
        "max_categories": wanted.max_categories,
        "id": wanted.id,
        "drop": list(pool.options.drop) or None,
        "costs": wanted.costs,
        "labelled_file": _text(wanted.labelled),
        "test_file": _text(wanted.test),
        "delimiter": wanted.delimiter,
        "array": wanted.array,
        "image_size": wanted.image_size,
        "network": asked.described.told(asked.network),
        "weights": _text(wanted.weights),
        "unit": wanted.unit if finite else None,
        "draws": wanted.draws if finite else None,
    }


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
