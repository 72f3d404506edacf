"""A network small enough to train in a second."""

from __future__ import annotations

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

from support.adapters.training_data import make_sample

QUIET_TRAINER = {
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
    "log_every_n_steps": 1,
}


class SmallNet(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(10, 16), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1)
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)

    def loss(self, batch):
        x, y = batch
        return torch.nn.functional.binary_cross_entropy_with_logits(self(x), y)

    def training_step(self, batch, _):
        return self.loss(batch)

    def validation_step(self, batch, _):
        self.log("val_loss", self.loss(batch), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.02)


def make_loader(x, y, **settings):
    data = TensorDataset(torch.from_numpy(x), torch.from_numpy(y).float())
    return DataLoader(data, batch_size=50, **settings)


def make_loaders():
    """Return the loaders for training and validation."""
    return make_loader(*make_sample(400, 1), shuffle=True), make_loader(*make_sample(500, 2))


def predict_classes(module, x):
    """Return predicted classes."""
    return (module(torch.from_numpy(x)) > 0).int()
