"""`evgp campaign push`, `evgp campaign pull`: picks to Label Studio, and annotations back."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evgp._errors import CampaignError
from evgp._extras import EXTRAS, lacking
from evgp.cli import _options as options
from evgp.cli._output import clean, fail, guarded, progress, tell
from evgp.cli._tasks import ImagesAt, check_images
from evgp.cli.campaign import Name

if TYPE_CHECKING:
    from fastapi import FastAPI

    from evgp.campaign import Campaign
    from evgp.integrations.label_studio.client import LabelStudio

_FIRST = 20
Address = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Address of Label Studio; by default $LABEL_STUDIO_URL. Its token is in "
        "$LABEL_STUDIO_API_KEY.",
    ),
]
Project = Annotated[
    int | None,
    typer.Option(
        "--project",
        metavar="N",
        min=1,
        help="Number of its project; by default the one that evgp campaign push made for NAME.",
    ),
]
AtLeast = Annotated[
    int | None, typer.Option("-k", metavar="N", min=1, help="Pick until so many rows wait.")
]
ExportedFile = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="FILE", help="Take a full JSON export that was downloaded instead."
    ),
]


@guarded
def push(
    name: Name,
    *,
    k: AtLeast = None,
    project: Project = None,
    url: Address = None,
    images: ImagesAt = None,
    quiet: options.Quiet = False,
) -> None:
    """Send the picks that wait for a label to Label Studio, best first; none of them twice.

    Without --project a project is made, with a label config for the classes of NAME; later pushes
    find it again. Rows that are in the project already are left out.

    \b
    Examples:
      evgp campaign push spam -k 50
      evgp campaign push spam --url https://label.example.org --project 7
    """
    check_installed()
    from evgp.campaign import Campaign
    from evgp.integrations.label_studio.client import from_environment
    from evgp.integrations.label_studio.tasks import tasks_of, waiting

    campaign = Campaign.open(name)
    check_images(campaign, images)
    with from_environment(url) as server:
        warn_of(server, quiet)
        found = _project(server, campaign, project)
        known = _sent(server, campaign, found["id"]) if found is not None else set()
        if k is not None or not campaign.state.pending:
            with progress(quiet) as bar:
                campaign.next(k or _FIRST, progress=bar)
        items = waiting(campaign)
        fresh = [one for one in items if one.name not in known]
        if found is None:
            found = _made(server, campaign)
        tasks = tasks_of(campaign, fresh, images=images)
        try:
            sent = server.send(found["id"], tasks)
        except KeyboardInterrupt:
            again = (
                "some tasks may be there; evgp campaign push again sends the others, and none twice"
            )
            fail(f"stopped; {again}", code=130)
    if not quiet:
        old = len(items) - len(fresh)
        tell(
            f"{sent} tasks sent to project {found['id']} ({server.url}/projects/{found['id']}/data)"
            + (f"; {old} were there already" if old else "")
        )


@guarded
def pull(
    name: Name,
    *,
    project: Project = None,
    url: Address = None,
    file: ExportedFile = None,
    quiet: options.Quiet = False,
) -> None:
    """Take what people said in Label Studio: all of it, or nothing; twice is harmless.

    Labels, skips and "cannot tell" become answers of the people who gave them. An annotation that
    was edited counts as it is now; one that was deleted there is taken back, unless its whole task
    was deleted.

    \b
    Examples:
      evgp campaign pull spam
      evgp campaign pull spam --file project-7.json
    """
    from evgp._reading import read_json
    from evgp.campaign import Campaign
    from evgp.integrations.label_studio.answers import read_export, take

    campaign, before = Campaign.open(name), None
    if file is not None:
        if project is not None or url is not None:
            raise CampaignError("expected --file, or --project and --url; got both")
        whole = read_json(file, "the full JSON export of Label Studio", CampaignError)
        export = read_export(campaign, whole)
    else:
        check_installed()
        from evgp.integrations.label_studio.client import from_environment

        with from_environment(url) as server:
            warn_of(server, quiet)
            found = _project(server, campaign, project)
            if found is None:
                raise CampaignError(
                    f"expected a project of {campaign.path.stem} at {server.url}, got none; evgp "
                    "push makes one, or give --project"
                )
            before = len(campaign.log())  # what comes while the export is made is not in it
            export = read_export(campaign, server.export(found["id"]), server.people())
    made = take(campaign, export, before)
    if not quiet:
        tell(
            f"{made.new} new answers taken, {made.changed} changed, {made.gone} taken back; "
            f"{made.known} were known"
        )
        if export.others:
            tell(f"{export.others} tasks that evgp did not make were left aside")


def backend_of(
    campaign: "Campaign", token: str | None, hosts: Collection[str], quiet: bool
) -> "FastAPI":
    """The ML backend of a campaign; it asks Label Studio for names where it has a token for it."""
    check_installed()
    from evgp.integrations.label_studio.backend import make_backend
    from evgp.integrations.label_studio.client import ADDRESS, TOKEN, from_environment

    people = None
    if os.environ.get(TOKEN) and os.environ.get(ADDRESS):
        server = from_environment(None)
        warn_of(server, quiet)
        people = server.people
    elif not quiet:
        tell(f"note: people are called user 1, user 2, ...; for names set ${TOKEN} and ${ADDRESS}")
    return make_backend(campaign, token=token, hosts=hosts, people=people, tell=tell)


def check_installed() -> None:
    """Refuse at once where what asks Label Studio is not here."""
    if "httpx" in EXTRAS["label-studio"].absent():
        raise CampaignError(lacking("label-studio"))


def warn_of(server: "LabelStudio", quiet: bool) -> None:
    """Say where the token could be read on its way."""
    from evgp.integrations.label_studio.client import is_open

    if is_open(server.url) and not quiet:
        tell(f"note: the token goes to {server.url} without encryption; better use https")


def title_of(campaign: "Campaign") -> str:
    """The title of the project that is made for a campaign, at most 50 letters."""
    from evgp.integrations.label_studio.tasks import campaign_mark

    return f"{clean(campaign.path.stem)[:30]} (evgp {campaign_mark(campaign)[:8]})"


def _sent(server: "LabelStudio", campaign: "Campaign", project: int) -> set[str]:
    """The ids of the rows that are in a project; refused where some are of something else."""
    from evgp.integrations.label_studio.tasks import stranger

    found = server.rows(project)
    for pool, mark in found:
        strange = stranger(campaign, pool, mark)
        if strange is not None:
            raise CampaignError(
                f"project {project}: expected tasks of {campaign.pool_path.name} for "
                f"{campaign.path.stem}, got some made {strange}; take another --project"
            )
    return {one for names in found.values() for one in names}


def _project(
    server: "LabelStudio", campaign: "Campaign", number: int | None
) -> dict[str, Any] | None:
    """The project that was asked for, or the one that was made for a campaign; with checks."""
    from evgp.integrations.label_studio.config import check_config

    if number is not None:
        found = server.project(number)
    else:
        several = server.projects(title_of(campaign))
        if len(several) > 1:
            numbers = ", ".join(str(one.get("id")) for one in several)
            raise CampaignError(
                f"expected one project {title_of(campaign)!r}, got {numbers}; give --project"
            )
        if not several:
            return None
        found = server.project(int(several[0]["id"]))
    check_config(found.get("label_config"), campaign.created.classes, f"project {found['id']}")
    return found


def _made(server: "LabelStudio", campaign: "Campaign") -> dict[str, Any]:
    from evgp.integrations.label_studio.config import label_config, layout_of

    config = label_config(campaign.created.classes, layout_of(campaign))
    return server.create(title_of(campaign), config)
