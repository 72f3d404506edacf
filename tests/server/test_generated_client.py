"""A client that openapi-python-client generates from /openapi.json takes part in a board."""

import json
import subprocess
from pathlib import Path

import pytest

from support.server.live_server import make_predictions

BIN = Path(__file__).parents[2] / ".venv-openapi/bin"
TAKE_PART = """
import json, sys
from io import BytesIO
from ladderboard_client import AuthenticatedClient, Client
from ladderboard_client.api.boards import get_board, leaderboard, ledger, list_boards
from ladderboard_client.api.submissions import get_submission, list_submissions, submit
from ladderboard_client.api.teams import get_team, register_team
from ladderboard_client.models import Problem, Registration, SubmitFilesBody
from ladderboard_client.types import File

url, first, second = sys.argv[1:]
public = Client(base_url=url)
(board,) = list_boards.sync(client=public).boards
registered = register_team.sync(board.slug, client=public, body=Registration(name="Generated"))
team = AuthenticatedClient(base_url=url, token=registered.token)
with open(first, "rb") as file:
    raw = submit.sync(board.slug, client=team, body=File(file), message="raw", idempotency_key="1")
with open(second, "rb") as file:
    form = SubmitFilesBody(file=File(file, file_name="second.csv"), message="a form")
    form = submit.sync(board.slug, client=team, body=form)
refused = submit.sync(board.slug, client=team, body=File(BytesIO(b"id,prediction\\n0,1\\n")))
assert isinstance(refused, Problem), refused
submissions = list_submissions.sync(board.slug, client=team).submissions
rows = leaderboard.sync(board.slug, client=public).rows
print(json.dumps({
    "numbers": [raw.number, form.number],
    "messages": [submission.message for submission in submissions],
    "again": get_submission.sync(board.slug, raw.id, client=team).id == raw.id,
    "refused": refused.code,
    "leaderboard": [[row.rank, row.team.name] for row in rows],
    "team": get_team.sync(board.slug, client=team).name,
    "entries": len(ledger.sync(board.slug, client=public).splitlines()),
    "title": get_board.sync(board.slug, client=public).title,
}))
"""


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_generated_client_submits_and_reads_the_leaderboard(live_server, tmp_path):
    assert BIN.exists(), "The tests need openapi-python-client; script/openapi installs it."
    files = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for file, wrong in zip(files, (30, 20), strict=True):
        file.write_bytes(make_predictions(wrong))
    schema = tmp_path / "openapi.json"
    schema.write_bytes(live_server.call("GET", "/openapi.json").content)
    (tmp_path / "config.yaml").write_text("post_hooks: []\n")
    command = [
        BIN / "openapi-python-client", "generate", "--path", schema, "--fail-on-warning",
        "--meta", "none", "--output-path", tmp_path / "ladderboard_client",
        "--config", tmp_path / "config.yaml",
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "warning" not in (result.stdout + result.stderr).lower()
    (tmp_path / "take_part.py").write_text(TAKE_PART)
    client_result = subprocess.run(
        [BIN / "python", "take_part.py", live_server.url, *files],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert client_result.returncode == 0, client_result.stderr
    output = json.loads(client_result.stdout)
    assert output.pop("entries") >= 3
    assert output == {
        "numbers": [1, 2],
        "messages": ["a form", "raw"],
        "again": True,
        "refused": "invalid_predictions",
        "leaderboard": [[1, "Generated"]],
        "team": "Generated",
        "title": "First",
    }
