"""Erasure: names and identities are gone from everything, and the ledger verifies as before."""

import shutil
from pathlib import Path

import pytest

from ladderboard.board import (
    PUBLIC,
    Caller,
    Role,
    VerifiedIdentity,
    dump_board,
    open_boards,
    restore_board,
    write_board_bundle,
)
from ladderboard.board._people import _erasure
from ladderboard.errors import Conflict, NotAllowed, NotFound
from ladderboard.ledger import SecretKey, SqliteStorage
from ladderboard.verify import verify_bundle
from support.traces import open_dump, traces_in_files, traces_in_tables
from support.verify.second_verifier import run_second_verifier

ORGANISER = Caller(Role.ORGANISER)
ZELDA = VerifiedIdentity(
    "example", "https://example.edu", "subject-7431", "Zelda Quibble", "zelda.quibble@example.edu"
)
BOB = VerifiedIdentity("example", "https://example.edu", "2", "Bob", "bob@example.edu")
TEAM, MESSAGE = "Quixotic Walruses", "by Zelda with momentum 0.93"
WORDS = [TEAM, MESSAGE, ZELDA.name, ZELDA.mail, ZELDA.subject]
FORMATS = Path(__file__).parent / "formats"


@pytest.fixture
def board(boards, make_folder):
    """Return a board on which people sign in; the list admits Zelda."""
    folder = make_folder(
        registration="sign_in", ladder="team", teams="9", finals="{selections: 1}",
        sign_in="{people: people.txt, domains: [example.edu]}",
    )  # fmt: skip
    folder.people = (ZELDA.mail,)
    return boards.create(folder)


@pytest.fixture
def sign_in(boards, board):
    def start(person):
        hashed = board.identities.sign_in(person, seconds=60)
        return boards.caller_by_token_hash(hashed, board.slug)

    return start


@pytest.fixture
def teams(board, sign_in, submit, predict):
    """Return the callers of two teams that have submitted, and the token of Zelda's."""
    callers = {}
    for person, name in ((ZELDA, TEAM), (BOB, "Bobs")):
        token = board.identities.register(sign_in(person), name)
        callers[name] = sign_in(person)
        for errors in (90, 40, 10):
            submit(board, callers[name], predict(errors + len(name)), message=MESSAGE[: len(name)])
        callers[name + " token"] = token
    submit(board, callers[TEAM], predict(3), message=MESSAGE)
    return callers


def check_nothing_is_left(boards, board, folder):
    """See that neither tables nor files, a new dump nor a new bundle hold a word, and verify."""
    assert traces_in_tables(board, WORDS) == set()
    assert traces_in_files(folder, WORDS) == set()
    key = SecretKey.make()
    dump_board(boards, board.slug, folder / "dump", public_key=key.public)
    (folder / "dump.tar").write_bytes(open_dump(folder / "dump", key))
    if board.row().status == "closed":
        head = write_board_bundle(board, folder / "bundle", labels=True, submissions=True)
        verified = verify_bundle(folder / "bundle", heads=[head.hash.hex()])
        assert verified.risks == verified.questions == 7
        assert run_second_verifier(folder / "bundle").endswith("the chain and the tape hold")
    assert traces_in_files(folder, WORDS) == set()
    return key


def test_an_erased_person_is_nowhere_and_the_bundle_verifies(boards, board, teams, tmp_path):
    caller = teams[TEAM]
    team = board.as_seen_by(caller).team()["id"]
    assert {"team", "identity", "submission"} <= traces_in_tables(board, WORDS)
    erased = board.erasure.erase_own(caller)
    assert erased == (
        team,
        f"Team {team[:4]}",
        False,
        isinstance(board.book.storage, SqliteStorage),
    )
    check_nothing_is_left(boards, board, tmp_path)
    shutil.rmtree(tmp_path / "site", ignore_errors=True)
    (tmp_path / "dump").unlink()
    head = board.book.head()
    board.closer.close(ORGANISER)
    check_nothing_is_left(boards, board, tmp_path)
    assert verify_bundle(tmp_path / "bundle", heads=[head.hash.hex()]).names[team] == erased.name
    rows = board.as_seen_by(PUBLIC).finals()["rows"]
    assert {row["team"]["name"] for row in rows} == {erased.name, "Bobs"}
    rows = board.as_seen_by(PUBLIC).leaderboard()["rows"]
    assert {row["team"]["name"] for row in rows} == {erased.name, "Bobs"}


def test_a_team_is_erased_after_the_close(boards, board, teams, tmp_path):
    board.closer.close(ORGANISER)
    bundle = tmp_path / "published"
    write_board_bundle(board, bundle)
    assert "published" in traces_in_files(tmp_path, [TEAM])
    published = bundle.read_bytes()
    bundle.unlink()
    erased = board.erasure.erase_team(ORGANISER, board.as_seen_by(teams[TEAM]).team()["id"])
    check_nothing_is_left(boards, board, tmp_path)
    new, old = verify_bundle(tmp_path / "bundle"), tmp_path / "old"
    old.write_bytes(published)
    assert new.head == verify_bundle(old).head
    assert erased.name in {row.team for row in new.ranking}
    assert "Bobs" in {row.team for row in new.ranking}


def test_without_a_rewrite_the_file_keeps_traces(board, teams, tmp_path, monkeypatch):
    """What the test above sees to be gone was there."""
    if not isinstance(board.book.storage, SqliteStorage):
        pytest.skip("for databases in a file")
    monkeypatch.setattr(_erasure, "MAX_REWRITTEN_BYTES", 0)
    assert not board.erasure.erase_own(teams[TEAM]).scrubbed
    assert traces_in_tables(board, WORDS) == set()
    assert traces_in_files(tmp_path, WORDS)
    assert board.erasure.scrub()
    assert traces_in_files(tmp_path, WORDS) == set()


def test_tokens_and_sessions_end(boards, board, teams):
    board.erasure.erase_own(teams[TEAM])
    with pytest.raises(NotAllowed, match="unknown or was revoked"):
        boards.caller_by_token(teams[f"{TEAM} token"].token, board.slug)
    with pytest.raises(NotAllowed, match="unknown or was revoked"):
        boards.caller_by_token_hash(teams[TEAM].credential, board.slug)
    assert boards.caller_by_token_hash(teams["Bobs"].credential, board.slug).team is not None


def test_nobody_gets_a_second_team_by_an_erasure(board, teams, sign_in, clock):
    board.erasure.erase_own(teams[TEAM])
    with pytest.raises(NotAllowed, match="cannot sign in again before the board is closed"):
        sign_in(ZELDA._replace(name="Another", mail=BOB.mail))
    people = board.identities.registrations(ORGANISER)
    assert [person["name"] for person in people["registrations"]] == ["Bob"]
    assert people["listed"] == 0
    board.closer.close(ORGANISER)
    with board.reading() as view:
        assert sign_in(ZELDA).team is None
        rows = view.query("SELECT subject FROM main.identity WHERE issuer = 'erased'")
    known = _erasure.erased_subject(board.book, ZELDA.issuer, ZELDA.subject)
    assert len(rows) == 2
    assert known not in {subject for (subject,) in rows}


def test_a_person_without_a_team_may_come_back_and_a_rejected_one_may_not(board, sign_in):
    carl = BOB._replace(subject="3", name="Carl", mail="carl@example.edu")
    number = sign_in(carl).identity
    assert board.erasure.erase_own(sign_in(carl)).team is None
    with pytest.raises(NotFound, match="no such registration"):
        board.erasure.erase_person(ORGANISER, number)
    again = sign_in(carl)
    assert again.identity != number
    board.identities.reject(ORGANISER, again.identity, "No.")
    board.erasure.erase_person(ORGANISER, again.identity)
    with pytest.raises(NotAllowed, match="cannot sign in again"):
        sign_in(carl)
    assert traces_in_tables(board, ["Carl", "carl@example.edu"]) == set()


def test_the_name_of_a_team_goes_with_the_last_person_in_it(board, teams, sign_in):
    carl = BOB._replace(subject="3", name="Carl", mail="carl@example.edu")
    invitation = board.members.invite_member(teams[TEAM])
    board.members.join(sign_in(carl), invitation)
    member = sign_in(carl)
    assert board.erasure.preview_own(member) == (None, False, None)
    erased = board.erasure.erase_own(teams[TEAM])  # the owner
    assert (erased.team, erased.name) == (None, None)
    assert traces_in_tables(board, WORDS[2:]) == set()
    people = board.members.list(member)
    assert people["team"]["name"] == TEAM
    assert [(row["name"], row["role"]) for row in people["members"]] == [("Carl", "owner")]
    pseudonym = board.erasure.preview_own(member).team
    assert board.erasure.erase_own(member).name == pseudonym == f"Team {people['team']['id'][:4]}"
    assert traces_in_tables(board, [*WORDS, "Carl", carl.mail]) == set()


def test_an_organiser_by_person_ends_that_first(board, sign_in):
    number = sign_in(ZELDA).identity
    board.members.set_organiser(ORGANISER, number, organiser=True)
    with pytest.raises(Conflict, match="organises the board"):
        board.erasure.erase_own(sign_in(ZELDA))
    assert "organises the board" in board.erasure.preview_own(sign_in(ZELDA)).refusal
    board.members.set_organiser(ORGANISER, number, organiser=False)
    board.erasure.erase_own(sign_in(ZELDA))
    assert traces_in_tables(board, WORDS) == set()
    with pytest.raises(NotAllowed, match="cannot sign in again"):
        sign_in(ZELDA)


def test_an_erased_name_and_a_pseudonym_cannot_be_taken(board, teams, boards, tmp_path):
    erased = board.erasure.erase_own(teams[TEAM])
    for name in (TEAM, "quixotic  WALRUSES", erased.name, erased.name.upper()):
        with pytest.raises(Conflict, match="looks like it"):
            board.teams.create(ORGANISER, name)
    board.teams.create(ORGANISER, "Team Walrus")
    key = check_nothing_is_left(boards, board, tmp_path)  # also not after a restore elsewhere
    others = open_boards(str(tmp_path / "others.db"), create=True)
    restore_board(others, tmp_path / "dump", secret_key=key)
    with pytest.raises(Conflict, match="looks like it"):
        others.open(board.slug).teams.create(ORGANISER, TEAM)
    others.close()


def test_a_pseudonym_is_that_of_one_team(board, teams):
    team = board.as_seen_by(teams[TEAM]).team()["id"]
    board.teams.create(ORGANISER, f"team {team[:4]}")
    erased = board.erasure.erase_team(ORGANISER, team)
    assert erased.name == f"Team {team[:8]}"
    assert board.erasure.erase_team(ORGANISER, team)[:2] == erased[:2]


def test_teams_of_one_name_on_a_board_that_hides_names(boards, make_folder, organiser):
    board = boards.create(
        make_folder(
            slug="hidden", registration="open", visibility="hidden", teams="9", accounts="1"
        )
    )
    tokens = [board.teams.register(TEAM) for _ in range(3)]
    names = []
    for token in tokens[:2]:
        caller = boards.caller_by_token(token.token, "hidden")
        names.append(board.erasure.erase_own(caller).name)
    board.teams.register(TEAM)
    board.amendments.amend(organiser, {"visibility": "public"})
    shown = [team["name"] for team in board.as_seen_by(organiser).teams()]
    assert shown[:2] == names
    assert len(set(shown)) == 4
    assert [TEAM in name for name in shown] == [False, False, True, True]


def test_pages_are_rendered_again(board, teams):
    before = board.cache_key()
    board.erasure.erase_own(teams[TEAM])
    assert board.cache_key() != before


def test_who_may_erase_whom(boards, board, teams, organiser):
    team = board.as_seen_by(teams[TEAM]).team()["id"]
    for caller in (PUBLIC, teams["Bobs"], Caller(Role.EVALUATOR)):
        with pytest.raises(NotAllowed):
            board.erasure.erase_team(caller, team)
        with pytest.raises(NotAllowed):
            board.erasure.erase_person(caller, 1)
    for caller in (PUBLIC, organiser):
        with pytest.raises(NotAllowed):
            board.erasure.erase_own(caller)
    token = boards.caller_by_token(teams[f"{TEAM} token"].token, board.slug)
    with pytest.raises(Conflict, match="Each must sign in to remove their own name"):
        board.erasure.erase_own(token)
    with pytest.raises(NotFound, match="no such team"):
        board.erasure.erase_team(organiser, "0" * 16)
    assert "team" in traces_in_tables(board, WORDS)


def test_a_baseline_has_no_name_to_erase(boards, make_folder, predict, organiser, tmp_path):
    (tmp_path / "half.csv").write_bytes(predict(150))
    folder = make_folder(baselines="[{name: Half, file: half.csv}]")
    folder.baselines["Half"] = tmp_path / "half.csv"
    board = boards.create(folder)
    (team,) = board.as_seen_by(organiser).teams()
    with pytest.raises(NotFound, match="no such team"):
        board.erasure.erase_team(organiser, team["id"])


@pytest.mark.parametrize("number", ["1", "3"])
def test_a_board_that_an_older_version_closed_keeps_names_in_its_ledger(number, tmp_path):
    for path in FORMATS.glob(f"{number}.db*"):
        to = tmp_path / path.name.replace(f"{number}.db", "boards.db")
        shutil.copytree(path, to) if path.is_dir() else shutil.copy(path, to)
    boards = open_boards(str(tmp_path / "boards.db"))
    board = boards.open("closed")
    write_board_bundle(board, tmp_path / "before", labels=True)
    red = next(team for team in board.as_seen_by(ORGANISER).teams() if team["name"] == "Réd")
    assert board.erasure.keeps_names()
    erased = board.erasure.erase_team(ORGANISER, red["id"])
    assert erased.kept_in_ledger
    names = {row["team"]["name"] for row in board.as_seen_by(PUBLIC).finals()["rows"]}
    assert erased.name in names
    assert "Réd" not in names
    write_board_bundle(board, tmp_path / "after", labels=True)
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    verify_bundle(tmp_path / "after")
    assert not boards.open("open").erasure.keeps_names()
    boards.close()
