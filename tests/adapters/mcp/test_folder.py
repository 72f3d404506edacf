"""Files are read from the agent's folder only."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ladderboard.adapters.mcp._arguments import Folder
from ladderboard.errors import InvalidPredictions, InvalidSetting


@pytest.fixture
def folder_path(tmp_path):
    (tmp_path / "secret.csv").write_text("secret")
    inside = tmp_path / "inside"
    (inside / "deep").mkdir(parents=True)
    (inside / "a.csv").write_text("a")
    (inside / "deep/b.csv").write_text("b")
    return inside


def test_files_in_the_folder_are_read_by_relative_and_absolute_paths(folder_path, tmp_path):
    (tmp_path / "alias").symlink_to(folder_path)
    folder = Folder(tmp_path / "alias")  # the user who names the folder may name a link
    for path in (
        "a.csv",
        "./a.csv",
        "deep/b.csv",
        str(folder_path / "a.csv"),
        f"{tmp_path}/alias/a.csv",
    ):
        content = folder.read(path)
        assert content.getvalue() in {b"a", b"b"}
        assert content.name == Path(path).name


@pytest.mark.parametrize(
    "path",
    ["../secret.csv", "deep/../../secret.csv", "/etc/passwd", "/dev/zero", "/proc/self/environ",
     "", ".", "deep", "missing.csv", "a.csv/x", "a\0b", "link.csv", "dangling.csv",
     "deep/out/secret.csv", "pipe", "socket", "x" * 9000, "\ud800"],
)  # fmt: skip
def test_every_other_path_is_refused_with_the_same_message(folder_path, path, monkeypatch):
    import socket

    (folder_path / "link.csv").symlink_to(folder_path / "a.csv")
    (folder_path / "dangling.csv").symlink_to("nowhere")
    (folder_path / "deep/out").symlink_to("../..")
    os.mkfifo(folder_path / "pipe")
    monkeypatch.chdir(folder_path)  # a socket's path may not be long
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
    with pytest.raises(InvalidPredictions, match="must lead to a regular file in") as refused:
        Folder(folder_path).read(path)
    assert refused.value.problems[0].code == "not_a_file"


def test_a_folder_swapped_for_a_link_is_not_followed(folder_path, tmp_path):
    folder = Folder(folder_path)
    folder_path.rename(tmp_path / "moved")
    folder_path.symlink_to(tmp_path)
    with pytest.raises(InvalidPredictions):
        folder.read("secret.csv")
    folder_path.unlink()
    (tmp_path / "moved").rename(folder_path)
    assert folder.read("a.csv").getvalue() == b"a"


def test_swapping_folders_while_reading_never_leads_out(folder_path, tmp_path):
    """While another thread swaps a folder for a link, reads stay inside or are refused."""
    folder = Folder(folder_path)
    (folder_path / "deep/secret.csv").write_text("inside")
    (folder_path / "out").symlink_to(tmp_path)
    done = threading.Event()

    def swap():
        while not done.is_set():
            (folder_path / "deep").rename(folder_path / "saved")
            (folder_path / "out").rename(folder_path / "deep")
            (folder_path / "deep").rename(folder_path / "out")
            (folder_path / "saved").rename(folder_path / "deep")

    thread = threading.Thread(target=swap)
    thread.start()
    contents = set()
    for _ in range(3000):
        try:
            contents.add(folder.read("deep/secret.csv").getvalue())
        except InvalidPredictions:
            contents.add(None)
    done.set()
    thread.join()
    assert b"secret" not in contents
    assert b"inside" in contents


def test_a_large_file_is_refused(folder_path):
    (folder_path / "large.csv").write_bytes(b"x" * 101)
    (folder_path / "fits.csv").write_bytes(b"x" * 100)
    folder = Folder(folder_path, max_bytes=100)
    assert len(folder.read("fits.csv").getvalue()) == 100
    with pytest.raises(InvalidPredictions, match="at most 100 bytes"):
        folder.read("large.csv")
    os.truncate(folder_path / "large.csv", 2**40)  # a sparse file, larger than memory
    with pytest.raises(InvalidPredictions, match="at most 268,435,456 bytes"):
        Folder(folder_path).read("large.csv")


def count_descriptors():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_no_descriptor_is_left_open(folder_path):
    folder = Folder(folder_path)
    before = count_descriptors()
    for path in ("a.csv", "deep/b.csv", "missing/b.csv", "deep", "../x") * 20:
        try:
            folder.read(path)
        except InvalidPredictions:
            continue
    assert count_descriptors() <= before + 1


def test_a_missing_folder_is_refused(folder_path):
    for wrong in (folder_path / "a.csv", folder_path / "nowhere"):
        with pytest.raises(InvalidSetting, match="There is no folder"):
            Folder(wrong)
