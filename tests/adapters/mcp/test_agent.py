"""An agent with the SDK's real client, over stdin and stdout, at a guard that is served."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

import ladderboard as lb

PAGE = (Path(__file__).parents[3] / "docs/reference/agents.md").read_text()


def wrong(labels, count):
    """Return predictions with so many mistakes."""
    return [int(each) ^ (at < count) for at, each in enumerate(labels)]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_asks_and_knows_its_winner(run_over_stdio, served, labels, mode):
    async def agent(client):
        said = []
        for name, count in [("a", 80), ("b", 40), ("c", 90), ("d", 39)]:
            given = {"predictions": wrong(labels, count), "name": name}
            said.append((await client.call_tool("ask", given)).structured_content)
        standing = await client.call_tool("standing", {})
        budget = await client.call_tool("budget", {})
        return said, standing, budget

    said, standing, budget = run_over_stdio(agent, served.url, mode=mode)
    assert [each["improved"] for each in said] == [True, True, False, False]
    assert [each["released"] for each in said] == [0.4, 0.2, 0.2, 0.2]
    found = standing.structured_content
    assert found["winner"] == {"question": 2, "name": "b"}
    assert [each["question"] for each in found["improvements"]] == [1, 2]
    assert (found["rows"], found["kind"], found["unseen"]) == (200, "number", 0.02)
    assert "The model to report is that of question 2, 'b'." in standing.content[0].text
    assert budget.structured_content["remaining"] == served.guard.remaining == 6
    assert budget.content[0].text == "4 of 10 questions used; 6 left."


def test_what_a_tool_gives_is_what_it_says_it_gives(run_in_process, served, labels):
    """The client refuses what is not as the schema has it; and the page names every field."""

    async def agent(client):
        found = {}
        for tool in (await client.list_tools()).tools:
            given = {"predictions": wrong(labels, 9)} if tool.name == "ask" else {}
            result = await client.call_tool(tool.name, given)
            found[tool.name] = (tool, result.structured_content)
        return found

    found = run_in_process(agent, served.url)
    assert list(found) == ["ask", "standing", "budget"]
    for tool, content in found.values():
        assert tool.annotations.read_only_hint == (tool.name != "ask")
        assert not [each for each in content if f"`{each}`" not in PAGE]
    assert set(found["ask"][1]) == set(found["ask"][0].output_schema["properties"])


def test_an_agent_does_not_score_itself(run_in_process, serve, tmp_path):
    guard = lb.Holdout.create(tmp_path / "scores.db", ids=range(200), loss="score", questions=9)

    async def agent(client):
        return await client.call_tool("ask", {"predictions": [1.0] * 200})

    refused = run_in_process(agent, serve(guard).url)
    assert refused.is_error
    assert "would score themselves" in refused.content[0].text
    assert guard.remaining == 9


def test_the_descriptions_say_what_the_number_means(run_over_stdio, served):
    async def agent(client):
        tools = (await client.list_tools()).tools
        return client.instructions, {tool.name: tool.description for tool in tools}

    instructions, described = run_over_stdio(agent, served.url)
    assert "the best result so far, not the score of the model" in instructions
    assert "the last one for which improved was true" in instructions
    for rule in [
        "Costs one question",
        "not the value of the model you sent",
        "goes unseen",
        "the last one that improved",
        "Never compare released values",
        "choose on data of your own",
        "again cost nothing",
    ]:
        assert rule in described["ask"]
    assert all("Costs no question" in described[each] for each in ("standing", "budget"))


def test_the_same_again_is_free_and_keeps_its_first_name(run_in_process, served, labels):
    async def agent(client):
        for name in ("first", "second"):
            given = {"predictions": wrong(labels, 40), "name": name}
            told = await client.call_tool("ask", given)
        standing = await client.call_tool("standing", {})
        return told.structured_content, standing.structured_content

    told, standing = run_in_process(agent, served.url)
    assert (told["again"], told["question"], told["remaining"]) == (True, 1, 9)
    assert standing["winner"]["name"] == "first"


def test_started_anew_it_says_nothing_that_standing_contradicts(run_in_process, served, labels):
    """What was asked before it started counts, too; only the names are gone."""

    async def agent(client):
        given = {"predictions": wrong(labels, counts.pop()), "name": "mine"}
        asked = await client.call_tool("ask", given)
        return asked, await client.call_tool("standing", {})

    counts = [60, 40]
    run_in_process(agent, served.url)
    asked, standing = run_in_process(agent, served.url)
    assert asked.content[0].text == asked.structured_content["reason"]
    assert not asked.structured_content["improved"]
    assert standing.structured_content["winner"] == {"question": 1, "name": None}
    assert "The model to report is that of question 1." in standing.content[0].text


def test_predictions_come_as_lists_columns_text_or_a_file(run_in_process, served, labels, tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    good = wrong(labels, 40)
    lines = "".join(f"{at},{each}\n" for at, each in enumerate(good))
    (folder / "good.csv").write_text(f"id,prediction\n{lines}")
    (folder / "good.jsonl").write_text("".join(f'{{"prediction": {each}}}\n' for each in good))
    backwards = {"id": list(range(200))[::-1], "prediction": good[::-1]}

    async def agent(client):
        for given in [
            {"predictions": good},
            {"predictions": backwards},
            {"predictions": json.dumps(good)},
            {"path": "good.csv"},
            {"path": str(folder / "good.csv")},
            {"path": "./good.jsonl"},
        ]:
            result = await client.call_tool("ask", given)
            assert not result.is_error, result
            assert result.structured_content["released"] == 0.2
        return result.structured_content

    assert run_in_process(agent, served.url, folder=folder)["remaining"] == 9


def test_a_ladder_is_the_owners_choice(run_in_process, served, labels):
    served.guard.ask(wrong(labels, 20))

    async def agent(client):
        await client.call_tool("ask", {"predictions": wrong(labels, 60)})
        refused = await client.call_tool("ask", {"predictions": [0], "ladder": "mine"})
        return refused, (await client.call_tool("standing", {})).structured_content

    refused, standing = run_in_process(agent, served.url, ladder="agent 7")
    assert refused.content[0].text.startswith("ask has no argument 'ladder'; there is predictions,")
    assert (standing["released"], standing["asked"]) == (0.3, 1)
    assert [ladder.name for ladder in served.guard.status().ladders] == ["", "agent 7"]


def test_refusals_are_listed_and_free(run_in_process, served):
    columns = {"id": [0, 0, 999], "prediction": [1, None, "x"]}

    async def agent(client):
        told = []
        for given in [
            {"predictions": [1, 0, 1]},
            {"predictions": columns},
            {"predictions": [float("nan")] * 200},
            {},
            {"predictions": [0], "path": "x"},
            {"predictions": {"a": 1}},
            {"predictions": [{"a": 1}]},
            {"predictions": []},
            {"predictions": 7},
            {"predictions": [0] * 200, "name": 7},
            {"predictions": [0] * 200, "name": "x" * 501},
            {"predictions": [0] * 200, "training": "low"},
            {"predictions": [10**400] * 200},
            {"predictions": [[[1]]] * 200},
        ]:
            result = await client.call_tool("ask", given)
            assert result.is_error, given
            assert result.structured_content is None
            told.append(result.content[0].text)
        nameless = await client.call_tool("look", {})
        return told, nameless

    told, nameless = run_in_process(agent, served.url)
    assert told[0].startswith("The holdout has 200 rows; the predictions have 3.")
    assert "- Not among the holdout's ids: 1 id (999)." in told[1].splitlines()
    assert "problems were found:" in told[1]
    assert "is missing: 200 rows" in told[2]
    assert told[3].startswith("Give predictions.")
    assert "--folder" in told[4]
    assert all(each.endswith("\nNothing was spent.") for each in told)
    assert not any("Traceback" in each or "File " in each for each in told)
    assert nameless.is_error
    assert "there is ask, standing, budget" in nameless.content[0].text
    assert served.guard.remaining == 10


def test_too_much_for_a_call_is_refused_before_it_is_sent(run_over_stdio, served):
    async def agent(client):
        huge = await client.call_tool("ask", {"predictions": [0] * 1_000_001})
        large = await client.call_tool("ask", {"predictions": [0] * 999_999})
        alive = await client.call_tool("budget", {})
        return huge.content[0].text, large.content[0].text, alive.structured_content["used"]

    huge, large, used = run_over_stdio(agent, served.url)
    assert "at most 1,000,000 values; got 1,000,001" in huge
    assert "The array holds 999999 rows" in large
    assert used == 0


def test_the_budget_ends_and_standing_still_tells_the_winner(run_in_process, served, labels):
    async def agent(client):
        for count in range(60, 80):
            given = {"predictions": wrong(labels, count), "name": f"{count} wrong"}
            result = await client.call_tool("ask", given)
            if result.is_error:
                break
        budget = await client.call_tool("budget", {})
        standing = await client.call_tool("standing", {})
        return result.content[0].text, budget.structured_content, standing.structured_content

    refused, budget, standing = run_in_process(agent, served.url)
    assert refused.endswith("report the last model that improved; standing tells which.")
    assert (budget["remaining"], budget["open"]) == (0, False)
    assert standing["winner"] == {"question": 1, "name": "60 wrong"}


def test_many_calls_at_once(run_over_stdio, served, labels):
    """Twenty agents' worth of calls: every question is answered once, and the budget holds."""

    async def agent(client):
        found = []

        async def one(count):
            found.append(await client.call_tool("ask", {"predictions": wrong(labels, count)}))

        async with anyio.create_task_group() as group:
            for count in range(20):
                group.start_soon(one, count)
        return found

    found = run_over_stdio(agent, served.url)
    reply_result = [each.structured_content for each in found if not each.is_error]
    assert sorted(each["question"] for each in reply_result) == list(range(1, 11))
    assert len(found) == 20
    assert served.guard.meter.used == 10


def test_a_guard_that_is_restarted_is_found_again(run_over_stdio, served, labels):
    served.stop()

    async def agent(client):
        told = [[tool.name for tool in (await client.list_tools()).tools]]
        told.append(await client.call_tool("budget", {}))
        await anyio.to_thread.run_sync(served.start)
        told.append(await client.call_tool("ask", {"predictions": wrong(labels, 50)}))
        await anyio.to_thread.run_sync(served.stop)
        told.append(await client.call_tool("ask", {"predictions": wrong(labels, 40)}))
        await anyio.to_thread.run_sync(served.start)
        told.append(await client.call_tool("ask", {"predictions": wrong(labels, 40)}))
        return told

    tools, early, first, between, last = run_over_stdio(agent, served.url)
    assert tools == ["ask", "standing", "budget"]
    assert early.is_error
    assert between.is_error
    assert "cannot be reached" in between.content[0].text
    assert "never cost twice" in between.content[0].text
    assert first.structured_content["question"] == 1
    assert last.structured_content["question"] == 2


def test_a_closed_guard_says_so(run_in_process, served, labels):
    served.guard.close_for_good()

    async def agent(client):
        asked = await client.call_tool("ask", {"predictions": wrong(labels, 50)})
        return asked.content[0].text, (await client.call_tool("budget", {})).structured_content

    asked, budget = run_in_process(agent, served.url)
    assert "Ask no more" in asked
    assert not budget["open"]


def test_a_mechanism_that_tells_no_value(run_in_process, serve, labels, tmp_path):
    guard = lb.Holdout.create(
        tmp_path / "bit.db", labels, questions=5, mechanism=lb.mechanism("one_bit", step=0.02)
    )

    async def agent(client):
        asked = await client.call_tool("ask", {"predictions": wrong(labels, 50)})
        return asked.structured_content, await client.call_tool("standing", {})

    asked, standing = run_in_process(agent, serve(guard).url)
    assert (asked["released"], asked["improved"]) == (None, True)
    assert standing.structured_content["winner"]["question"] == 1
    assert "its value is not told" in standing.content[0].text


def test_what_json_cannot_carry_does_not_end_the_connection():
    """Half a character, or a number that is none, may come from a server that is not ours."""
    from mcp import Client

    from ladderboard.adapters.mcp import make_server
    from ladderboard.adapters.mcp._tools import Tool, ToolResult

    class Toolset:
        tools = (Tool("half", "", ""), Tool("none", "", ""))

        def call(self, tool, arguments):
            return ToolResult("a\ud800b", {"x": "a\ud800b" if tool == "half" else float("nan")})

        def close(self):
            pass

    async def main():
        async with Client(make_server(Toolset())) as client:
            return await client.call_tool("half", {}), await client.call_tool("none", {})

    half, none = anyio.run(main)
    assert half.structured_content == {"x": "a?b"}
    assert half.content[0].text == "a\\ud800b"
    assert none.is_error
