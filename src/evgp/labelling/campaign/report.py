"""The report of a campaign: all picks so far, with their answers."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from evgp._repr import several
from evgp.labelling.campaign import Campaign
from evgp.labelling.campaign.estimates import hint
from evgp.pool import Selection
from evgp.report.summary import Column, Summary, summarise


def summarise_campaign(campaign: Campaign, *, command: str = "") -> Summary:
    """Everything that the page of a campaign says about its picks."""
    state, source = campaign.state, campaign.source
    rounds = state.rounds
    # If labels choose the network, each round has its own prior: convert all to that of the first.
    scaled = [(rounds[0].prior / batch.prior, batch) for batch in rounds]
    selection = Selection(
        np.array(state.picked, dtype=np.int64),
        np.array([scale * gain for scale, batch in scaled for gain in batch.gains]),
        prior_variance=rounds[0].prior if rounds else np.nan,
        start_variance=rounds[0].start if rounds else np.nan,
        variance_left=np.array([scale * left for scale, batch in scaled for left in batch.left]),
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
    answers = [""] * len(source)
    for row, verdict in verdicts.items():
        kinds = {answer.kind for answer in verdict.answers.values()}
        answers[row] = str(verdict.value) if verdict.labelled else " and ".join(sorted(kinds))
        answers[row] += " (disputed)" if verdict.disputed else ""
    columns: dict[str, Column] = {"answer": answers}
    if source.table is not None:
        for name in source.table.names:
            columns[name if name not in columns else f"{name} "] = source.table.cells(name)
    return columns


def _notes(campaign: Campaign) -> list[str]:
    state = campaign.state
    counts = Counter(str(value) for value in state.labels.values())
    people = Counter(answer.who for answer in state.standing.values())
    notes = [
        f"{several(len(state.rounds), 'round')}: {several(len(state.labels), 'label')}, "
        f"{len(state.pending)} waiting, {len(state.passed)} without a label, "
        f"{sum(verdict.disputed for verdict in state.verdicts.values())} disputed."
    ]
    if campaign.created.classes and counts:
        listed = ", ".join(f"{name} {counts[name]}" for name in campaign.created.classes)
        notes.append(f"Labels by class: {listed}.")
    if people:
        notes.append(f"Answers: {', '.join(f'{who} {count}' for who, count in people.items())}.")
    return [*notes, hint(campaign).words]
