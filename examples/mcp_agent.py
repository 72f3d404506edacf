"""An agent at a guard, over MCP (extras guard and mcp): it asks about its own records."""

import subprocess
import sys
import tempfile

import anyio
import numpy as np
from mcp import Client, StdioServerParameters

import ladderboard as lb


async def search(url: str, truth: np.ndarray) -> None:
    """Try forty models; the first 500 labels are the agent's, the guard has the others."""
    rng, record, rows = np.random.default_rng(0), 1.0, ["model own_score question improved best"]
    tools = StdioServerParameters(command=sys.executable, args=["-m", "ladderboard", "mcp", url])
    async with Client(tools) as client:
        for model, skill in enumerate(rng.uniform(0.2, 0.5, 40)):
            guess = truth ^ (rng.random(2000) < skill)
            if (score := float(np.mean(guess[:500] != truth[:500]))) < record:
                arguments = {"predictions": guess[500:].tolist(), "name": f"#{model}"}
                reply = (await client.call_tool("ask", arguments)).structured_content
                answer = f"{reply['question']:8} {reply['improved']!s:>8} {reply['released']:.2f}"
                record, rows = score, [*rows, f"{model:5} {score:9.3f} {answer}"]
        print((await client.call_tool("standing")).content[0].text, *rows, sep="\n")


with tempfile.TemporaryDirectory() as folder:
    labels, socket = np.random.default_rng(1).integers(2, size=2000), f"{folder}/guard.sock"
    lb.Holdout.create(f"{folder}/guard.db", labels[500:], questions=50).close()
    serve = ["-m", "ladderboard", "guard", "serve", f"{folder}/guard.db", "--socket", socket]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, *serve], **quiet) as guard:
        try:
            print(guard.stdout.readline().decode())  # it listens now
            anyio.run(search, f"unix:{socket}", labels)
        finally:
            guard.terminate()
