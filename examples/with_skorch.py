"""skorch: pick for the network that will be trained, then train it on the picks.

python examples/with_skorch.py
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from skorch import NeuralNetClassifier
from torch import nn

import evgp

x, y = load_digits(return_X_y=True)
x = (x / 16).astype(np.float32)
x, x_test, y, y_test = train_test_split(x, y, train_size=1000, random_state=0, stratify=y)


class Net(nn.Module):
    """One hidden layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


# Uses the kernel of the network at initialisation; no labels are needed.
selection = evgp.pick(x, k=60, network=Net, scale=None)


def accuracy(rows: np.ndarray, seed: int) -> float:
    torch.manual_seed(seed)
    net = NeuralNetClassifier(
        Net, criterion=nn.CrossEntropyLoss, optimizer=torch.optim.Adam, lr=0.01, max_epochs=60,
        train_split=None, verbose=0,
    )  # fmt: skip
    return float(net.fit(x[rows], y[rows]).score(x_test, y_test))


random = np.random.default_rng(0)
draws = [random.choice(len(x), 60, replace=False) for _ in range(3)]
print(f"60 labels, 5 networks per set: mean and std of the accuracy on {len(x_test)} digits")
for name, sets in (("EV-GP", [selection.indices]), ("random", draws)):
    found = np.array([[accuracy(rows, seed) for seed in range(5)] for rows in sets])
    print(f"{name:7} {found.mean():.3f}  {found.std(axis=1).mean():.3f}")
