"""Data of the paper by name, made-up data included."""

from evgp.datasets import Dataset, load, random_model, sinusoidal

# What figures call them.
TITLES = {
    "boston": "Boston",
    "naval": "Naval",
    "protein": "Protein",
    "kin8nm": "Robot Kinematics",
    "california": "California",
    "optdigits": "Handwritten Digits",
    "mnist": "MNIST",
    "emnist": "EMNIST",
    "svhn": "SVHN",
    "cifar100": "CIFAR-100",
    "sinusoidal": "Sinusoidal",
    "random-model": "Random Model",
}
_MADE_POOL = 2000


def dataset(
    name: str,
    seed: int,
    *,
    pool: int | None = None,
    test: int | None = None,
    task: str | None = None,
) -> Dataset:
    """One draw of a dataset; `pool` and `test` are the most points of each part.

    >>> dataset("sinusoidal", 0, pool=50, test=20)
    Dataset('sinusoidal', regression, pool 50 x 3, test 20)
    """
    if name in ("sinusoidal", "random-model"):
        size, rest = pool or _MADE_POOL, test or _MADE_POOL
        if name == "sinusoidal":
            return sinusoidal(size, 3, seed=seed, test=rest)
        return random_model(size, 8, seed=seed, test=rest)
    whole = load(name, seed=seed, task=task)
    n = None if pool is None or pool >= len(whole.x) else pool
    m = None if test is None or test >= len(whole.x_test) else test
    return whole if n is None and m is None else load(name, seed=seed, task=task, pool=n, test=m)
