"""People who sign in on a board: who may register, one team for each, sessions of one board."""

import pytest

from ladderboard.board import PUBLIC, Caller, Role, VerifiedIdentity, read_folder, read_rules
from ladderboard.errors import Conflict, InvalidRules, InvalidSetting, NotAllowed, NotFound

ORGANISER = Caller(Role.ORGANISER)
ADA = VerifiedIdentity("example", "https://example.edu", "1", "Ada", "Ada@example.edu")
BOB = VerifiedIdentity("github", "https://github.com", "2", "Bob", "bob@example.org")
NOBODY = VerifiedIdentity("github", "https://github.com", "3")


@pytest.fixture
def make_board(boards, make_folder):
    def make(slug="first", people=(), **settings):
        folder = make_folder(slug=slug, registration="sign_in", **settings)
        folder.people = people
        return boards.create(folder)

    return make


@pytest.fixture
def sign_in(boards):
    def start(board, person, seconds=60):
        hashed = board.identities.sign_in(person, seconds=seconds)
        return boards.caller_by_token_hash(hashed, board.slug)

    return start


def test_a_person_registers_one_team_and_signs_in_as_that_team(make_board, sign_in):
    board = make_board()
    caller = sign_in(board, ADA)
    assert (caller.role, caller.team) == (Role.PUBLIC, None)
    team = board.identities.register(caller, "Analytical")
    with pytest.raises(Conflict, match="One person has one team"):
        board.identities.register(caller, "Another")
    again = sign_in(board, ADA._replace(mail="new@example.com", name="A. Lovelace"))
    assert (again.role, again.identity) == (Role.TEAM, caller.identity)
    assert board.as_seen_by(again).team()["id"] == team.id
    registration = board.identities.own_registration(again)
    assert (registration["state"], registration["team"], registration["mail"]) == (
        "registered",
        team.id,
        "new@example.com",
    )
    assert board.identities.own_registration(PUBLIC) is None


def test_the_subject_is_the_identity_and_not_the_mail_address(make_board, sign_in):
    board = make_board()
    board.identities.register(sign_in(board, ADA), "Analytical")
    for other in (ADA._replace(subject="2"), ADA._replace(issuer="https://example.com")):
        assert sign_in(board, other).team is None


def test_a_session_is_valid_on_its_board_only_until_it_expires_or_ends(boards, make_board, clock):
    board, _ = make_board(), make_board("other")
    hashed = board.identities.sign_in(ADA, seconds=60)
    assert boards.slug_of_token(hashed) == "first"
    for slug in ("other", None):
        with pytest.raises(NotAllowed, match="unknown or was revoked"):
            boards.caller_by_token_hash(hashed, slug)
    clock.now += 59
    assert boards.caller_by_token_hash(hashed, "first").identity == 1
    clock.now += 1
    with pytest.raises(NotAllowed, match="unknown or was revoked"):
        boards.caller_by_token_hash(hashed, "first")
    again = board.identities.sign_in(ADA, seconds=60)
    boards.sign_out(again)
    with pytest.raises(NotAllowed, match="unknown or was revoked"):
        boards.caller_by_token_hash(again, "first")


def test_domains_and_a_list_say_who_may_register(make_board, sign_in):
    board = make_board(
        sign_in="{domains: [example.edu], people: people.txt}",
        people=("bob@EXAMPLE.org", "https://github.com 3"),
    )
    for person in (ADA, BOB, NOBODY):
        board.identities.register(sign_in(board, person), f"Team {person.subject}")
    strangers = [
        BOB._replace(subject="4", mail="bob@example.com"),
        BOB._replace(subject="4", mail="ada@notexample.edu"),
        BOB._replace(subject="4", mail=None),
    ]
    for person in strangers:
        with pytest.raises(NotAllowed, match="not open to you"):
            board.identities.sign_in(person, seconds=60)
    assert len(board.identities.registrations(ORGANISER)["registrations"]) == 3
    assert board.identities.extend_list(ORGANISER, ["bob@example.com", "bob@example.org"]) == 1
    assert sign_in(board, strangers[0]).identity is not None


def test_an_entry_of_the_list_admits_one_person(make_board, sign_in):
    board = make_board(sign_in="{people: people.txt}", people=("bob@example.org",))
    board.identities.register(sign_in(board, BOB), "First")
    other = sign_in(board, BOB._replace(subject="9"))
    with pytest.raises(Conflict, match="email address is registered already"):
        board.identities.register(other, "Second")


def test_a_board_may_admit_some_providers_only(make_board, sign_in):
    board = make_board(sign_in="{providers: [github]}")
    assert sign_in(board, BOB)
    with pytest.raises(NotAllowed, match="not open to you"):
        sign_in(board, ADA)


def test_registrations_wait_for_approval(make_board, sign_in):
    board = make_board(sign_in="{approval: true}")
    callers = [sign_in(board, person) for person in (ADA, BOB, NOBODY)]
    for caller, name in zip(callers, ("Ada's", "Bob's", "Nobody's"), strict=True):
        assert board.identities.register(caller, name) is None
    assert board.row().teams == 0
    board.identities.approve(ORGANISER, 1)
    board.identities.reject(ORGANISER, 2, "You organise it.")
    waiting = board.identities.registrations(ORGANISER)["registrations"]
    assert [person["state"] for person in waiting] == ["registered", "rejected", "waiting"]
    assert sign_in(board, ADA).role == Role.TEAM
    with pytest.raises(NotAllowed, match=r"rejected your registration. You organise it."):
        board.identities.register(callers[1], "Bob's")
    board.identities.approve(ORGANISER, 2)
    assert board.row().teams == 2
    with pytest.raises(Conflict, match="Disqualify it"):
        board.identities.reject(ORGANISER, 1, "")
    with pytest.raises(NotFound):
        board.identities.approve(ORGANISER, 9)


def test_an_organiser_ends_the_sessions_of_a_person(boards, make_board):
    board = make_board()
    hashed = board.identities.sign_in(ADA, seconds=60)
    board.identities.sign_out_everywhere(ORGANISER, 1)
    with pytest.raises(NotAllowed):
        boards.caller_by_token_hash(hashed, "first")


@pytest.mark.parametrize("caller", [PUBLIC, Caller(Role.TEAM, 1), Caller(Role.EVALUATOR)])
def test_only_organisers_see_and_decide(make_board, caller):
    identities = make_board().identities
    for act in (
        lambda: identities.registrations(caller),
        lambda: identities.approve(caller, 1),
        lambda: identities.reject(caller, 1, ""),
        lambda: identities.extend_list(caller, ["ada@example.edu"]),
        lambda: identities.sign_out_everywhere(caller, 1),
    ):
        with pytest.raises(NotAllowed, match="organiser's token"):
            act()


def test_without_a_sign_in_and_an_invitation_nobody_registers(make_board, sign_in):
    board = make_board(teams=1)
    with pytest.raises(NotAllowed, match="Sign in"):
        board.teams.register("Team")
    with pytest.raises(NotAllowed, match="Sign in"):
        board.identities.register(PUBLIC, "Team")
    invitation = board.teams.invite_team(
        ORGANISER
    )  # the organiser may let a person have another team
    assert board.teams.register("Team", invitation).token
    with pytest.raises(Conflict, match="full"):
        board.identities.register(sign_in(board, ADA), "Late")


def test_nobody_signs_in_on_other_boards(boards, make_folder):
    board = boards.create(make_folder(registration="open"))
    with pytest.raises(NotAllowed, match="no sign-in"):
        board.identities.sign_in(ADA, seconds=60)


RULES = "slug: first\nloss: accuracy\nquestions: 100\nteams: 4\n"


def test_the_rules_of_sign_in_are_read_and_described_without_the_list():
    rules = read_rules(f"{RULES}sign_in: {{domains: Example.edu, people: people.txt}}\n")
    assert rules.registration == "sign_in"
    assert rules.describe()["sign_in"] == {"domains": ["example.edu"], "people": "people.txt"}
    assert "sign_in" not in read_rules(RULES).describe()
    assert rules.amended({"sign_in": {"approval": True}}).sign_in.domains == ("example.edu",)
    assert rules.amended({"registration": "invited"}).sign_in is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("registration: open\nsign_in: {approval: true}", "goes with registration: sign_in"),
        ("sign_in: {domains: ['@example']}", r"domains must be a list such as \[example.edu\]"),
        ("sign_in: {people: /etc/passwd}", "must be a file in the board's folder"),
        ("sign_in: {approval: maybe}", "must be true or false"),
        ("sign_in: {domain: example.edu}", "did you mean domains"),
    ],
)
def test_wrong_rules_of_sign_in_are_refused(text, message):
    with pytest.raises(InvalidRules, match=message):
        read_rules(f"{RULES}{text}\n")


def test_the_list_is_a_file_in_the_folder(tmp_path):
    (tmp_path / "board.yaml").write_text(f"{RULES}sign_in: {{people: people.txt}}\n")
    rows = "".join(f"{row},{row % 2}\n" for row in range(200))
    (tmp_path / "holdout.csv").write_text(f"id,label\n{rows}")
    with pytest.raises(InvalidRules, match=r"people.txt is missing"):
        read_folder(tmp_path)
    (tmp_path / "people.txt").write_text("ada@example.edu\nBob\n")
    with pytest.raises(InvalidRules, match="Entry 2 of the list must be an email address"):
        read_folder(tmp_path)
    (tmp_path / "people.txt").write_text("ada@example.edu\n\n")
    assert read_folder(tmp_path).people == ("ada@example.edu", "")


def test_an_entry_of_the_list_is_not_a_registration(make_board):
    identities = make_board().identities
    identities.extend_list(ORGANISER, ["ada@example.edu"])
    for act in (identities.approve, lambda *who: identities.reject(*who, "")):
        with pytest.raises(NotFound):
            act(ORGANISER, 1)


def test_a_malformed_list_is_refused(make_board):
    with pytest.raises(InvalidSetting, match="Entry 1 of the list"):
        make_board().identities.extend_list(ORGANISER, ["@ada"])
