"""A sensor table: which hours of two machines to inspect. The readings are made by this script.

Times become numbers and cyclic parts, the machine is a category, and gaps are filled.

python examples/sensors.py FOLDER
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
random = np.random.default_rng(0)
hours = pd.date_range("2024-03-01", periods=14 * 24, freq="h")
parts = []
for machine, (base, load) in {"press": (45.0, 8.0), "mill": (55.0, 5.0)}.items():
    day = np.sin(2 * np.pi * (hours.hour.to_numpy() - 8) / 24)
    warm = base + load * day + random.normal(0, 0.8, len(hours))
    shaking = np.exp(0.3 * day + random.normal(0, 0.15, len(hours)))
    if machine == "mill":
        shaking[200:210] *= 3.5  # a loose bolt
        warm[290:300] -= 18  # switched off
    parts.append(
        pd.DataFrame({"time": hours, "machine": machine, "warm": warm, "shaking": shaking})
    )
table = pd.concat(parts, ignore_index=True)
table.loc[random.choice(len(table), 12, replace=False), "warm"] = np.nan

data = evgp.read_pool(table, impute=True)
print(*data.notes, sep="\n")
picked = evgp.pick(data, k=24)
print(picked)
print(table.iloc[picked.indices[:5]].to_string(index=False))

figure, axes = plt.subplots(2, 2, figsize=(8, 3.6), sharex=True, sharey="row", layout="constrained")
rows = pd.Series(range(len(table)))
for place, (machine, part) in enumerate(table.groupby("machine", sort=False)):
    chosen = part.loc[rows[part.index].isin(picked.indices)]
    for axis, name in zip(axes[:, place], ("warm", "shaking"), strict=True):
        axis.plot(part["time"], part[name], lw=0.7, color="0.6")
        axis.plot(chosen["time"], chosen[name], "o", ms=4, color="tab:blue")
    axes[0, place].set_title(machine, fontsize=10)
    axes[1, place].xaxis.set_major_locator(plt.MaxNLocator(4))
axes[0, 0].set_ylabel("temperature, °C")
axes[1, 0].set_ylabel("vibration, mm/s")
figure.savefig(folder / "sensors.png", dpi=90)
