"""What any kernel must pass."""

import torch

from evgp.kernels import Kernel


def obeys(kernel: Kernel, x: torch.Tensor) -> None:
    """All laws at once, on some points."""
    matrix = kernel(x)
    assert torch.equal(matrix, matrix.T), "symmetric to the bit"
    assert torch.equal(matrix.diagonal(), kernel.diag(x)), "the diagonal is the diagonal"
    assert float(torch.linalg.eigvalsh(matrix)[0]) > -1e-12 * float(matrix.trace())
    parts = torch.cat([kernel(x[:7], x), kernel(x[7:], x)])
    # arccos loses half the digits near coinciding points, so equality is up to 1e-8 there.
    assert torch.allclose(parts, matrix, rtol=1e-7, atol=1e-9), "chunks equal the whole"
    assert torch.allclose(kernel(x[:5], x[5:]), kernel(x[5:], x[:5]).T, rtol=1e-12)
    single = kernel(x.float())
    assert single.dtype == torch.float32 and kernel.diag(x.float()).dtype == torch.float32
    assert torch.allclose(single.double(), matrix, rtol=1e-5, atol=1e-6)
    assert isinstance(kernel(x.numpy()), type(x.numpy())), "NumPy in, NumPy out"
    assert kernel(x[:0], x).shape == (0, len(x))
