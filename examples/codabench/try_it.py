"""Try the bundle without Codabench: a served guard, two teams, the program's own command."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import ladderboard as lb

HERE = Path(__file__).parent
WORDS = {"alpha": "quiet-otter-5b1e9c", "beta": "green-piano-7d30aa"}
LABELS = [0, 1] * 200
COMMAND = (HERE / "scoring_program/metadata.yaml").read_text().split(maxsplit=2)[2]

with tempfile.TemporaryDirectory() as folder:
    app, file = Path(folder), Path(folder, "guard.db")
    lb.Holdout.create(file, LABELS, questions=20, ladders=2, mechanism=lb.Ladder(step=0.02)).close()
    url = f"unix:{app / 'guard.sock'}"
    serve = [sys.executable, "-m", "ladderboard", "guard", "serve", str(file), "--socket", url[5:]]
    guard = subprocess.Popen([*serve, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    guard.stdout.readline()  # it prints its address once it listens
    shutil.copytree(HERE / "scoring_program", app / "program")
    (app / "input/ref").mkdir(parents=True)
    settings = {"guard": url, "teams": {word: team for team, word in WORDS.items()}}
    (app / "input/ref/ladderboard.json").write_text(json.dumps(settings))
    print(f"{'team':>6} {'wrong':>6} {'released':>9} {'improved':>9} {'remaining':>10}")
    for team, wrong in [("alpha", 80), ("beta", 120), ("alpha", 40), ("beta", 160)]:
        (app / "input/res").mkdir(exist_ok=True)
        (app / "input/res/team.txt").write_text(WORDS[team])
        rows = "\n".join(str(y ^ (i < wrong)) for i, y in enumerate(LABELS))
        (app / "input/res/predictions.csv").write_text(f"prediction\n{rows}\n")
        run = [sys.executable, *COMMAND.replace("/app", str(app)).split()]
        subprocess.run(run, cwd=app / "program", stdout=subprocess.DEVNULL, check=True)
        row = json.loads((app / "output/scores.json").read_text())
        print("{:>6} {:>6} {released:>9} {improved:>9} {remaining:>10}".format(team, wrong, **row))
    guard.terminate()
    guard.communicate()
