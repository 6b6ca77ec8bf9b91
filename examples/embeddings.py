"""Embeddings from elsewhere: a Parquet file with a column of lists, as a vector store writes it.

The vectors are 16 principal components of scikit-learn's digits, in place of a model's.

python examples/embeddings.py FOLDER
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import evgp

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
digits = load_digits()
vectors = PCA(16, random_state=0).fit_transform(digits.data).astype("float32")
columns = {"key": [f"scan-{row}" for row in range(len(vectors))], "embedding": list(vectors)}
with TemporaryDirectory() as store:
    file = Path(store, "vectors.parquet")
    pq.write_table(pa.table(columns), file)
    picked = evgp.pick(file, k=20, id="key", column="embedding")
print(picked)
print(", ".join(picked.ids[:5]))

figure, axis = plt.subplots(figsize=(6, 4.2), layout="constrained")
x, y = vectors[:, :2].T
axis.scatter(x, y, s=3, color="0.75")
for row in picked.indices:
    picture = digits.images[row]
    axis.imshow(
        picture, cmap="gray_r", extent=(x[row] - 2, x[row] + 2, y[row] - 2, y[row] + 2), zorder=2
    )
axis.set(xlabel="first component", ylabel="second component", xlim=(-35, 35), ylim=(-32, 32))
figure.savefig(folder / "embeddings.png", dpi=90)
