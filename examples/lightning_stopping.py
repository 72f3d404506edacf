"""A training with Lightning that a guard stops; the winner's checkpoint is kept."""

import tempfile

import lightning
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset

import ladderboard as lb
from ladderboard.adapters.lightning import GuardStopping


class Net(torch.nn.Sequential, lightning.LightningModule):
    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        self.log("val_loss", self.training_step(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


x = torch.randn(11_500, 11, generator=torch.Generator().manual_seed(1))
data = TensorDataset(x[:, 1:], (torch.sum(x[:, 1:4] ** 2, dim=1) + x[:, 0] > 2.4).long())
loaders = [DataLoader(Subset(data, rows), 50) for rows in (range(500), range(500, 1_500))]
x_holdout, y_holdout = data[1_500:]  # the labels go to the guard, and nowhere else
net = Net(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
with tempfile.TemporaryDirectory() as folder:
    guard = lb.Holdout.create(f"{folder}/guard.db", y_holdout.numpy(), questions=100)
    settings = {"run": "32 units", "monitor": "val_loss", "patience": 8, "min_delta": 0.01}
    stopping = GuardStopping(guard, lambda net: net(x_holdout).argmax(dim=1), **settings)
    quiet = {"logger": False, "enable_progress_bar": False, "default_root_dir": folder}
    trainer = lightning.Trainer(accelerator="cpu", max_epochs=60, callbacks=[stopping], **quiet)
    trainer.fit(net, *loaders)
print(" step   valid loss   released   improved")
for row in stopping.judge.judgements:
    note = "yes, the winner" if row is stopping.winner else "yes" if row.improved else "no"
    print(f"{row.name:>5}{row.score:>13.4f}{row.reply.released:>11.3f}   {note}")
