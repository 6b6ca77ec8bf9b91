"""Requests inside and outside of the schema never give a 500."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from evgp.labelling.campaign import Campaign
from evgp.labelling.web import LabellingService, Sessions, make_app
from tests.labelling.web.conftest import HERE, person_of

# Schemathesis draws from `random` inside its strategies.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")


def fuzz(folder, examples):
    (folder / "pool.csv").write_text("a,b\n" + "\n".join(f"{i},{i * i % 7}" for i in range(30)))
    campaign = Campaign.create(folder / "c", folder / "pool.csv", classes=["x", "y"])
    campaign.next(8)
    service = LabellingService(campaign, k=2)
    app = make_app(service, Sessions("a secret for tests"))
    service.start()
    ann = person_of(app)

    async def started(scope, receive, send):
        """The app, which runs already, whatever starts it."""
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for step in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{step}.complete"})

    schema = schemathesis.openapi.from_asgi("/openapi.json", started, headers={"host": "localhost"})
    codes: dict[str, set[int]] = {}

    def tries(case):
        if case.operation.method == "delete":
            person_of(app, "bob")
        answer = case.call(
            base_url=HERE,
            headers={**(case.headers or {}), "origin": HERE, "host": "localhost:8000",
                     "x-csrf-token": ann.headers["x-csrf-token"]},
            cookies=dict(ann.cookies),
        )  # fmt: skip
        where = f"{case.operation.method} {case.operation.path}"
        codes.setdefault(where, set()).add(answer.status_code)
        case.validate_response(
            answer,
            checks=[not_a_server_error, response_schema_conformance, status_code_conformance],
        )

    for operation in schema.get_all_operations():
        strategy = operation.ok().as_strategy()
        once = settings(
            max_examples=examples, deadline=None, database=None,
            phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        once(given(strategy)(tries))()
    service.stop()
    # Every endpoint was called by a signed-in person: not all calls were rejected.
    assert len(codes) == 9
    assert not [where for where, actual in codes.items() if actual & {401, 403}]
    assert len([where for where, actual in codes.items() if actual & {200, 204}]) >= 4


def test_no_500(tmp_path) -> None:
    fuzz(tmp_path, 8)


@pytest.mark.slow
def test_no_500_after_many_tries(tmp_path) -> None:
    fuzz(tmp_path, 300)
