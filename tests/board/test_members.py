"""People in teams: invitations, roles, leaving and merging; organisers by person; terms."""

import json

import pytest

from ladderboard.board import (
    PUBLIC,
    Caller,
    Role,
    VerifiedIdentity,
    dump_board,
    open_boards,
    read_folder,
    read_rules,
    restore_board,
    write_board_bundle,
)
from ladderboard.errors import (
    BrokenLedger,
    Conflict,
    InvalidRules,
    InvalidSetting,
    NotAllowed,
    NotFound,
    NotOpen,
)
from ladderboard.ledger import SecretKey, read_vault
from ladderboard.verify import verify_bundle
from ladderboard.verify._history import HistoryChecker
from support.verify.second_verifier import run_second_verifier

ORGANISER = Caller(Role.ORGANISER)
TERMS = "Be *fair*."


class People:
    """A board, and people who sign in there by a letter."""

    def __init__(self, boards, folder):
        self.boards, self.board = boards, boards.create(folder)

    def sign_in(self, name):
        """Return the caller as of now."""
        mail = f"{name.lower()}@example.edu"
        person = VerifiedIdentity("example", "https://example.edu", name, f"Dr. {name}", mail)
        hashed = self.board.identities.sign_in(person, seconds=3600)
        return self.boards.caller_by_token_hash(hashed, self.board.slug)

    def register(self, name):
        self.board.identities.register(self.sign_in(name), f"Team {name}")
        return self.sign_in(name)

    def join(self, name, owner, **options):
        """Join the team of an owner with a new invitation."""
        invitation = self.board.members.invite_member(
            self.sign_in(owner), uses=options.pop("uses", 1)
        )
        self.board.members.join(self.sign_in(name), invitation, **options)
        return self.sign_in(name)

    def team(self, name):
        """Return the members of a person's team with their roles."""
        members = self.board.members.list(self.sign_in(name))["members"]
        return {member["name"].removeprefix("Dr. "): member["role"] for member in members}


@pytest.fixture
def make_people(boards, make_folder):
    def make(people=(), **settings):
        folder = make_folder(slug="first", registration="sign_in", **settings)
        folder.people = people
        return People(boards, folder)

    return make


@pytest.fixture
def people(make_people):
    return make_people()


def test_people_join_a_team_with_an_invitation_and_act_for_it(people, submit, predict):
    ada = people.register("Ada")
    bob = people.join("Bob", "Ada")
    assert (bob.role, bob.team) == (Role.TEAM, ada.team)
    assert people.team("Bob") == {"Ada": "owner", "Bob": "member"}
    assert submit(people.board, bob, predict(40)).number == 1
    assert submit(people.board, ada, predict(30)).number == 2
    assert people.board.row().teams == 1


def test_an_invitation_counts_its_uses_and_expires_and_can_be_revoked(people, clock):
    members = people.board.members
    ada = people.register("Ada")
    twice, old, revoked = (members.invite_member(ada, days=1, uses=uses) for uses in (2, 1, 1))
    listed = members.list(ada)["invitations"]
    assert sorted(invitation["uses"] for invitation in listed) == [1, 1, 2]
    for name in ("Bob", "Carl"):
        members.join(people.sign_in(name), twice)
    dora = people.sign_in("Dora")
    with pytest.raises(NotAllowed, match="used up"):
        members.join(dora, twice)
    with pytest.raises(NotFound):
        members.revoke_invitation(ada, "0" * 16)
    for invitation in members.list(ada)["invitations"]:
        members.revoke_invitation(ada, invitation["id"])
    clock.now += 86_400
    for token in (old, revoked, "lb_member_x", people.board.teams.invite_team(ORGANISER)):
        with pytest.raises(NotAllowed, match="unknown"):
            members.join(dora, token)
    assert members.list(people.sign_in("Ada"))["invitations"] == []


def test_a_team_has_few_invitations_at_a_time(people):
    members, ada = people.board.members, people.register("Ada")
    for _ in range(20):
        members.invite_member(ada)
    with pytest.raises(Conflict, match="at most 20 valid invitations"):
        members.invite_member(ada)
    members.revoke_invitation(ada, members.list(ada)["invitations"][0]["id"])
    assert members.invite_member(ada)


def test_an_invitation_to_a_team_is_good_for_nothing_else(people, boards):
    invitation = people.board.members.invite_member(people.register("Ada"))
    with pytest.raises(NotAllowed, match="unknown or was revoked"):
        boards.caller_by_token(invitation, "first")
    with pytest.raises(NotAllowed, match="This invitation"):
        people.board.teams.register("Another", invitation)
    roles = {token["role"] for token in people.board.teams.list_tokens(ORGANISER)}
    assert roles == {"team", "member"}


@pytest.mark.parametrize(("days", "uses"), [(0, 1), (367, 1), (1, 0), (1, 101), (1, True)])
def test_wrong_invitations_are_refused(people, days, uses):
    with pytest.raises(InvalidSetting, match="invitation"):
        people.board.members.invite_member(people.register("Ada"), days=days, uses=uses)


def test_one_person_is_in_one_team(people):
    people.register("Ada")
    people.register("Bob")
    with pytest.raises(Conflict, match="You are in a team"):
        people.join("Bob", "Ada")
    carl = people.join("Carl", "Ada")
    with pytest.raises(Conflict, match="One person has one team"):
        people.board.identities.register(carl, "Another")
    invitation = people.board.members.invite_member(people.sign_in("Ada"))
    for _ in range(2):  # nothing happens, and no use is counted
        people.board.members.join(carl, invitation)
    people.board.members.join(people.sign_in("Dora"), invitation)


def test_a_person_who_left_a_team_that_submitted_is_bound_to_it(people, submit, predict):
    """Otherwise a person could use up the submissions of one team after the other."""
    ada = people.register("Ada")
    bob = people.join("Bob", "Ada")
    people.register("Carl")
    submit(people.board, ada, predict(40))
    people.board.members.leave(bob)
    left = people.sign_in("Bob")
    assert (left.role, left.team) == (Role.PUBLIC, None)
    for attempt in (
        lambda: people.board.identities.register(left, "Another"),
        lambda: people.join("Bob", "Carl"),
    ):
        with pytest.raises(NotAllowed, match="one person is in one team"):
            attempt()
    assert people.join("Bob", "Ada").team == ada.team


def test_before_a_submission_a_person_leaves_freely_and_a_team_without_people_ends(people, boards):
    token = people.board.identities.register(people.sign_in("Ada"), "Team Ada").token
    ada = people.sign_in("Ada")
    people.board.members.invite_member(ada)
    people.board.members.leave(ada)
    assert people.board.row().teams == 0
    assert people.board.teams.list_tokens(ORGANISER) == []
    with pytest.raises(NotAllowed):
        boards.caller_by_token(token, "first")
    people.register("Ada")  # the same name is free again
    with pytest.raises(Conflict, match="not in a team"):
        people.board.members.leave(people.sign_in("Bob"))


def test_an_entry_of_the_list_is_free_again_after_leaving(make_people):
    people = make_people(("ada@example.edu", "bob@example.edu"), sign_in="{people: people.txt}")
    people.board.members.leave(people.register("Ada"))
    people.register("Ada")
    people.join("Bob", "Ada")
    mail = people.sign_in("Bob")
    assert mail.team is not None
    other = VerifiedIdentity("example", "https://example.edu", "9", "", "bob@example.edu")
    hashed = people.board.identities.sign_in(other, seconds=60)
    caller = people.boards.caller_by_token_hash(hashed, "first")
    for attempt in (
        lambda: people.board.identities.register(caller, "Second"),
        lambda: people.board.members.join(
            caller, people.board.members.invite_member(people.sign_in("Ada"))
        ),
    ):
        with pytest.raises(Conflict, match="email address is registered already"):
            attempt()
    assert people.board.row().teams == 1  # a refused registration leaves no team behind


def test_owners_manage_the_team_and_members_do_not(people):
    ada, members = people.register("Ada"), people.board.members
    bob = people.join("Bob", "Ada")
    for attempt in (
        lambda: members.invite_member(bob),
        lambda: members.revoke_invitation(bob, "0" * 16),
        lambda: members.remove(bob, ada.identity),
        lambda: members.set_role(bob, bob.identity, "owner"),
        lambda: people.board.teams.rotate_token(bob),
    ):
        with pytest.raises(NotAllowed, match="Only an owner"):
            attempt()
    for attempt in (
        lambda: members.leave(ada),
        lambda: members.set_role(ada, ada.identity, "member"),
        lambda: members.remove(ada, ada.identity),
    ):
        with pytest.raises(Conflict, match="needs an owner"):
            attempt()
    members.set_role(ada, bob.identity, "owner")
    members.leave(ada)
    assert people.team("Bob") == {"Bob": "owner"}
    with pytest.raises(NotFound, match="no such member"):
        members.remove(bob, ada.identity)
    with pytest.raises(InvalidSetting, match="owner or member"):
        members.set_role(bob, bob.identity, "king")


def test_the_token_of_a_team_owns_it(people, boards):
    token = people.board.identities.register(people.sign_in("Ada"), "Team Ada").token
    caller = boards.caller_by_token(token, "first")
    bob = people.join("Bob", "Ada")
    assert people.board.members.list(caller)["members"][0]["you"] is False
    people.board.members.remove(caller, bob.identity)
    assert people.sign_in("Bob").team is None
    assert people.board.members.invite_member(caller).startswith("lb_member_")
    for attempt in (
        lambda: people.board.members.leave(caller),
        lambda: people.board.members.join(caller, "lb_member_x"),
    ):
        with pytest.raises(NotAllowed, match="people who signed in"):
            attempt()


def test_the_people_of_another_team_are_out_of_reach(people):
    ada, bob = people.register("Ada"), people.register("Bob")
    members = people.board.members
    invitation = members.invite_member(bob)
    (listed,) = members.list(bob)["invitations"]
    assert members.list(ada)["invitations"] == []
    with pytest.raises(NotFound):
        members.revoke_invitation(ada, listed["id"])
    with pytest.raises(NotFound):
        members.remove(ada, bob.identity)
    assert members.join(people.sign_in("Carl"), invitation)


def test_an_owner_merges_the_own_team_into_another(people):
    people.register("Ada")
    people.register("Bob")
    people.join("Carl", "Bob")
    with pytest.raises(Conflict, match=r"Your team has 2 people, and this invitation admits 1"):
        people.join("Bob", "Ada", merge=True)
    with pytest.raises(NotAllowed, match="Only an owner"):
        people.join("Carl", "Ada", merge=True, uses=2)
    people.join("Bob", "Ada", merge=True, uses=2)
    assert people.team("Carl") == {"Ada": "owner", "Bob": "member", "Carl": "member"}
    assert people.board.row().teams == 1
    names = [team["name"] for team in people.board.as_seen_by(ORGANISER).teams()]
    assert names == ["Team Ada"]
    _, entry = list(people.board.book.entries())[-1]
    team = people.board.as_seen_by(ORGANISER).teams()[0]["id"]
    assert (entry["kind"], entry["into"], entry["person"]) == ("merged", team, 2)


@pytest.mark.parametrize(
    ("forge", "message"),
    [
        (lambda entries, at: entries[at].update(into=entries[at]["asker"]), "with itself"),
        (
            lambda entries, at: entries[at].update(asker=entries[-1]["asker"], into="0" * 16),
            "that was merged",
        ),
        (lambda entries, at: entries.append(entries[at]), "does not exist"),
        (lambda entries, at: entries.append({**entries[at], "asker": "0" * 16}), "has submitted"),
        (lambda entries, at: entries[at].update(person="Bob"), "names no person"),
    ],
)
def test_a_merge_that_cannot_have_been_is_found(people, submit, predict, forge, message):
    for name in ("Ada", "Bob"):
        people.register(name)
    people.join("Bob", "Ada", merge=True)
    submit(people.board, people.sign_in("Bob"), predict(40))
    entries = [fields for _, fields in people.board.book.entries()]
    forge(entries, [fields["kind"] for fields in entries].index("merged"))
    history = HistoryChecker(entries[0])

    def check_all():
        for number, fields in enumerate(entries):
            history.check_entry(number, fields)

    with pytest.raises(BrokenLedger, match=message):
        check_all()


@pytest.mark.parametrize("submitted", ["Ada", "Bob"])
def test_teams_are_merged_only_before_either_has_submitted(people, submit, predict, submitted):
    for name in ("Ada", "Bob"):
        people.register(name)
    ids = [team["id"] for team in people.board.as_seen_by(ORGANISER).teams()]
    submit(people.board, people.sign_in(submitted), predict(40))
    for attempt in (
        lambda: people.board.members.merge(ORGANISER, *ids),
        lambda: people.join("Bob", "Ada", merge=True),
    ):
        with pytest.raises(Conflict, match="only before either has submitted"):
            attempt()
    assert people.board.row().teams == 2


def test_an_organiser_merges_teams_and_what_cannot_be_merged_is_refused(people, tmp_path):
    for name in ("Ada", "Bob", "Carl"):
        people.register(name)
    members, ids = (
        people.board.members,
        [team["id"] for team in people.board.as_seen_by(ORGANISER).teams()],
    )
    with pytest.raises(Conflict, match="into itself"):
        members.merge(ORGANISER, ids[0], ids[0])
    with pytest.raises(NotFound):
        members.merge(ORGANISER, ids[0], "0" * 16)
    people.board.teams.disqualify(ORGANISER, ids[2])
    with pytest.raises(Conflict, match="disqualified"):
        members.merge(ORGANISER, ids[2], ids[0])
    with pytest.raises(NotAllowed, match="organiser's token"):
        members.merge(people.sign_in("Ada"), ids[1], ids[0])
    members.merge(ORGANISER, ids[1], ids[0])
    assert people.team("Bob") == {"Ada": "owner", "Bob": "member"}
    _, entry = list(people.board.book.entries())[-1]
    assert (entry["kind"], entry["asker"], entry["into"]) == ("merged", ids[1], ids[0])
    assert "person" not in entry
    people.board.closer.close(ORGANISER)
    write_board_bundle(people.board, tmp_path / "bundle")
    verify_bundle(tmp_path / "bundle")
    run_second_verifier(tmp_path / "bundle")
    with pytest.raises(NotOpen):
        members.merge(ORGANISER, ids[2], ids[0])
    with pytest.raises(NotOpen):
        people.join("Dora", "Ada")


def test_a_rejected_person_is_in_no_team_and_a_team_keeps_an_owner(people, submit, predict):
    ada = people.register("Ada")
    people.join("Bob", "Ada")
    submit(people.board, ada, predict(40))
    people.board.identities.reject(ORGANISER, ada.identity, "Two accounts.")
    assert people.sign_in("Ada").role == Role.PUBLIC
    assert people.team("Bob") == {"Bob": "owner"}
    with pytest.raises(NotAllowed, match="Two accounts"):
        people.join("Ada", "Bob")
    people.board.identities.approve(ORGANISER, ada.identity)  # may return to that team only
    with pytest.raises(NotAllowed, match="one person is in one team"):
        people.board.identities.register(people.sign_in("Ada"), "Another")
    assert people.join("Ada", "Bob").team == ada.team


def test_a_person_organises_the_board_and_never_takes_part_after_that(people):
    members, ada = people.board.members, people.sign_in("Ada")
    bob = people.register("Bob")
    members.set_organiser(ORGANISER, ada.identity, organiser=True)
    ada = people.sign_in("Ada")
    assert (ada.role, ada.team) == (Role.ORGANISER, None)
    assert people.board.as_seen_by(PUBLIC).summary()["organisers"] == ["Dr. Ada"]
    for attempt in (
        lambda: people.board.identities.register(ada, "Mine"),
        lambda: people.join("Ada", "Bob"),
    ):
        with pytest.raises(NotAllowed, match="You organise this board"):
            attempt()
    with pytest.raises(Conflict, match="organises"):
        people.board.identities.reject(ORGANISER, ada.identity, "")
    with pytest.raises(Conflict, match="in a team"):
        members.set_organiser(ada, bob.identity, organiser=True)
    with pytest.raises(NotAllowed, match="organiser's token"):
        members.set_organiser(bob, bob.identity, organiser=True)
    members.set_organiser(ORGANISER, ada.identity, organiser=False)
    assert people.board.as_seen_by(PUBLIC).summary()["organisers"] == []
    with pytest.raises(NotAllowed, match="You were an organiser"):
        people.board.identities.register(people.sign_in("Ada"), "Mine")
    kinds = [(fields["kind"], fields.get("person")) for _, fields in people.board.book.entries()]
    assert kinds[-2:] == [("appointed", 1), ("dismissed", 1)]


def test_organisers_are_named_in_the_rules(boards, make_folder):
    board = boards.create(make_folder(organisers="[Ada Lovelace, Charles Babbage]"))
    assert board.as_seen_by(PUBLIC).summary()["organisers"] == ["Ada Lovelace", "Charles Babbage"]
    board.amendments.amend(ORGANISER, {"organisers": None})
    assert board.as_seen_by(PUBLIC).summary()["organisers"] == []


# Terms.


@pytest.fixture
def board_with_terms(boards, make_folder):
    folder = make_folder(registration="open", terms=json.dumps(TERMS), data="{members: true}")
    return boards.create(folder)


def test_without_terms_nothing_is_submitted_and_no_restricted_file_is_read(
    boards, board_with_terms, join, submit, predict
):
    board = board_with_terms
    caller, _ = join(boards, board, "Ada")
    for attempt in (
        lambda: submit(board, caller, predict(40)),
        lambda: board.submissions.authorize_upload(caller, 0),
        lambda: board.data.sample(caller),
        lambda: board.data.open(caller, "train.csv"),
    ):
        with pytest.raises(NotAllowed, match="are not accepted yet"):
            attempt()
    assert board.data.summary(caller)["allowed"] is False
    terms = board.terms.summary(caller)
    assert (terms["text"], terms["accepted"]) == (TERMS, False)
    assert board.terms.summary(PUBLIC)["accepted"] is None
    board.terms.accept(caller, terms["version"])
    board.terms.accept(caller, terms["version"])  # recorded once
    assert board.terms.summary(caller)["accepted"] is True
    assert submit(board, caller, predict(40)).number == 1
    assert board.data.sample(caller)
    accepted = [fields for _, fields in board.book.entries() if fields["kind"] == "accepted"]
    assert [(fields["terms"], "person" in fields) for fields in accepted] == [
        (terms["version"], False)
    ]


def test_amended_terms_are_accepted_again(boards, board_with_terms, join, submit, predict):
    board = board_with_terms
    caller, _ = join(boards, board, "Ada")
    first = board.terms.summary(caller)["version"]
    board.terms.accept(caller, first)
    submit(board, caller, predict(40))
    board.amendments.amend(ORGANISER, {"terms": "Be kind."})
    with pytest.raises(NotAllowed, match="have changed since you accepted them"):
        submit(board, caller, predict(30))
    assert submit(board, caller, predict(40)).again  # an answer that was given is repeated
    with pytest.raises(Conflict, match="have changed since you read them"):
        board.terms.accept(caller, first)
    board.terms.accept(caller, board.terms.summary(caller)["version"])
    assert submit(board, caller, predict(30)).number == 2
    board.amendments.amend(ORGANISER, {"terms": None})
    assert submit(board, caller, predict(20)).number == 3
    with pytest.raises(NotFound, match="no terms"):
        board.terms.summary(caller)
    with pytest.raises(NotFound, match="no terms"):
        board.terms.accept(caller, first)


def test_each_person_accepts_the_terms(make_people, submit, predict):
    people = make_people(terms=json.dumps(TERMS))
    board, ada = people.board, people.register("Ada")
    bob = people.join("Bob", "Ada")
    version = board.terms.summary(ada)["version"]
    board.terms.accept(ada, version)
    assert submit(board, ada, predict(40)).number == 1
    with pytest.raises(NotAllowed, match="not accepted yet"):
        submit(board, bob, predict(30))
    board.terms.accept(bob, version)
    assert submit(board, bob, predict(30)).number == 2
    with pytest.raises(NotAllowed, match="team's token"):
        board.terms.accept(people.sign_in("Carl"), version)


def test_evaluators_submit_for_teams_that_accepted_and_baselines_need_not(
    boards, board_with_terms, join, submit, predict
):
    board = board_with_terms
    caller, _ = join(boards, board, "Ada")
    team = board.as_seen_by(caller).team()["id"]
    with pytest.raises(NotAllowed, match="not accepted yet"):
        submit(board, Caller(Role.EVALUATOR), predict(40), team=team)
    baseline = board.teams.add_baseline("Zeros")
    assert submit(board, baseline, predict(40)).number == 1


RULES = "slug: first\nloss: accuracy\nquestions: 100\nteams: 4\n"


def test_terms_are_a_text_or_a_file_in_the_folder(tmp_path):
    (tmp_path / "board.yaml").write_text(f"{RULES}terms: {{file: terms.md}}\n")
    rows = "".join(f"{row},{row % 2}\n" for row in range(200))
    (tmp_path / "holdout.csv").write_text(f"id,label\n{rows}")
    with pytest.raises(InvalidRules, match=r"terms.md is missing"):
        read_folder(tmp_path)
    (tmp_path / "terms.md").write_text(" \n")
    with pytest.raises(InvalidRules, match=r"terms.md: it is empty"):
        read_folder(tmp_path)
    (tmp_path / "terms.md").write_text(TERMS)
    rules = read_folder(tmp_path).rules
    assert rules.terms == read_rules(f"{RULES}terms: {json.dumps(TERMS)}\n").terms
    assert rules.describe()["terms"] == TERMS
    assert "terms" not in read_rules(RULES).describe()
    with pytest.raises(InvalidRules, match="must be the text itself"):
        rules.amended({"terms": {"file": "terms.md"}})
    for text, message in (
        ("terms: {file: ../x}", "file in the board's folder"),
        ("terms: {text: x}", "terms has no key 'text'"),
        ("terms: 5", "terms must be text"),
        ("organisers: 5", "organisers must be a list"),
    ):
        with pytest.raises(InvalidRules, match=message):
            read_rules(f"{RULES}{text}\n")


def test_a_dump_carries_people_and_neither_sessions_nor_tokens(
    make_people, submit, predict, tmp_path
):
    people = make_people(("zoe@example.edu",), sign_in="{approval: true}", terms=json.dumps(TERMS))
    board, boards, identities = people.board, people.boards, people.board.identities
    for name in ("Ada", "Bob", "Carl", "Dora", "Emil"):
        identities.register(people.sign_in(name), f"Team {name}")
    number = {name: people.sign_in(name).identity for name in ("Ada", "Bob", "Carl", "Emil")}
    identities.approve(ORGANISER, number["Ada"])
    identities.reject(ORGANISER, number["Carl"], "Two accounts.")
    for name in ("Bob", "Emil"):
        people.join(name, "Ada")
    board.terms.accept(people.sign_in("Ada"), board.rules.terms.version)
    submit(board, people.sign_in("Ada"), predict(40))
    board.members.leave(people.sign_in("Emil"))
    board.members.set_organiser(ORGANISER, people.sign_in("Fay").identity, organiser=True)
    token = board.teams.rotate_token(people.sign_in("Ada")).token
    invitation = board.members.invite_member(people.sign_in("Ada"), uses=3)
    session = identities.sign_in(
        VerifiedIdentity("example", "https://example.edu", "Ada", "Dr. Ada", "ada@example.edu"),
        seconds=10**6,
    )
    key = SecretKey.make()
    dump_board(boards, "first", tmp_path / "dump", public_key=key.public, move=True)
    with read_vault(tmp_path / "dump", key) as vault:
        content = vault.read(2**24)
    for secret in (token.encode(), invitation.encode(), session):
        assert secret not in content
    assert b"Dr. Ada" in content  # a dump is encrypted, and the people move with the board
    target = open_boards(tmp_path / "other.db", create=True)
    restore_board(target, tmp_path / "dump", secret_key=key)
    restored = target.open("first")
    assert restored.identities.registrations(ORGANISER) == identities.registrations(ORGANISER)
    with pytest.raises(NotAllowed):  # nobody is signed in there
        target.caller_by_token_hash(session, "first")
    there = People.__new__(People)
    there.boards, there.board = target, restored
    roles = {name: there.sign_in(name).role for name in ("Ada", "Carl", "Emil", "Fay")}
    assert [*roles.values()] == [Role.TEAM, Role.PUBLIC, Role.PUBLIC, Role.ORGANISER]
    assert there.team("Ada") == {"Ada": "owner", "Bob": "member"}
    assert submit(restored, there.sign_in("Ada"), predict(30)).number == 2
    with pytest.raises(NotAllowed, match="not accepted yet"):
        submit(restored, there.sign_in("Bob"), predict(20))
    with pytest.raises(NotAllowed, match="one person is in one team"):
        restored.identities.register(there.sign_in("Emil"), "Another")
    assert restored.members.join(there.sign_in("Gus"), invitation)
    target.close()


def test_a_request_that_began_in_a_team_does_nothing_after_it_was_left(
    people, boards, submit, predict
):
    """The number of a team that ended is given again: the next team must not be meant."""
    board, members = people.board, people.board.members
    token = board.identities.register(people.sign_in("Mallory"), "Ended").token
    as_person, as_token = people.sign_in("Mallory"), boards.caller_by_token(token, "first")
    members.leave(as_person)
    ada = people.register("Ada")
    assert ada.team == as_person.team == as_token.team
    for caller in (as_person, as_token):
        for attempt in (
            lambda caller: submit(board, caller, predict(40)),
            lambda caller: board.submissions.authorize_upload(caller, 1_800_000_000),
            members.invite_member,
            lambda caller: members.remove(caller, ada.identity),
            board.teams.rotate_token,
            lambda caller: board.closer.select_submissions(caller, []),
        ):
            with pytest.raises(NotAllowed, match="Your access to this team has ended"):
                attempt(caller)
    with pytest.raises(NotAllowed, match="has ended"):
        board.erasure.erase_own(as_token)
    assert people.team("Ada") == {"Ada": "owner"}
    assert submit(board, ada, predict(40)).number == 1


def test_a_person_who_left_is_no_owner_of_the_team_that_they_left(people):
    """Leaving makes them an owner of whatever team comes next, not of the old one."""
    people.register("Ada")
    bob = people.join("Bob", "Ada")
    people.board.members.leave(bob)
    with pytest.raises(NotAllowed, match="has ended"):
        people.board.teams.rotate_token(bob)


def test_terms_are_accepted_for_the_team_that_one_is_in(make_people):
    people = make_people(terms=TERMS)
    mallory = people.register("Mallory")
    people.board.members.leave(mallory)
    people.register("Ada")
    with pytest.raises(NotAllowed, match="has ended"):
        people.board.terms.accept(mallory, people.board.rules.terms.version)


def test_what_happens_while_a_submission_is_scored_counts(people, submit, predict, monkeypatch):
    """The person leaves, or the name is erased, after the checks and before the record."""
    board = people.board
    score = board.score
    for name, change in (
        ("Ada", board.members.leave),
        ("Bob", board.erasure.erase_own),
    ):
        caller = people.register(name)

        def score_late(*arguments, change=change, caller=caller):
            change(caller)
            return score(*arguments)

        monkeypatch.setattr(board, "score", score_late)
        with pytest.raises(NotAllowed, match="has ended"):
            submit(board, caller, predict(40), message=f"by {name}")
    assert [team["submissions"] for team in board.as_seen_by(ORGANISER).teams()] == [0]
