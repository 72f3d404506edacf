"""The Trainer of Transformers with a callback over a judge: it stops, and the winner is kept."""

import tempfile
from typing import Any

import torch
import transformers as hf

import ladderboard as lb


def sample(n: int, seed: int) -> list[dict[str, Any]]:
    texts = torch.randint(6, (n, 9), generator=torch.Generator().manual_seed(seed))
    return [{"input_ids": x[1:], "labels": int(sum(x[1:] < 2) + (x[0] < 1) > 2)} for x in texts]


class GuardStopping(hf.TrainerCallback):
    def on_evaluate(self, *given: Any, metrics: dict[str, float], model: Any, **_: Any) -> None:
        predictions = trainer.predict(x_holdout).predictions.argmax(axis=1)
        verdict = judge.consider(metrics["eval_loss"], predictions, name=metrics["epoch"])
        if verdict is not None and verdict is judge.winner:
            model.save_pretrained(f"{folder}/winner")
        given[2].should_training_stop = judge.spent or judge.stale >= 3  # the patience


x_holdout = sample(2_000, 3)
y_holdout = [each.pop("labels") for each in x_holdout]  # go to the guard, and nowhere else
data = {"train_dataset": sample(600, 1), "eval_dataset": sample(1_000, 2)}
small = {"vocab_size": 6, "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
model = hf.BertForSequenceClassification(hf.BertConfig(**small, intermediate_size=32))
settings = {"eval_strategy": "epoch", "save_strategy": "no", "report_to": "none", "use_cpu": True}
settings |= {"per_device_train_batch_size": 50, "num_train_epochs": 12, "learning_rate": 0.01}
with tempfile.TemporaryDirectory() as folder:
    judge = lb.Judge(lb.Holdout.create(f"{folder}/guard.db", y_holdout, questions=50))
    how = hf.TrainingArguments(folder, **settings)
    trainer = hf.Trainer(model, how, **data, callbacks=[GuardStopping()])
    trainer.train()
for each in judge.verdicts:
    print(f"epoch {each.name:>4.0f}   {each.score:.4f}   {each.reply}")
