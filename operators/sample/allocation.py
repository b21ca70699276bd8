"""Sharing out a number of rows: largest remainders, with limits, in exact arithmetic.

Source: Hamilton's method of apportionment; quotas are computed in fractions, so that no rounding decides a tie.
"""

from collections.abc import Sequence
from fractions import Fraction


def largest_remainder(weights: Sequence[float], total: int) -> list[int]:
    """Whole shares of `total` in proportion to `weights`, each within 1 of its quota, summing to `total`.

    Args:
        weights: non-negative; with a positive sum unless `total` is 0.
        total: what is shared out. Equal remainders are settled in favour of the earlier entry.
    """
    exact = [Fraction(weight) for weight in weights]
    whole = sum(exact)
    if not whole:
        return [0] * len(weights)
    quotas = [total * weight / whole for weight in exact]
    shares = [int(quota) for quota in quotas]
    by_remainder = sorted(range(len(weights)), key=lambda index: (shares[index] - quotas[index], index))
    for index in by_remainder[: total - sum(shares)]:
        shares[index] += 1
    return shares


def allocate(weights: Sequence[float], total: int, limits: Sequence[int]) -> list[int]:
    """As `largest_remainder`, but no share exceeds its limit; what is cut off is shared out among the others.

    Returns:
        Shares summing to the smaller of `total` and the limits of all entries with a positive weight.
    """
    shares = [0] * len(weights)
    open_entries = [index for index, weight in enumerate(weights) if weight > 0 and limits[index] > 0]
    left = min(total, sum(limits[index] for index in open_entries))
    while left and open_entries:
        proposal = largest_remainder([weights[index] for index in open_entries], left)
        over = [i for i, n in zip(open_entries, proposal, strict=True) if n >= limits[i]]
        if not over:
            for index, share in zip(open_entries, proposal, strict=True):
                shares[index] = share
            break
        for index in over:
            shares[index] = limits[index]
            left -= limits[index]
        open_entries = [index for index in open_entries if index not in set(over)]
    return shares
