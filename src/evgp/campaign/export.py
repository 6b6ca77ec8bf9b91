"""Labelled rows as a file."""

from collections.abc import Mapping
from pathlib import Path

from evgp._errors import CampaignError
from evgp.campaign.campaign import Campaign
from evgp.datasets import write_rows


def export(campaign: Campaign, path: str | Path) -> int:
    """Write labelled rows with all their columns, and how their labels came to be.

    The kind is told by the end of the name (.csv, .tsv, .jsonl, .parquet); the file is whole or
    not there. It may not be the pool itself. Gives the number of rows.
    """
    if Path(path).resolve() == campaign.pool_path.resolve():
        raise CampaignError(
            f"expected another file than the pool of the campaign, got {path}; choose a new name"
        )
    verdicts = {row: one for row, one in campaign.state.verdicts.items() if one.labelled}
    rows, source = list(verdicts), campaign.source
    columns: dict[str, list[object]] = {"evgp_row": list(rows)}
    if source.table is None or campaign.created.id is None:
        columns["evgp_id"] = [source.names[row] for row in rows]
    if source.table is not None:
        cards = [source.card(row) for row in rows]
        for name in source.table.names:
            columns[_free(name, columns)] = [card[name] for card in cards]
    columns[_free("label", columns)] = [verdicts[row].value for row in rows]
    columns[_free("answers", columns)] = [len(verdicts[row].answers) for row in rows]
    columns[_free("disputed", columns)] = [verdicts[row].disputed for row in rows]
    write_rows(path, columns)
    return len(rows)


def _free(name: str, taken: Mapping[str, object]) -> str:
    return name if name not in taken else _free(f"{name}_", taken)
