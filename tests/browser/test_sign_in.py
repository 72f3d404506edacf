"""Signing in with a real OpenID provider; registering, approval, teams of people, signing out."""

import time

import pytest

from support.board_stubs import ManualClock
from support.browser.browser_server import serve_for_browser
from support.openid import OpenIdProvider
from support.server.live_server import make_predictions


@pytest.fixture(scope="module")
def provider():
    running = OpenIdProvider()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def live_server(tmp_path_factory, provider):
    """Serve boards with the provider's clock."""
    with serve_for_browser(
        tmp_path_factory.mktemp("server"),
        clock=ManualClock(int(time.time())),
        sign_in=provider.settings(),
    ) as server:
        yield server


@pytest.fixture
def make_sign_in_board(make_board, live_server):
    def make(**rules):
        slug = make_board(registration="sign_in", **rules)
        live_server.clock.now = int(time.time())
        return slug

    return make


def press(locator, keyboard):
    """Click, or focus and press Enter."""
    if keyboard:
        locator.focus()
        locator.press("Enter")
    else:
        locator.click()


def sign_in(visitor, provider, slug, login, *, keyboard=False, link=None):
    """Sign in from the Join page, perhaps with the link of an invitation."""
    visitor.monitor.allow_site(provider.openid)
    page = visitor.page
    visitor.open(link or f"/boards/{slug}/join")
    assert not visitor.axe_violations()
    assert not visitor.overflowing()
    press(page.get_by_role("link", name="Sign in with University"), keyboard)
    page.wait_for_url(f"{provider.openid}/**")
    page.locator("input[name=login]").fill(login)
    page.locator("input[name=password]").fill("any")
    press(page.get_by_role("button", name="Sign-in"), keyboard)
    press(page.get_by_role("button", name="Continue"), keyboard)
    page.wait_for_url(f"{visitor.live_server.url}/boards/{slug}/**")


@pytest.mark.parametrize("way", ["keyboard", "phone"])
def test_a_person_signs_in_registers_signs_out_and_comes_back(
    visit, make_sign_in_board, provider, live_server, way
):
    slug = make_sign_in_board()
    ada = visit(phone=way == "phone")
    page = ada.page
    sign_in(ada, provider, slug, f"ada-{way}", keyboard=way == "keyboard")
    assert "One person has one team on this board" in ada.text()
    page.get_by_label("Your team's name").fill("Analytical")
    press(page.get_by_role("button", name="Join", exact=True), way == "keyboard")
    page.get_by_role("heading", name="Welcome, Analytical").wait_for()
    ada.open(f"/boards/{slug}/submit")
    assert "Analytical: 25 submissions left" in ada.text()
    with page.expect_navigation(url=live_server.url + "/"):
        press(page.get_by_role("button", name="Sign out"), way == "keyboard")
    ada.open(f"/boards/{slug}/submit")
    assert "Analytical" not in ada.text()
    ada.open(f"/boards/{slug}/join")
    press(page.get_by_role("link", name="Sign in with University"), way == "keyboard")
    page.wait_for_url(f"{live_server.url}/boards/{slug}/submit")  # the provider remembers them
    assert "Analytical: 25 submissions left" in ada.text()


def test_an_organiser_approves_one_person_and_rejects_another(
    visit, make_sign_in_board, provider, live_server
):
    slug = make_sign_in_board(sign_in="{approval: true, domains: [example.edu]}")
    people = [visit(), visit()]
    for person, login in zip(people, ("carl", "dora"), strict=True):
        sign_in(person, provider, slug, login)
        person.page.get_by_label("Your team's name").fill(f"Team {login}")
        person.page.get_by_role("button", name="Join", exact=True).click()
        person.page.get_by_role(
            "heading", name="Your registration is waiting for approval"
        ).wait_for()
        assert not person.axe_violations()
    organiser = visit(live_server.organiser)
    page = organiser.page
    organiser.open(f"/boards/{slug}/organise")
    page.get_by_role("link", name="Decide").click()
    assert not organiser.axe_violations()
    page.locator("#person-1").get_by_role("button", name="Approve").click()
    page.get_by_text("The team is registered.").wait_for()
    form = page.locator("#person-2")
    form.locator("summary").click()
    form.get_by_label("Reason, shown to them").fill("You work for the organiser.")
    form.get_by_role("button", name="Reject").click()
    page.get_by_text("The registration is rejected").wait_for()
    page.get_by_label("One on each line", exact=True).fill("emil@example.edu")
    page.get_by_role("button", name="Add them").click()
    page.get_by_text("The people were added to the list.").wait_for()
    people[0].open(f"/boards/{slug}/submit")
    assert "Team carl: 25 submissions left" in people[0].text()
    people[1].open(f"/boards/{slug}/join")
    assert "You work for the organiser." in people[1].text()


def check(visitor):
    """The page is accessible and not too wide."""
    assert not visitor.axe_violations()
    assert not visitor.overflowing()


@pytest.mark.parametrize("way", ["keyboard", pytest.param("phone", marks=pytest.mark.slow)])
def test_people_form_a_team_accept_terms_merge_and_leave(
    visit, make_sign_in_board, provider, live_server, way
):
    slug, keyboard = make_sign_in_board(terms="Be *fair*."), way == "keyboard"
    ada, bob = visit(phone=True), visit(phone=not keyboard)  # one of them is always narrow
    for one, login in ((ada, f"ada-{way}-t"), (bob, f"bob-{way}-t")):
        one.page.on("dialog", lambda dialog: dialog.accept())
        sign_in(one, provider, slug, login, keyboard=keyboard)
        one.page.get_by_label("Your team's name").fill(f"Team {login[:3]}")
        press(one.page.get_by_role("button", name="Join", exact=True), keyboard)
        one.page.get_by_role("heading", name=f"Welcome, Team {login[:3]}").wait_for()

    def invite(one, uses):
        """Make an invitation on the Team page; return its link."""
        one.open(f"/boards/{slug}/team")
        one.page.get_by_label("For how many people").fill(str(uses))
        press(one.page.get_by_role("button", name="Make an invitation"), keyboard)
        one.page.get_by_role("heading", name="An invitation to").wait_for()
        check(one)
        return one.page.get_by_label("Link", exact=True).inner_text().strip()

    # Bob's team is merged into Ada's, and Carl joins by the link, through the provider.
    bob.open(f"/boards/{slug}/team")
    press(bob.page.get_by_text("Merge with another team"), keyboard)
    check(bob)
    bob.page.get_by_label("Invitation from the other team").fill(invite(ada, 1).partition("#")[2])
    press(bob.page.get_by_role("button", name="Merge your team into theirs"), keyboard)
    bob.page.get_by_text("You are in the team.").wait_for()
    assert f"Person ada-{way}-t owner" in bob.text()
    check(bob)
    carl = visit(phone=not keyboard)
    link = invite(ada, 1)
    sign_in(carl, provider, slug, f"carl-{way}-t", keyboard=keyboard, link=link)
    assert carl.page.get_by_label("Invitation from the team").input_value() in link
    check(carl)
    press(carl.page.get_by_role("button", name="Join the team"), keyboard)
    carl.page.get_by_text("You are in the team.").wait_for()
    # Each accepts the terms; before that there is no form to submit with.
    carl.open(f"/boards/{slug}/submit")
    assert carl.page.get_by_role("button", name="Submit").count() == 0
    press(carl.page.get_by_role("link", name="Read the terms"), keyboard)
    press(carl.page.get_by_role("button", name="I accept these terms"), keyboard)
    carl.page.get_by_text("You have accepted the terms.").wait_for()
    check(carl)
    carl.open(f"/boards/{slug}/submit")
    assert carl.submit_file(make_predictions(60)).startswith("New best: 0.8")
    # Ada hands the team over and leaves; it has submitted, so no other team takes her.
    ada.open(f"/boards/{slug}/team")
    assert "Person bob" in ada.text()
    press(ada.page.get_by_role("button", name=f"Make Person bob-{way}-t an owner"), keyboard)
    ada.page.get_by_text("The role is changed.").wait_for()
    press(ada.page.get_by_role("button", name=f"Remove Person carl-{way}-t"), keyboard)
    ada.page.get_by_text("They are no longer in the team.").wait_for()
    press(ada.page.get_by_text("Leave this team"), keyboard)
    press(ada.page.get_by_role("button", name="Leave the team"), keyboard)
    ada.page.get_by_role("heading", name="You left your team").wait_for()
    check(ada)
    assert ada.page.get_by_label("Your team's name").count() == 0


def test_an_organiser_merges_teams_and_a_person_becomes_an_organiser(
    visit, make_sign_in_board, provider, live_server
):
    slug = make_sign_in_board()
    fay = visit()
    sign_in(fay, provider, slug, "fay")
    for name in ("Gone", "Right"):
        live_server.join(name)
    organiser = visit(live_server.organiser)
    page = organiser.page
    page.on("dialog", lambda dialog: dialog.accept())
    organiser.open(f"/boards/{slug}/organise/settings/access")
    page.get_by_role("button", name="Make organiser").click()
    page.get_by_text("They organise this board now.").wait_for()
    check(organiser)
    organiser.open(f"/boards/{slug}/organise/teams")
    page.get_by_role("link", name="Gone").first.click()
    page.get_by_label("Merge into").select_option(label="Right")
    check(organiser)
    page.get_by_role("button", name="Merge the teams").click()
    page.get_by_text("The teams are merged.").wait_for()
    fay.open(f"/boards/{slug}/organise/teams")
    assert "Right" in fay.text()
    assert "Gone" not in fay.text()
    fay.open(f"/boards/{slug}")
    assert "Organised by Person fay." in fay.text()


@pytest.mark.parametrize("way", ["keyboard", "phone"])
def test_a_person_removes_their_name_and_identity(
    visit, make_sign_in_board, provider, live_server, way
):
    slug = make_sign_in_board()
    emil = visit(phone=way == "phone")
    page, keyboard = emil.page, way == "keyboard"
    sign_in(emil, provider, slug, f"emil-{way}", keyboard=keyboard)
    page.get_by_label("Your team's name").fill("Quixotic Walruses")
    press(page.get_by_role("button", name="Join", exact=True), keyboard)
    press(page.get_by_role("link", name="Go on to submit"), keyboard)
    press(page.locator("summary", has_text="Your token and identity"), keyboard)
    press(page.get_by_role("link", name="Remove my name and identity"), keyboard)
    page.get_by_role("heading", name="What stays").wait_for()
    assert not emil.axe_violations()
    assert not emil.overflowing()
    assert f"Person emil-{way}" in emil.text()
    box = page.get_by_role("checkbox", name="I have read what stays.")
    box.focus()
    box.press("Space") if keyboard else box.check()
    press(page.get_by_role("button", name="Remove my name and identity"), keyboard)
    page.get_by_role("heading", name="Your name and identity are removed").wait_for()
    assert not emil.axe_violations()
    assert "Quixotic" not in emil.text()
    assert page.get_by_role("button", name="Sign out").count() == 0
    emil.open(f"/boards/{slug}")
    assert "Quixotic" not in emil.text()
    emil.monitor.expect_statuses(403)
    emil.open(f"/boards/{slug}/join")
    press(page.get_by_role("link", name="Sign in with University"), keyboard)
    page.get_by_text("you cannot sign in again before the board is closed").wait_for()
