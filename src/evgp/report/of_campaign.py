"""The report of a campaign: all picks so far, with what people said of them."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from evgp.campaign import Campaign
from evgp.campaign.hint import hint
from evgp.pool import Selection
from evgp.report.summarise import Column, summarise
from evgp.report.summary import Summary
from evgp.report.words import several


def summarise_campaign(campaign: Campaign, *, command: str = "") -> Summary:
    """Everything a page says of a campaign; of what is picked, not of the whole pool."""
    state, source = campaign.state, campaign.source
    rounds = state.rounds
    # Where labels choose the network, each round has a prior of its own: all are told in the first.
    units = [rounds[0].prior / one.prior for one in rounds]
    told = list(zip(units, rounds, strict=True))
    selection = Selection(
        np.array(state.picked, dtype=np.int64),
        np.array([unit * gain for unit, one in told for gain in one.gains]),
        prior_variance=rounds[0].prior if rounds else np.nan,
        start_variance=rounds[0].start if rounds else np.nan,
        variance_left=np.array([unit * left for unit, one in told for left in one.left]),
        settings={"rounds": len(rounds), **state.created.settings},
    )
    x = np.asarray(campaign.x(), dtype=np.float64).reshape(len(source), -1)
    return summarise(
        selection,
        x=x,
        ids=source.names,
        columns=_columns(campaign),
        network=rounds[-1].network if rounds else "",
        source=campaign.path.name,
        command=command,
        notes=_notes(campaign),
        pictures=source.images,
    )


def _columns(campaign: Campaign) -> Mapping[str, Column]:
    source, verdicts = campaign.source, campaign.state.verdicts
    said = [""] * len(source)
    for row, one in verdicts.items():
        kinds = {answer.kind for answer in one.answers.values()}
        said[row] = str(one.value) if one.labelled else " and ".join(sorted(kinds))
        said[row] += " (disputed)" if one.disputed else ""
    columns: dict[str, Column] = {"answer": said}
    if source.table is not None:
        for name in source.table.names:
            columns[name if name not in columns else f"{name} "] = source.table.cells(name)
    return columns


def _notes(campaign: Campaign) -> list[str]:
    state = campaign.state
    counts = Counter(str(value) for value in state.labels.values())
    people = Counter(one.who for one in state.standing.values())
    notes = [
        f"{several(len(state.rounds), 'round')}: {several(len(state.labels), 'label')}, "
        f"{len(state.pending)} waiting, {len(state.passed)} without a label, "
        f"{sum(one.disputed for one in state.verdicts.values())} disputed."
    ]
    if campaign.created.classes and counts:
        listed = ", ".join(f"{name} {counts[name]}" for name in campaign.created.classes)
        notes.append(f"Labels by class: {listed}.")
    if people:
        notes.append(f"Answers: {', '.join(f'{who} {count}' for who, count in people.items())}.")
    return [*notes, hint(campaign).words]
