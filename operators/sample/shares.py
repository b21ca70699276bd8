"""Ratios and weights as people write them: `0.9, 0.05, 0.05`, `90/5/5`, or copied from a paper and off by a little.

Sums within `TOLERANCE` of 1 (or of 100, in percent) are rescaled to 1; anything further off is an error, because then
a share is missing or a number is wrong.
"""

from collections.abc import Sequence
from math import isfinite

TOLERANCE = 0.005


def normalized_shares(shares: Sequence[float]) -> tuple[float, ...]:
    """Shares that sum to 1.

    Raises:
        ValueError: for a negative or non-finite share, or a sum that is neither about 1 nor about 100.
    """
    for share in shares:
        if not isfinite(share) or share < 0:
            raise ValueError(f"{share} is not a share: shares are finite and not negative")
    total = sum(shares)
    for whole in (1.0, 100.0):
        if abs(total - whole) <= TOLERANCE * whole + 1e-12:
            return tuple(share / total for share in shares)
    raise ValueError(f"shares {', '.join(f'{share:g}' for share in shares)} sum to {total:g}, not to 1 or 100")
