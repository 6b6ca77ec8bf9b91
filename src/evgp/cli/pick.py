"""`evgp pick`: from a table or a folder of images to a ranked list of what to label."""

from dataclasses import replace
from pathlib import Path

from evgp.cli._output import Meter, guarded, note, progress, show, show_json, tell
from evgp.cli._wanted import Wanted, wanting


@guarded
@wanting
def pick(wanted: Wanted) -> None:
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
    import evgp
    from evgp.cli import _picked
    from evgp.cli._inputs import noted
    from evgp.cli._request import request_of
    from evgp.cli._samples import load
    from evgp.cli._streamed import open_streamed
    from evgp.selection.plan import planned

    output, report, quiet = wanted.output, wanted.report, wanted.quiet
    _picked.check_paths(output, report, (wanted.pool, wanted.labelled, wanted.test))
    described, asked, large = wanted.described(), wanted.asked(), wanted.large()
    made = described.network()
    with progress(quiet) as bar, large.reading():
        given = open_streamed(asked) if large.wanted(asked) else load(asked, made, bar)
    note(given.notes, quiet=quiet)
    with progress(quiet) as bar, large.reading(), large.executor() as executor:
        meter = Meter(bar)
        request = request_of(wanted, described, made, given, executor=executor, progress=meter)
        selection, more = noted(planned(request).run)
    with large.reading():
        inputs = given.seen(selection, shown=report is not None)
    more = list(dict.fromkeys((*more, *selection.warnings)))
    # The library was given encoded columns; to repeat the run takes what the command was given.
    again = {
        "standardise": not wanted.no_standardise,
        "impute": wanted.impute,
        "max_categories": wanted.max_categories,
        "id": wanted.id,
        "drop": list(inputs.dropped) or None,
        "costs": wanted.costs,
        "labelled_file": _text(wanted.labelled),
        "test_file": _text(wanted.test),
        "delimiter": wanted.delimiter,
        "array": wanted.array,
        "image_size": wanted.image_size,
        "network": described.told(made),
        "weights": _text(wanted.weights),
        "unit": None if isinstance(made, evgp.Network) else wanted.unit,
        "draws": None if isinstance(made, evgp.Network) else wanted.draws,
    }
    selection = replace(selection, settings={**selection.settings, **again})
    picked = _picked.Picked(selection, inputs, (*inputs.notes, *more))
    _, said = noted(lambda: picked.write(output, report, network=described.told(made)))
    more += said
    picked = replace(picked, notes=(*picked.notes, *said))
    if wanted.json:
        show_json(picked.document())
    else:
        show(picked.columns())
    note(more, quiet=quiet)
    if not quiet:
        tell(picked.told(output, report, meter.told(len(inputs))))


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
