"""`evgp campaign serve`: the labelling page of a campaign, or a backend for Label Studio."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from evgp._extras import EXTRAS, lacking
from evgp.cli import _options as options
from evgp.cli._label_studio import ForLabelStudio
from evgp.cli._output import guarded, tell
from evgp.cli.campaign import Name
from evgp.cli.label_studio import backend_of
from evgp.errors import CampaignError

Host = Annotated[str, typer.Option("--host", metavar="HOST", help="Address to listen on.")]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="PORT",
        min=0,
        max=65_535,
        help="Default 8000, or 9090 with --label-studio; 0 chooses a free port.",
        show_default=False,
    ),
]
Public = Annotated[
    bool, typer.Option("--public", help="Accept other machines; required with another --host.")
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host", metavar="NAME", help="Another host name of this server; repeatable."
    ),
]
Token = Annotated[
    bool,
    typer.Option("--token", help="Ask for the token on this machine too; --public always asks."),
]
Batch = Annotated[int, typer.Option("-k", metavar="N", min=1, help="Rows in a batch.")]
Twice = Annotated[
    int,
    typer.Option(
        "--twice",
        metavar="N",
        min=0,
        max=100,
        help="Percentage of rows that a second person labels too.",
    ),
]
Lease = Annotated[
    float,
    typer.Option(
        "--lease",
        metavar="SECONDS",
        min=1,
        max=86_400,
        help="How long a row on a screen is reserved.",
    ),
]


@guarded
def serve(
    name: Name,
    *,
    label_studio: ForLabelStudio = False,
    port: Port = None,
    host: Host = "127.0.0.1",
    public: Public = False,
    allow_host: AllowHost = None,
    token: Token = False,
    k: Batch = 50,
    twice: Twice = 0,
    lease: Lease = 300.0,
    quiet: options.Quiet = False,
) -> None:
    """Serve a web page on which people label NAME, several at a time, by keyboard.

    An answer that the page shows as saved is on disk. The next batch is picked while people label.
    The server listens on localhost only. Use --public to accept other machines; people then need
    the token in $EVGP_TOKEN, or the one that is generated next to the campaign file.

    With --label-studio, serve an ML backend for Label Studio instead: it scores tasks by their gain
    and records annotations as they arrive. -k, --twice and --lease apply to the page only.

    \b
    Examples:
      evgp campaign serve spam
      evgp campaign serve spam --label-studio
      evgp campaign serve spam --host 0.0.0.0 --public --twice 10
    """
    extra = "label-studio" if label_studio else "web"
    if EXTRAS[extra].absent():
        raise CampaignError(lacking(extra))
    from evgp.labelling.campaign import Campaign
    from evgp.labelling.web import LabellingService, make_app
    from evgp.labelling.web.auth import sessions_for
    from evgp.labelling.web.server import host_names, is_loopback, listen
    from evgp.labelling.web.server import serve as serve_on

    if not is_loopback(host) and not public:
        raise CampaignError(
            f"--host {host} lets other machines label; add --public to allow that, or leave --host "
            "out"
        )
    campaign = Campaign.open(name)
    sessions, token_file = sessions_for(campaign.path, ask=token or public)
    hosts = host_names(host, allow_host or ())
    with listen(host, (9090 if label_studio else 8000) if port is None else port) as listening:
        if label_studio:
            app = backend_of(campaign, sessions.token, hosts, quiet)
        else:
            service = LabellingService(campaign, k=k, twice=twice, lease=lease)
            app = make_app(service, sessions, hosts=hosts)
        if not quiet:
            shown = f"[{host}]" if ":" in host else host
            tell(f"{campaign.path}: http://{shown}:{listening.getsockname()[1]} (Ctrl-C to stop)")
            _tell_of_token(token_file, label_studio=label_studio, public=public)
        with suppress(KeyboardInterrupt):
            serve_on(listening, app)
    if not quiet:
        tell(f"stopped; all acknowledged answers are in {campaign.path}")


def _tell_of_token(file: Path | None, *, label_studio: bool, public: bool) -> None:
    if file is not None:
        who = "Label Studio must send" if label_studio else "people must enter"
        tell(f"the token that {who} is in {file}")
    if public:
        tell("HTTP is not encrypted: use it in a network you trust, or behind TLS")
