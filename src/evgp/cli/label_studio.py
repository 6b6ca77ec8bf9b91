"""`evgp campaign push`, `evgp campaign pull`: picks to Label Studio, and annotations back."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evgp._extras import EXTRAS, lacking
from evgp.cli import _options as options
from evgp.cli._label_studio import ImagesAt, check_images
from evgp.cli._output import clean, fail, guarded, progress, tell
from evgp.cli.campaign import Name
from evgp.errors import CampaignError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from evgp.labelling.campaign import Campaign
    from evgp.labelling.label_studio.client import LabelStudio

_DEFAULT_K = 20
Address = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Address of Label Studio; default $LABEL_STUDIO_URL. The token is read from "
        "$LABEL_STUDIO_API_KEY.",
    ),
]
Project = Annotated[
    int | None,
    typer.Option(
        "--project",
        metavar="N",
        min=1,
        help="Number of the project; default: the one that evgp campaign push created for NAME.",
    ),
]
AtLeast = Annotated[
    int | None, typer.Option("-k", metavar="N", min=1, help="Pick until N rows are waiting.")
]
ExportedFile = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", help="Read a downloaded full JSON export instead."),
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
    """Send the picks that are waiting for a label to Label Studio, best first.

    Without --project a project is created, with a label config for the classes of NAME; later
    pushes use it again. Rows that are in the project already are not sent again.

    \b
    Examples:
      evgp campaign push spam -k 50
      evgp campaign push spam --url https://label.example.org --project 7
    """
    check_installed()
    from evgp.labelling.campaign import Campaign
    from evgp.labelling.label_studio.client import from_environment
    from evgp.labelling.label_studio.tasks import tasks_of, waiting

    campaign = Campaign.open(name)
    check_images(campaign, images)
    with from_environment(url) as server:
        warn_of(server, quiet)
        target = _project(server, campaign, project)
        known = _sent(server, campaign, target["id"]) if target is not None else set()
        if k is not None or not campaign.state.pending:
            with progress(quiet) as bar:
                campaign.next(k or _DEFAULT_K, progress=bar)
        items = waiting(campaign)
        new = [item for item in items if item.name not in known]
        if target is None:
            target = _create_project(server, campaign)
        tasks = tasks_of(campaign, new, images=images)
        try:
            sent = server.send(target["id"], tasks)
        except KeyboardInterrupt:
            fail(
                "stopped; some tasks may have been sent; repeat evgp campaign push to send the "
                "others, none of them twice",
                code=130,
            )
    if not quiet:
        url = f"{server.url}/projects/{target['id']}/data"
        old = len(items) - len(new)
        tell(
            f"{sent} tasks sent to project {target['id']} ({url})"
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
    """Record the annotations of Label Studio.

    All of them are recorded, or none; repeating it is harmless. Labels, skips and "cannot tell"
    become answers of the people who gave them. An edited annotation replaces its earlier version; a
    deleted one is undone, unless its whole task was deleted.

    \b
    Examples:
      evgp campaign pull spam
      evgp campaign pull spam --file project-7.json
    """
    from evgp._reading import read_json
    from evgp.labelling.campaign import Campaign
    from evgp.labelling.label_studio.answers import read_export, record_export

    campaign, before = Campaign.open(name), None
    if file is not None:
        if project is not None or url is not None:
            raise CampaignError("use either --file, or --project and --url")
        content = read_json(file, "the full JSON export of Label Studio", CampaignError)
        export = read_export(campaign, content)
    else:
        check_installed()
        from evgp.labelling.label_studio.client import from_environment

        with from_environment(url) as server:
            warn_of(server, quiet)
            target = _project(server, campaign, project)
            if target is None:
                raise CampaignError(
                    f"{server.url} has no project for {campaign.path.stem}; create it with evgp "
                    "campaign push, or give --project"
                )
            before = len(campaign.log())  # the export lacks answers recorded during the export
            export = read_export(campaign, server.export(target["id"]), server.people())
    result = record_export(campaign, export, before)
    if not quiet:
        tell(
            f"{result.new} new answers, {result.changed} changed, {result.gone} undone; "
            f"{result.known} were known"
        )
        if export.others:
            tell(f"{export.others} tasks that are not from evgp were ignored")


def backend_of(
    campaign: "Campaign", token: str | None, hosts: Collection[str], quiet: bool
) -> "FastAPI":
    """Return the ML backend of a campaign; with a token, it looks up people's names."""
    check_installed()
    from evgp.labelling.label_studio.backend import make_backend
    from evgp.labelling.label_studio.client import ADDRESS, TOKEN, from_environment

    people = None
    if os.environ.get(TOKEN) and os.environ.get(ADDRESS):
        server = from_environment(None)
        warn_of(server, quiet)
        people = server.people
    elif not quiet:
        tell(f"note: people are called user 1, user 2, ...; set ${TOKEN} and ${ADDRESS} for names")
    return make_backend(campaign, token=token, hosts=hosts, people=people, report=tell)


def check_installed() -> None:
    """Raise if the packages for Label Studio are not installed."""
    if "httpx" in EXTRAS["label-studio"].absent():
        raise CampaignError(lacking("label-studio"))


def warn_of(server: "LabelStudio", quiet: bool) -> None:
    """Print a note if the token is sent without encryption."""
    from evgp.labelling.label_studio.client import is_unencrypted

    if is_unencrypted(server.url) and not quiet:
        tell(f"note: the token is sent to {server.url} without encryption; use https if you can")


def title_of(campaign: "Campaign") -> str:
    """Return the title of a campaign's project, at most 50 characters."""
    from evgp.labelling.label_studio.tasks import campaign_mark

    return f"{clean(campaign.path.stem)[:30]} (evgp {campaign_mark(campaign)[:8]})"


def _sent(server: "LabelStudio", campaign: "Campaign", project: int) -> set[str]:
    """Return the ids of the rows in a project; raise if some belong to another pool or campaign."""
    from evgp.labelling.label_studio.tasks import foreign_origin

    rows = server.rows(project)
    for pool, mark in rows:
        origin = foreign_origin(campaign, pool, mark)
        if origin is not None:
            raise CampaignError(
                f"project {project}: expected tasks of {campaign.pool_path.name} for "
                f"{campaign.path.stem}, got some made {origin}; use another --project"
            )
    return {name for names in rows.values() for name in names}


def _project(
    server: "LabelStudio", campaign: "Campaign", number: int | None
) -> dict[str, Any] | None:
    """Return the project with this number, or the campaign's own if there is one, checked."""
    from evgp.labelling.label_studio.config import check_config

    if number is not None:
        project = server.project(number)
    else:
        projects = server.projects(title_of(campaign))
        if len(projects) > 1:
            numbers = ", ".join(str(project.get("id")) for project in projects)
            raise CampaignError(
                f"there are several projects {title_of(campaign)!r}: {numbers}; choose one with "
                "--project"
            )
        if not projects:
            return None
        project = server.project(int(projects[0]["id"]))
    check_config(project.get("label_config"), campaign.created.classes, f"project {project['id']}")
    return project


def _create_project(server: "LabelStudio", campaign: "Campaign") -> dict[str, Any]:
    from evgp.labelling.label_studio.config import label_config, layout_of

    config = label_config(campaign.created.classes, layout_of(campaign))
    return server.create(title_of(campaign), config)
