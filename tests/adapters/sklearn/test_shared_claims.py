"""SharedClaims: the first process to write a claim decides it for all."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor

from ladderboard.adapters.sklearn._scorer import SharedClaims, _remove_folder


def test_of_concurrent_claims_one_wins(tmp_path):
    notes = [SharedClaims(tmp_path / "notes") for _ in range(8)]
    for name in map(str, range(20)):
        with ThreadPoolExecutor(8) as pool:
            texts = [f"text {index}" for index in range(8)]
            won = list(pool.map(SharedClaims.claim, notes, [name] * 8, texts))
        assert sum(won) == 1
        assert notes[0].read(name) == f"text {won.index(True)}"
    assert len(list((tmp_path / "notes").iterdir())) == 20  # and no draft is left


def test_the_same_text_may_be_claimed_again(tmp_path):
    notes = SharedClaims(tmp_path / "notes")
    assert notes.read("fold") is None
    assert notes.claim("fold", "a")
    assert pickle.loads(pickle.dumps(notes)).claim("fold", "a")
    assert not notes.claim("fold", "b")


def test_a_forked_process_does_not_remove_the_claims(tmp_path):
    _remove_folder(tmp_path, os.getpid() + 1)
    assert tmp_path.exists()
    _remove_folder(tmp_path, os.getpid())
    assert not tmp_path.exists()
