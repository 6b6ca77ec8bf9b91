"""PyTorch Lightning: pick for a module, and train it on the resulting `Subset`.

python examples/with_lightning.py
"""

import logging
import warnings

import lightning
import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset, random_split

import evgp

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")  # on workers and devices


class Net(lightning.LightningModule):
    """A small convolutional network."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 10)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


lightning.seed_everything(0, verbose=False)
digits = load_digits()
images = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None]
data = TensorDataset(images, torch.tensor(digits.target))
pool, test = random_split(data, [600, len(data) - 600])

chosen = evgp.datasets.subset(pool, evgp.pick(pool, k=60, network=Net()))
drawn = Subset(pool, np.random.default_rng(0).choice(600, 60, replace=False).tolist())

for name, part in (("EV-GP", chosen), ("random", drawn)):
    lightning.seed_everything(1, verbose=False)
    net = Net()
    trainer = lightning.Trainer(max_epochs=30, accelerator="cpu", logger=False, barebones=True)
    trainer.fit(net, DataLoader(part, batch_size=20, shuffle=True))
    x, y = next(iter(DataLoader(test, batch_size=len(test))))
    right = float((net.eval()(x).argmax(1) == y).float().mean())
    print(f"{name:<6}  {len(part)} labels, accuracy on {len(test)} digits: {right:.3f}")
