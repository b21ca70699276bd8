"""Exchange between ranks: what rank 0 decides goes to all, tables of all ranks become one. No-ops in one process."""

from typing import Any

import numpy as np
import numpy.typing as npt

from datamill.training.contracts import SignalTable


def world() -> tuple[int, int]:
    """Rank of this process and number of processes."""
    import torch.distributed as dist

    return (dist.get_rank(), dist.get_world_size()) if _several() else (0, 1)


def from_rank_zero(value: Any) -> Any:
    """`value` of rank 0, on every rank."""
    if not _several():
        return value
    import torch.distributed as dist

    box = [value if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def gather_table(table: SignalTable) -> SignalTable:
    """The rows of all ranks, on every rank."""
    if not _several():
        return table
    import torch.distributed as dist

    parts: list[SignalTable | None] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, table)
    return SignalTable.concat([part for part in parts if part is not None])


def reduce_sum(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sum over all ranks, added up in order of rank so that it does not depend on the network."""
    if not _several():
        return values
    import torch.distributed as dist

    parts: list[npt.NDArray[np.float64] | None] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, values)
    total = np.zeros_like(values)
    for part in parts:
        assert part is not None
        total += part
    return total


def _several() -> bool:
    import torch.distributed as dist

    return bool(dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1)
