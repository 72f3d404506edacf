"""An agent with the SDK's real client, over stdin and stdout, on a served guard."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

import ladderboard as lb

PAGE = (Path(__file__).parents[3] / "docs/reference/agents.md").read_text()


def with_errors(labels, count):
    """Return predictions with this many errors."""
    return [int(label) ^ (index < count) for index, label in enumerate(labels)]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_asks_and_knows_its_winner(run_over_stdio, served, labels, mode):
    async def agent(client):
        replies = []
        for name, count in [("a", 80), ("b", 40), ("c", 90), ("d", 39)]:
            arguments = {"predictions": with_errors(labels, count), "name": name}
            replies.append((await client.call_tool("ask", arguments)).structured_content)
        standing = await client.call_tool("standing", {})
        budget = await client.call_tool("budget", {})
        return replies, standing, budget

    replies, standing, budget = run_over_stdio(agent, served.url, mode=mode)
    assert [reply["improved"] for reply in replies] == [True, True, False, False]
    assert [reply["released"] for reply in replies] == [0.4, 0.2, 0.2, 0.2]
    content = standing.structured_content
    assert content["winner"] == {"question": 2, "name": "b"}
    assert [reply["question"] for reply in content["improvements"]] == [1, 2]
    assert (content["rows"], content["kind"], content["unseen"]) == (200, "number", 0.02)
    assert "The model to report is that of question 2, 'b'." in standing.content[0].text
    assert budget.structured_content["remaining"] == served.guard.remaining == 6
    assert budget.content[0].text == "4 of 10 questions used; 6 left."


def test_results_follow_their_schema_and_the_page_names_every_field(run_in_process, served, labels):
    """The SDK's client checks results against the schema; the page documents every field."""

    async def agent(client):
        results = {}
        for tool in (await client.list_tools()).tools:
            arguments = {"predictions": with_errors(labels, 9)} if tool.name == "ask" else {}
            result = await client.call_tool(tool.name, arguments)
            results[tool.name] = (tool, result.structured_content)
        return results

    results = run_in_process(agent, served.url)
    assert list(results) == ["ask", "standing", "budget"]
    for tool, content in results.values():
        assert tool.annotations.read_only_hint == (tool.name != "ask")
        assert not [field for field in content if f"`{field}`" not in PAGE]
    assert set(results["ask"][1]) == set(results["ask"][0].output_schema["properties"])


def test_a_guard_of_scores_is_refused(run_in_process, serve, tmp_path):
    guard = lb.Holdout.create(tmp_path / "scores.db", ids=range(200), loss="score", questions=9)

    async def agent(client):
        return await client.call_tool("ask", {"predictions": [1.0] * 200})

    refused = run_in_process(agent, serve(guard).url)
    assert refused.is_error
    assert "would score themselves" in refused.content[0].text
    assert guard.remaining == 9


def test_instructions_and_descriptions_explain_the_released_value(run_over_stdio, served):
    async def agent(client):
        tools = (await client.list_tools()).tools
        return client.instructions, {tool.name: tool.description for tool in tools}

    instructions, described = run_over_stdio(agent, served.url)
    assert "the best result so far, not the score of the model" in instructions
    assert "the last one for which improved was true" in instructions
    for rule in [
        "Costs one question",
        "not the value of the model you sent",
        "are not detected",
        "the last one that improved",
        "Never compare released values",
        "choose on your own validation data",
        "again cost nothing",
    ]:
        assert rule in described["ask"]
    assert all("Costs no question" in described[name] for name in ("standing", "budget"))


def test_equal_predictions_are_free_and_keep_their_first_name(run_in_process, served, labels):
    async def agent(client):
        for name in ("first", "second"):
            arguments = {"predictions": with_errors(labels, 40), "name": name}
            reply = await client.call_tool("ask", arguments)
        standing = await client.call_tool("standing", {})
        return reply.structured_content, standing.structured_content

    reply, standing = run_in_process(agent, served.url)
    assert (reply["again"], reply["question"], reply["remaining"]) == (True, 1, 9)
    assert standing["winner"]["name"] == "first"


def test_a_restarted_server_reports_the_earlier_winner_without_its_name(
    run_in_process, served, labels
):
    """Earlier questions count, but their names are lost."""

    async def agent(client):
        arguments = {"predictions": with_errors(labels, counts.pop()), "name": "mine"}
        reply = await client.call_tool("ask", arguments)
        return reply, await client.call_tool("standing", {})

    counts = [60, 40]
    run_in_process(agent, served.url)
    reply, standing = run_in_process(agent, served.url)
    assert reply.content[0].text == reply.structured_content["reason"]
    assert not reply.structured_content["improved"]
    assert standing.structured_content["winner"] == {"question": 1, "name": None}
    assert "The model to report is that of question 1." in standing.content[0].text


def test_predictions_come_as_lists_columns_text_or_a_file(run_in_process, served, labels, tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    good = with_errors(labels, 40)
    lines = "".join(f"{index},{label}\n" for index, label in enumerate(good))
    (folder / "good.csv").write_text(f"id,prediction\n{lines}")
    (folder / "good.jsonl").write_text("".join(f'{{"prediction": {label}}}\n' for label in good))
    backwards = {"id": list(range(200))[::-1], "prediction": good[::-1]}

    async def agent(client):
        for arguments in [
            {"predictions": good},
            {"predictions": backwards},
            {"predictions": json.dumps(good)},
            {"path": "good.csv"},
            {"path": str(folder / "good.csv")},
            {"path": "./good.jsonl"},
        ]:
            result = await client.call_tool("ask", arguments)
            assert not result.is_error, result
            assert result.structured_content["released"] == 0.2
        return result.structured_content

    assert run_in_process(agent, served.url, folder=folder)["remaining"] == 9


def test_an_agent_cannot_choose_its_ladder(run_in_process, served, labels):
    served.guard.ask(with_errors(labels, 20))

    async def agent(client):
        await client.call_tool("ask", {"predictions": with_errors(labels, 60)})
        refused = await client.call_tool("ask", {"predictions": [0], "ladder": "mine"})
        return refused, (await client.call_tool("standing", {})).structured_content

    refused, standing = run_in_process(agent, served.url, ladder="agent 7")
    assert refused.content[0].text.startswith("ask has no argument 'ladder'; it takes predictions,")
    assert (standing["released"], standing["asked"]) == (0.3, 1)
    assert [ladder.name for ladder in served.guard.status().ladders] == ["", "agent 7"]


def test_refusals_are_listed_and_free(run_in_process, served):
    columns = {"id": [0, 0, 999], "prediction": [1, None, "x"]}

    async def agent(client):
        messages = []
        for arguments in [
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
            result = await client.call_tool("ask", arguments)
            assert result.is_error, arguments
            assert result.structured_content is None
            messages.append(result.content[0].text)
        unknown_tool = await client.call_tool("look", {})
        return messages, unknown_tool

    messages, unknown_tool = run_in_process(agent, served.url)
    assert messages[0].startswith("The holdout has 200 rows; the predictions have 3.")
    assert "- 1 unknown id: 999." in messages[1].splitlines()
    assert "problems were found:" in messages[1]
    assert "is missing: 200 rows" in messages[2]
    assert messages[3].startswith("Give predictions.")
    assert "--folder" in messages[4]
    assert all(message.endswith("\nNothing was spent.") for message in messages)
    assert not any("Traceback" in message or "File " in message for message in messages)
    assert unknown_tool.is_error
    assert "ask, standing, budget" in unknown_tool.content[0].text
    assert served.guard.remaining == 10


def test_too_many_values_are_refused_before_they_are_sent(run_over_stdio, served):
    async def agent(client):
        huge = await client.call_tool("ask", {"predictions": [0] * 1_000_001})
        large = await client.call_tool("ask", {"predictions": [0] * 999_999})
        alive = await client.call_tool("budget", {})
        return huge.content[0].text, large.content[0].text, alive.structured_content["used"]

    huge, large, used = run_over_stdio(agent, served.url)
    assert "at most 1,000,000 values; got 1,000,001" in huge
    assert "The array holds 999999 rows" in large
    assert used == 0


def test_standing_names_the_winner_after_the_budget_is_spent(run_in_process, served, labels):
    async def agent(client):
        for count in range(60, 80):
            arguments = {"predictions": with_errors(labels, count), "name": f"{count} wrong"}
            result = await client.call_tool("ask", arguments)
            if result.is_error:
                break
        budget = await client.call_tool("budget", {})
        standing = await client.call_tool("standing", {})
        return result.content[0].text, budget.structured_content, standing.structured_content

    refused, budget, standing = run_in_process(agent, served.url)
    assert refused.endswith("report the model that standing names.")
    assert (budget["remaining"], budget["open"]) == (0, False)
    assert standing["winner"] == {"question": 1, "name": "60 wrong"}


def test_concurrent_calls_keep_to_the_budget(run_over_stdio, served, labels):
    """Of twenty concurrent calls, ten are answered, each with its own question."""

    async def agent(client):
        results = []

        async def ask(count):
            results.append(
                await client.call_tool("ask", {"predictions": with_errors(labels, count)})
            )

        async with anyio.create_task_group() as group:
            for count in range(20):
                group.start_soon(ask, count)
        return results

    results = run_over_stdio(agent, served.url)
    replies = [result.structured_content for result in results if not result.is_error]
    assert sorted(result["question"] for result in replies) == list(range(1, 11))
    assert len(results) == 20
    assert served.guard.meter.used == 10


def test_a_restarted_guard_answers_again(run_over_stdio, served, labels):
    served.stop()

    async def agent(client):
        results = [[tool.name for tool in (await client.list_tools()).tools]]
        results.append(await client.call_tool("budget", {}))
        await anyio.to_thread.run_sync(served.start)
        results.append(await client.call_tool("ask", {"predictions": with_errors(labels, 50)}))
        await anyio.to_thread.run_sync(served.stop)
        results.append(await client.call_tool("ask", {"predictions": with_errors(labels, 40)}))
        await anyio.to_thread.run_sync(served.start)
        results.append(await client.call_tool("ask", {"predictions": with_errors(labels, 40)}))
        return results

    tools, early, first, between, last = run_over_stdio(agent, served.url)
    assert tools == ["ask", "standing", "budget"]
    assert early.is_error
    assert between.is_error
    assert "cannot be reached" in between.content[0].text
    assert "never cost twice" in between.content[0].text
    assert first.structured_content["question"] == 1
    assert last.structured_content["question"] == 2


def test_a_closed_guard_refuses_questions(run_in_process, served, labels):
    served.guard.close_for_good()

    async def agent(client):
        message = await client.call_tool("ask", {"predictions": with_errors(labels, 50)})
        return message.content[0].text, (await client.call_tool("budget", {})).structured_content

    message, budget = run_in_process(agent, served.url)
    assert "Stop asking" in message
    assert not budget["open"]


def test_a_mechanism_that_withholds_its_value(run_in_process, serve, labels, tmp_path):
    guard = lb.Holdout.create(
        tmp_path / "bit.db", labels, questions=5, mechanism=lb.mechanism("one_bit", step=0.02)
    )

    async def agent(client):
        reply = await client.call_tool("ask", {"predictions": with_errors(labels, 50)})
        return reply.structured_content, await client.call_tool("standing", {})

    reply, standing = run_in_process(agent, serve(guard).url)
    assert (reply["released"], reply["improved"]) == (None, True)
    assert standing.structured_content["winner"]["question"] == 1
    assert "the best is withheld" in standing.content[0].text


def test_surrogates_and_nan_do_not_end_the_connection():
    """A faulty server may send an unpaired surrogate or NaN."""
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


@pytest.fixture
def served_gate(serve, tmp_path, labels):
    gate = lb.Gate.create(tmp_path / "gate.db", labels, looks=4)
    gate.promote(with_errors(labels, 60))
    return serve(gate)


def test_an_agent_checks_at_a_gate_and_knows_its_winner(run_over_stdio, served_gate, labels):
    async def agent(client):
        verdicts = []
        for name, count in [("a", 59), ("b", 20), ("b", 20), ("c", 61)]:
            arguments = {"predictions": with_errors(labels, count), "name": name}
            verdicts.append((await client.call_tool("check", arguments)).structured_content)
        return (
            verdicts,
            await client.call_tool("standing", {}),
            await client.call_tool("budget", {}),
        )

    verdicts, standing, budget = run_over_stdio(agent, served_gate.url, "--gate")
    assert [(verdict["outcome"], verdict["again"]) for verdict in verdicts] == [
        ("cannot_tell", False), ("better", False), ("better", True), ("cannot_tell", False)
    ]  # fmt: skip
    assert standing.structured_content["winner"] == {"look": 2, "name": "b"}
    assert "The model to report is that of look 2, 'b'." in standing.content[0].text
    assert budget.content[0].text == "3 of 4 looks used; 1 left."
    named = [verdicts[0], standing.structured_content, budget.structured_content]
    assert not [name for content in named for name in content if f"`{name}`" not in PAGE]


def test_an_agent_at_a_gate_can_only_check(run_in_process, served_gate, labels):
    async def agent(client):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        arguments = {"predictions": with_errors(labels, 1), "margin": 0.9}
        return tools, await client.call_tool("check", arguments)

    tools, refused = run_in_process(agent, served_gate.url, gate=True)
    assert tools == ["check", "standing", "budget"]
    assert refused.is_error
    assert "no argument" in refused.content[0].text
    assert served_gate.guard.remaining == 4
