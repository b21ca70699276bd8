"""Random projections whose every entry is a function of (seed, parameter name, coordinate).

Entries come from Philox 4x64 (Salmon et al., SC 2011; `numpy.random.Philox`), a counter-based generator: the key is a
digest of seed, method and parameter name, the counter the coordinate. World size, layer order, batch size and device
therefore cannot change a feature, and any block of the matrix can be made on its own.

`rademacher` is the dense reference, entries +-1/sqrt(d), cost 2 p d per sample. `sjlt` is the sparse
Johnson-Lindenstrauss transform (Kane and Nelson, arXiv 1012.1577): s entries +-1/sqrt(s) per coordinate, cost 2 p s.
Both preserve inner products on average with variance (|x|^2 |y|^2 + <x,y>^2 - 2 sum x_i^2 y_i^2) / d; s of 1 has that
variance, too, but rare large errors (two heavy coordinates in one place), which s of 4 avoids at little cost.
"""

import hashlib
import warnings
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import torch

ProjectionKind = Literal["auto", "sjlt", "rademacher", "none"]
_WORDS_PER_BLOCK = 4  # Philox 4x64 makes four 64-bit words for one counter value
_BLOCK_BYTES = 1 << 25
_CACHE_BYTES = 1 << 30
_EXACT_NUMBERS = 1 << 28


class Projection(Protocol):
    """A linear map from one parameter's coordinates into the common feature space."""

    dim: int

    def project(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """(samples, coordinates) of parameter `name` to (samples, dim); features of parameters add up."""


def random_words(seed: int, method: str, name: str, start: int, count: int) -> npt.NDArray[np.uint64]:
    """Words `start` .. `start + count - 1` of the stream that belongs to (seed, method, name)."""
    digest = hashlib.blake2b(f"{method}\0{seed}\0{name}".encode(), digest_size=16).digest()
    key = np.frombuffer(digest, dtype="<u8").astype(np.uint64)
    skipped = start % _WORDS_PER_BLOCK
    counter = np.array([start // _WORDS_PER_BLOCK, 0, 0, 0], dtype=np.uint64)
    words = np.random.Philox(key=key, counter=counter).random_raw(skipped + count)
    return np.asarray(words[skipped:], dtype=np.uint64)


class Rademacher:
    """Dense signs over sqrt(d), made block by block and never kept: the reference, slow by design."""

    def __init__(self, dim: int, seed: int) -> None:
        self.dim = dim
        self.seed = seed

    def entries(self, name: str, start: int, stop: int) -> npt.NDArray[np.float32]:
        """(stop - start, dim) rows of the matrix, scaled."""
        words_per_row = -(-self.dim // 64)
        words = random_words(self.seed, "rademacher", name, start * words_per_row, (stop - start) * words_per_row)
        bits = np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little").reshape(stop - start, -1)
        signs = bits[:, : self.dim].astype(np.float32) * 2 - 1
        return np.asarray(signs / np.float32(np.sqrt(self.dim)), dtype=np.float32)

    def project(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """See `Projection.project`."""
        features = values.new_zeros(len(values), self.dim)
        block = max(1, _BLOCK_BYTES // (4 * self.dim))
        for start in range(0, values.shape[1], block):
            stop = min(start + block, values.shape[1])
            features += values[:, start:stop] @ torch.from_numpy(self.entries(name, start, stop)).to(values)
        return features


class SparseJL:
    """`nonzeros` signs over sqrt(nonzeros) in each coordinate's row, at hashed places; kept while memory allows."""

    def __init__(self, dim: int, seed: int, nonzeros: int = 4) -> None:
        self.dim = dim
        self.seed = seed
        self.nonzeros = nonzeros
        self._matrices: dict[tuple[str, int, torch.dtype, torch.device], torch.Tensor] = {}
        self._kept = 0

    def entries(self, name: str, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Places (count, nonzeros) in 0 .. dim - 1 and signed values of the first `count` coordinates.

        The upper 32 bits of a word give the place by multiplication (Lemire 2019, bias below dim / 2^32), the lowest
        bit the sign.
        """
        words = random_words(self.seed, "sjlt", name, 0, count * self.nonzeros).reshape(count, self.nonzeros)
        places = ((words >> np.uint64(32)) * np.uint64(self.dim)) >> np.uint64(32)
        signs = (words & np.uint64(1)).astype(np.float64) * 2 - 1
        return places.astype(np.int64), signs / np.sqrt(self.nonzeros)

    def project(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """See `Projection.project`."""
        return (self._matrix(name, values) @ values.t().contiguous()).t()

    def _matrix(self, name: str, values: torch.Tensor) -> torch.Tensor:
        key = (name, values.shape[1], values.dtype, values.device)
        if key in self._matrices:
            return self._matrices[key]
        places, signs = self.entries(name, values.shape[1])
        matrix = _sparse_rows(places, signs, self.dim).to(values)
        size = places.size * (4 + matrix.element_size())
        if self._kept + size <= _CACHE_BYTES:
            self._matrices[key] = matrix
            self._kept += size
        return matrix


def _sparse_rows(places: npt.NDArray[np.int64], signs: npt.NDArray[np.float64], dim: int) -> torch.Tensor:
    """(dim, coordinates) compressed sparse rows; the order of summation is that of the coordinates."""
    narrow = places.ravel().astype(np.uint16) if dim <= 1 << 16 else places.ravel()  # 16 bits are sorted by radix
    order = np.argsort(narrow, kind="stable")
    starts = np.concatenate([[0], np.bincount(places.ravel(), minlength=dim).cumsum()])
    coordinates = order // places.shape[1]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(starts.astype(np.int32)),
            torch.from_numpy(coordinates.astype(np.int32)),
            torch.from_numpy(signs.ravel()[order]),
            size=(dim, len(places)),
            check_invariants=False,
        )


def make_projection(
    kind: ProjectionKind, dim: int, seed: int, coordinates: int, directions: int = 1
) -> Projection | None:
    """The projection asked for, or None where features are compared as they are.

    Args:
        kind: `none` never projects; `auto` projects (sjlt) only when the directions themselves would be large.
        dim: dimension of projected features.
        seed: seed of the projection.
        coordinates: trainable parameters; no more of them than `dim` are never projected.
        directions: vectors the features will be compared with; `auto` keeps them whole up to 2^28 numbers (1 GiB).
    """
    exact = kind == "none" or (kind == "auto" and coordinates * directions <= _EXACT_NUMBERS)
    if exact or coordinates <= dim:
        return None
    return Rademacher(dim, seed) if kind == "rademacher" else SparseJL(dim, seed)
