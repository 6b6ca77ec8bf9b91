"""`evgp campaign serve`: a page on which people label a campaign, or a backend for Label Studio."""

from typing import Annotated

import typer

from evgp._errors import CampaignError
from evgp._extras import EXTRAS, lacking
from evgp.cli import _options as options
from evgp.cli._output import guarded, tell
from evgp.cli._tasks import ForLabelStudio
from evgp.cli.campaign import Name
from evgp.cli.label_studio import backend_of

Host = Annotated[str, typer.Option("--host", metavar="HOST", help="Address to listen at.")]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="PORT",
        min=0,
        max=65_535,
        help="By default 8000, for Label Studio 9090; 0 takes a free one.",
        show_default=False,
    ),
]
Public = Annotated[
    bool, typer.Option("--public", help="Let other machines in: needed for another --host.")
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="A further name of this server; repeat it."),
]
Token = Annotated[
    bool,
    typer.Option("--token", help="Ask for the token on this machine too; --public always does."),
]
Batch = Annotated[int, typer.Option("-k", metavar="N", min=1, help="How many rows are a batch.")]
Twice = Annotated[
    int,
    typer.Option(
        "--twice", metavar="N", min=0, max=100, help="Rows in 100 that a second person labels too."
    ),
]
Lease = Annotated[
    float,
    typer.Option(
        "--lease",
        metavar="SECONDS",
        min=1,
        max=86_400,
        help="How long a row on a screen is kept from others.",
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
    """Open a page on which people label NAME, by keyboard, several at once.

    An answer that the page calls saved is on the disk. The next batch is picked while people label.
    Nothing but this machine is asked for anything; other machines get in with --public alone, and
    with a token: that of $EVGP_TOKEN, or one that is made up and kept next to the campaign.

    With --label-studio serve an ML backend for Label Studio instead: it scores tasks by their gain
    and records annotations as they come. -k, --twice and --lease are for the page alone.

    \b
    Examples:
      evgp campaign serve spam
      evgp campaign serve spam --label-studio
      evgp campaign serve spam --host 0.0.0.0 --public --twice 10
    """
    extra = "label-studio" if label_studio else "web"
    if EXTRAS[extra].absent():
        raise CampaignError(lacking(extra))
    from evgp.campaign import Campaign
    from evgp.web import Desk, make_app
    from evgp.web.listen import bound, is_loopback, names_of, serve_on
    from evgp.web.sessions import keeper_of

    if not is_loopback(host) and not public:
        raise CampaignError(
            f"expected --public with --host {host}, as other machines could then label; add it, or "
            "leave --host out"
        )
    campaign = Campaign.open(name)
    keeper, file = keeper_of(campaign.path, asks=token or public)
    hosts = names_of(host, allow_host or ())
    with bound(host, (9090 if label_studio else 8000) if port is None else port) as listening:
        if label_studio:
            app = backend_of(campaign, keeper.token, hosts, quiet)
        else:
            app = make_app(Desk(campaign, k=k, twice=twice, lease=lease), keeper, hosts=hosts)
        if not quiet:
            shown = f"[{host}]" if ":" in host else host
            tell(f"{campaign.path}: http://{shown}:{listening.getsockname()[1]} (Ctrl-C stops it)")
            if file is not None:
                asked = "Label Studio must send" if label_studio else "people are asked for"
                tell(f"the token that {asked} is in {file}")
            if public:
                tell(
                    "plain HTTP can be read on its way: use it in a network you trust, or with TLS"
                )
        try:
            serve_on(listening, app)
        except KeyboardInterrupt:
            pass
    if not quiet:
        tell(f"stopped; every answer that was acknowledged is in {campaign.path}")
