"""The studies of the paper are outside the package; the command says where."""

from typer.testing import CliRunner

from evgp.cli.main import app


def test_reproduce_says_where_the_studies_are() -> None:
    old = ["width", "--scale", "smoke", "--out", "/tmp/x"]
    for call, name in (([], "NAME"), (["width"], "width"), (old, " ".join(old))):
        result = CliRunner().invoke(app, ["reproduce", *call])
        assert result.exit_code == 1 and result.stdout == ""
        assert f"python -m experiments {name}" in result.stderr
