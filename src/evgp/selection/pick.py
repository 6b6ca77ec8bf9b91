"""The front door: from an array, a dataset or files to a selection."""

from evgp.pool import Selection
from evgp.selection.plan import asking, planned
from evgp.selection.request import Request


@asking(Request.of)
def pick(request: Request) -> Selection:
    """Which k rows of x to label, in which order, before any label exists.

    `x` is an array or tensor, one point a row; a pandas or polars frame or an Arrow table; a torch
    `Dataset` or `DataLoader`, or a Hugging Face dataset, whose labels are left aside; the path of a
    file (CSV, Parquet, ...) or of a folder of images; or `evgp.read_pool(...)`. Picks are positions
    in it. A folder of Parquet, Arrow or npy files, a file too large for memory, or
    `evgp.open_pool(...)` stays on the disk: see "sharded". Of the columns of a table, `id` names
    the rows, `drop` are left out, `impute` fills cells without a value, and words are at most
    `max_categories`; `costs` may be a column.

    The test points are `x_test` (with `test_weights`), or the pool itself; `thin` keeps that many
    of them by k-means++. `labelled` are rows already labelled (or a file of them), `x_labelled`
    labelled points outside the pool, `candidates` the only rows that may be picked. With `costs`
    (one price a row) and a `budget`, picks stay within the money. `standardise` scales each column
    to mean 0 and standard deviation 1 over the pool (each channel, for images) and drops constant
    ones. `noise` is a fraction of the mean prior variance. `network` is an `mlp`, whose exact
    infinite-width NTK is used, or anything that `EmpiricalNTK` takes: a torch module, a function
    that makes one, a `cnn`; or a name ("resnet18", a plugin's, "package.module:name"). `kernel`
    takes its place: an object, or a name ("nngp", ...). `features` take the place of the pool x
    test matrix where that would be too large: "nystrom-512" (inducing points of the kernel),
    "sketch-512" (of a torch module's gradients), "raw" (the inputs themselves, unscaled, such as
    embeddings), or any `Features`; None uses them only where the matrix would not fit, and says so.

    `method` is "dense" (the matrix), "features" (in memory), "sharded" (features on the disk, a
    block at a time), or "auto": the first that fits in `memory` (such as "2GB"; by default most of
    what is free). `storage` is the type of the large matrix: "float64", "float32", or "auto", which
    is float32 only where float64 would not fit. Shards lie in `cache`, and stay there; without it
    they go when the picks are made, and a run that was stopped goes on where it was. An `executor`,
    such as that of `evgp.integrations.dask`, has them worked on elsewhere. `evgp.plan` estimates
    what a run costs; one that would not fit is refused before it starts. `progress=True` shows a
    bar, in a terminal or a notebook; a function is called with the stage, how much of it is done,
    and of how much. `labelled` and `candidates` may be selections of the same pool. The same `seed`
    gives the same picks; it is 0 unless given, and `random_state` is another word for it.

    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(100, 3))
    >>> pick(x, k=5).indices.shape
    (5,)
    """
    return planned(request).run()
