"""Linear algebra without points: arrays in, and columns brought to one scale."""

import numpy as np
import pytest
import torch

from evgp import NTK, mlp
from evgp._linalg import as_tensor, standardised

X = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
PLAIN = (X - X.mean(0)) / X.std(0, correction=0)


@pytest.mark.parametrize("size", [1.0, 1e200, 1e-200, 1e-310, -4e306])
def test_columns_have_mean_0_and_standard_deviation_1_whatever_their_size(size) -> None:
    # A number below 1e-308 has fewer digits, and so have its columns.
    exact = 1e-5 if size == 1e-310 else 1e-12
    sign = 1 if size > 0 else -1
    torch.testing.assert_close(standardised(size * X), sign * PLAIN, rtol=exact, atol=exact)


def test_an_offset_costs_the_digits_it_takes_and_no_more() -> None:
    torch.testing.assert_close(standardised(X + 1e9), PLAIN, rtol=1e-5, atol=1e-5)
    assert not standardised(X + 1e17).any()


def test_a_constant_column_becomes_zeros() -> None:
    x = X.clone()
    x[:, 1] = 0.1
    x[::2, 1] += 1e-16
    assert not standardised(x)[:, 1].any()
    assert standardised(x)[:, [0, 2]].equal(standardised(X)[:, [0, 2]])
    assert not standardised(torch.zeros(3, 2)).any() and not standardised(X[:1]).any()


def test_any_shape_and_any_floats_come_back_as_float64() -> None:
    assert standardised(X[:, 0].float()).dtype == torch.float64
    torch.testing.assert_close(standardised(X[:, 0]), PLAIN[:, 0])
    assert standardised(X.reshape(10, 5, 3)).shape == (10, 5, 3)


def test_arrays_that_torch_cannot_share_come_in_as_copies() -> None:
    plain = X.numpy()
    read_only, turned = plain.copy(), plain[::-1]
    read_only.flags.writeable = False
    for other in (read_only, plain.astype(">f8"), np.asfortranarray(plain), turned[::-1]):
        assert torch.equal(as_tensor(other), X)
    assert as_tensor(plain).data_ptr() == X.data_ptr()
    assert as_tensor(plain.astype(">i2")).dtype == torch.float64
    assert np.array_equal(NTK(mlp())(read_only), NTK(mlp())(plain))


def test_tensors_made_without_gradients_have_kernels() -> None:
    expected = NTK(mlp())(X)
    with torch.inference_mode():
        result = X * 1
        assert torch.equal(NTK(mlp())(result), expected)
    assert torch.equal(NTK(mlp())(result), expected)
