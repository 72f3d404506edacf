"""The Data page: files, links and the sample, for everybody or for teams."""

import pytest

from support.server.live_server import make_folder


@pytest.fixture
def make_board(live_server, tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("x,y\n1,2\n")

    def make(**rules):
        live_server.reset()
        folder = make_folder(live_server.slug, **rules)
        folder.data = {"train.csv": path}
        live_server.boards.create(folder)
        return f"/boards/{live_server.slug}"

    return make


LINK = "{name: images.tar, url: 'https://example.org/images.tar', bytes: 3 GB}"


def test_everybody_downloads_files_and_the_sample(live_server, make_board):
    board = make_board(data=f"{{links: [{LINK}]}}")
    page = live_server.client.get(f"{board}/data").text
    assert 'href="https://example.org/images.tar"' in page
    assert f'href="{board}/data/train.csv"' in page
    file = live_server.client.get(f"{board}/data/train.csv")
    assert file.content == b"x,y\n1,2\n"
    assert file.headers["content-disposition"] == 'attachment; filename="train.csv"'
    assert file.headers["content-type"] == "application/octet-stream"
    sample = live_server.client.get(f"{board}/sample_submission.csv")
    token = live_server.join("Team")[1]
    assert live_server.submit(token, sample.content).status_code == 201
    listed = live_server.call("GET", "/boards/first/data").json()
    assert [entry["name"] for entry in listed["files"]] == ["train.csv", "images.tar"]


def test_declared_columns_name_those_of_the_sample_and_of_the_rules(live_server, make_board):
    board = make_board(columns="{id: image_id, prediction: target, label: label}")
    sample = live_server.client.get(f"{board}/sample_submission.csv")
    assert sample.text.startswith("image_id,target\n")
    token = live_server.join("Team")[1]
    assert live_server.submit(token, sample.content).status_code == 201
    rules = live_server.client.get(f"{board}/rules").text
    assert "ids in the column image_id, predictions in target" in rules
    assert "a column id" not in rules


def test_a_board_keeps_its_data_for_teams(live_server, make_board):
    board = make_board(data="{members: true}")
    page = live_server.client.get(f"{board}/data").text
    assert "Only teams can download the data." in page
    assert f'href="{board}/data/train.csv"' not in page
    paths = [f"{board}/data/train.csv", f"{board}/sample_submission.csv"]
    headers = {"Authorization": f"Bearer {live_server.join('Team')[1]}"}
    for path in paths:
        assert live_server.client.get(path).status_code == 403
        assert live_server.client.get(path, headers=headers).status_code == 200


@pytest.mark.parametrize("name", ["..%2Fboard.yaml", "%2Fetc%2Fpasswd", "holdout.csv", ".hidden"])
def test_nothing_else_is_served(live_server, make_board, name):
    assert live_server.client.get(f"{make_board()}/data/{name}").status_code in {404, 422}
