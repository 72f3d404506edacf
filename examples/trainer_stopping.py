"""The Trainer of Transformers with a callback over a judge: it stops, and the winner is kept."""

import tempfile
from typing import Any

import torch
import transformers as hf

import ladderboard as lb


class GuardStopping(hf.TrainerCallback):
    def on_evaluate(self, *args: Any, metrics: dict[str, float], model: Any, **_: Any) -> None:
        row = judge.consider(metrics["eval_loss"], self.predictions, name=metrics["epoch"])
        if row is not None and row is judge.winner:
            model.save_pretrained(f"{folder}/winner")
        args[2].should_training_stop = judge.budget_spent or judge.checks_without_improvement >= 3

    def predictions(self) -> Any:
        return trainer.predict(x_holdout).predictions.argmax(axis=1)


texts = torch.randint(6, (3_600, 9), generator=torch.Generator().manual_seed(1))
rows = [{"input_ids": x[1:], "labels": int(sum(x[1:] < 2) + (x[0] < 1) > 2)} for x in texts]
data, x_holdout = {"train_dataset": rows[:600], "eval_dataset": rows[600:1_600]}, rows[1_600:]
y_holdout = [row.pop("labels") for row in x_holdout]  # go to the guard, and nowhere else
small = {"vocab_size": 6, "hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
model = hf.BertForSequenceClassification(hf.BertConfig(**small, intermediate_size=32))
settings = {"eval_strategy": "epoch", "save_strategy": "no", "report_to": "none", "use_cpu": True}
settings |= {"per_device_train_batch_size": 50, "num_train_epochs": 12, "learning_rate": 0.01}
with tempfile.TemporaryDirectory() as folder:
    judge = lb.Judge(lb.Holdout.create(f"{folder}/guard.db", y_holdout, questions=50))
    arguments = hf.TrainingArguments(folder, **settings)
    trainer = hf.Trainer(model, arguments, **data, callbacks=[GuardStopping()])
    trainer.train()
print("epoch   valid loss   released   improved")
for row in judge.judgements:
    improved = "yes, the winner" if row is judge.winner else "yes" if row.improved else "no"
    print(f"{row.name:>5.0f}{row.score:>13.4f}{row.reply.released:>11.3f}   {improved}")
