"""How much each row's next optimizer step would help each target subtask: the signal of LESS.

`similarity[i, j] = cos(feature of row i, mean target gradient of subtask j)` (Xia et al., ICML 2024, arXiv 2402.04333).
The targets come first; their directions (subtasks x dimension) are shared by all ranks, each of which then measures its
own rows against them. No features are stored and only n x subtasks numbers are gathered, so memory does not grow with
the number of rows. Because the directions are known before the rows are measured, `projection: none` gives the
un-projected cosine at less cost than projecting; it needs one copy of the trainable parameters per subtask, so `auto`
does so while these are small.
Cost: forward and backward of targets and rows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from pydantic import Field

from datamill.errors import DatamillError, ExitCode
from datamill.training.contracts import (
    DUMMY_ID,
    AdamMoments,
    Ids,
    Params,
    ScoringContext,
    ScoringRows,
    SignalTable,
    Values,
    provider,
)
from datamill.training.signals.adam_features import Compat, adam_feature, missing_moments
from datamill.training.signals.batches import ScoringBatch, iterate, plan_batches
from datamill.training.signals.guard import scoring_guard
from datamill.training.signals.per_sample_gradients import per_sample_gradients, trainable_linears, trainable_names
from datamill.training.signals.projection import Projection, ProjectionKind, make_projection

Transform = Callable[[str, torch.Tensor], torch.Tensor]
Reduce = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
Directions = dict[str, torch.Tensor]
"""By piece of the feature (a parameter, or `PROJECTED`): (subtasks, coordinates)."""
PROJECTED = "projected features"


class GradSimilarityParams(Params):
    """What is compared, and how finely."""

    gradient_type: Literal["adam", "sgd"] = Field(
        "adam", description="optimizer's step of a row, or its plain gradient"
    )
    projection: ProjectionKind = Field(
        "auto", description="none (exact), sjlt (sparse), rademacher (dense, slow), auto"
    )
    proj_dim: int = Field(8192, ge=1, description="dimension of projected features")
    seed: int = Field(42, description="seed of the projection")
    compat: Compat = Field("none", description="reproduce the official code or DataFlex in place of the paper")


@provider("grad_similarity", params=GradSimilarityParams)
class GradSimilarityProvider:
    """Signal `grad_similarity`: (n, subtasks) cosines in -1 .. 1, NaN for a row without supervised tokens."""

    key = "grad_similarity"

    def __init__(self, params: GradSimilarityParams) -> None:
        self.params = params

    def check(self, context: ScoringContext) -> None:
        """Refuse what cannot be scored by measuring the shortest row once.

        Raises:
            DatamillError: `DM-SIG-101` (packing), `-102` (layers), `-105` (targets), `-107` (nothing trainable).
        """
        _targets(context)
        names = trainable_names(context.model)
        trainable_linears(context.model)
        shortest = plan_batches(context.rows.ids, context.rows.lengths, 1)[-1:]
        with scoring_guard(context.model):
            for tensors, _, _ in iterate(context, _only(context.rows, shortest)):
                per_sample_gradients(context.model, names, tensors, lambda _name, _gradient: None)

    def compute(self, context: ScoringContext) -> SignalTable:
        """Similarities of `context.rows`, the same for every batch size, order and world size up to rounding.

        Raises:
            DatamillError: as `check`, and `DM-SIG-104` (no optimizer state), `DM-SIG-106` (a subtask without gradient).
        """
        targets = _targets(context)
        names = trainable_names(context.model)
        layers = trainable_linears(context.model)
        sizes = _sizes(layers, names)
        projection = make_projection(
            self.params.projection, self.params.proj_dim, self.params.seed, sum(sizes.values())
        )
        with scoring_guard(context.model):
            directions = _directions(context, targets, names, projection, self.params.compat)
            ids, values = _similarities(context, names, projection, directions, self._map(context.moments))
        local = SignalTable(self.key, ids, values)
        return (context.gather(local) if context.gather else local).sorted()

    def _map(self, moments: Mapping[str, AdamMoments] | None) -> Transform:
        if self.params.gradient_type == "sgd":
            return _plain

        def adam(name: str, gradient: torch.Tensor) -> torch.Tensor:
            if moments is None or name not in moments:
                raise missing_moments(name)
            return adam_feature(gradient, moments[name], name, self.params.compat)

        return adam


def _plain(_name: str, gradient: torch.Tensor) -> torch.Tensor:
    return gradient


def _targets(context: ScoringContext) -> ScoringRows:
    targets = context.targets
    if targets is None or not len(targets.ids):
        raise DatamillError(
            "DM-SIG-105",
            "gradients are compared with those of target rows, and there are none",
            exit_code=ExitCode.INVALID,
            field="target_dataset",
            fix="name a target_dataset (or an eval_dataset)",
        )
    return targets


def _only(rows: ScoringRows, batches: list[ScoringBatch]) -> ScoringRows:
    kept = np.isin(rows.ids, [row for batch in batches for row in batch.ids])
    return ScoringRows(rows.ids[kept], rows.lengths[kept], rows.collate)


def _sizes(layers: Mapping[str, Any], names: Sequence[str]) -> dict[str, int]:
    """Coordinates by parameter, from the layers' own sizes: a sharded parameter does not know its shape."""
    sizes = {}
    for name in names:
        layer = layers[name.rpartition(".")[0]]
        sizes[name] = layer.out_features * (layer.in_features if name.endswith(".weight") else 1)
    return sizes


class _Features:
    """Maps and, where asked, projects the gradients of one batch; each finished piece goes to `emit`."""

    def __init__(
        self,
        transform: Transform,
        projection: Projection | None,
        emit: Callable[[str, torch.Tensor], None],
    ) -> None:
        self.transform = transform
        self.projection = projection
        self.emit = emit
        self.projected: torch.Tensor | None = None

    def receive(self, name: str, gradient: torch.Tensor) -> None:
        """Take one parameter's (samples, *shape) gradients."""
        values = self.transform(name, gradient).flatten(1)
        if self.projection is None:
            self.emit(name, values)
            return
        part = self.projection.project(name, values)
        self.projected = part if self.projected is None else self.projected + part

    def finish(self) -> None:
        """The batch is done."""
        if self.projected is not None:
            self.emit(PROJECTED, self.projected)
            self.projected = None


def _directions(
    context: ScoringContext, targets: ScoringRows, names: Sequence[str], projection: Projection | None, compat: Compat
) -> Directions:
    """Unit mean gradient of each subtask; with `compat`, the mean of the targets' unit gradients."""
    one_group = targets.groups is None or compat == "dataflex"
    groups = np.zeros(len(targets.ids), np.int64) if one_group else np.asarray(targets.groups, dtype=np.int64)
    sums = GroupSums(int(groups.max()) + 1)
    group_of = dict(zip(targets.ids.tolist(), groups.tolist(), strict=True))
    for batch, samples, rows in iterate(context, targets):
        sums.members([group_of[row] if sample != DUMMY_ID else -1 for sample, row in zip(samples, rows, strict=True)])
        pieces: Directions = {}
        features = _Features(_plain, projection, sums.add if compat == "none" else pieces.__setitem__)
        per_sample_gradients(context.model, names, batch, features.receive)
        features.finish()
        if pieces:
            squares = torch.stack([piece.double().square().sum(1) for piece in pieces.values()]).sum(0)
            for name, piece in pieces.items():
                sums.add(name, piece / squares.sqrt().clamp(min=1e-30).to(piece)[:, None])
    return sums.directions(context.reduce, unit=compat == "none")


class GroupSums:
    """Sums of feature pieces by subtask, in float64, over all batches of this rank."""

    def __init__(self, groups: int) -> None:
        self.sums: Directions = {}
        self.counts = torch.zeros(groups, dtype=torch.float64)
        self.member = torch.zeros(groups, 0)

    def members(self, groups: Sequence[int]) -> None:
        """Subtask of each sample of the batch to come, -1 for none."""
        numbers = torch.arange(len(self.counts))
        self.member = (torch.as_tensor(groups)[None, :] == numbers[:, None]).double()
        self.counts += self.member.sum(1)

    def add(self, name: str, values: torch.Tensor) -> None:
        """Add one piece of the batch, (samples, coordinates)."""
        part = (self.member.to(values) @ values).double()
        self.sums[name] = self.sums[name] + part if name in self.sums else part

    def directions(self, reduce: Reduce | None, *, unit: bool) -> Directions:
        """(subtasks, coordinates) by piece, of the rows of all ranks: sums of unit length, or means."""
        names = sorted(self.sums)
        counts, *totals = (self.counts, *(self.sums[name] for name in names))
        if reduce is not None:
            counts, *totals = (torch.from_numpy(reduce(part.cpu().numpy())).to(part) for part in (counts, *totals))
        norms = torch.stack([total.square().sum(1) for total in totals]).sum(0).sqrt().cpu()
        if not bool(((counts > 0) & (norms > 0) & norms.isfinite()).all()):
            bad = [group for group in range(len(counts)) if not (counts[group] > 0 and 0 < norms[group] < np.inf)]
            raise DatamillError(
                "DM-SIG-106",
                f"target subtasks {bad} have no gradient to compare with",
                expected="in every subtask at least one target with supervised tokens, and a finite loss",
                fix="check the target rows' length against cutoff_len",
            )
        scale = 1 / (norms if unit else counts)
        return {name: total * scale.to(total)[:, None] for name, total in zip(names, totals, strict=True)}


def _similarities(
    context: ScoringContext,
    names: Sequence[str],
    projection: Projection | None,
    directions: Directions,
    transform: Transform,
) -> tuple[Ids, Values]:
    """Sample ids of this rank and their (n, subtasks) cosines with the directions."""
    subtasks = len(next(iter(directions.values())))
    ids: list[Ids] = [np.empty(0, np.int64)]
    cosines: list[Values] = [np.empty((0, subtasks))]
    typed: Directions = {}
    for batch, samples, _ in iterate(context, context.rows):
        sums = Cosines(directions, typed)
        features = _Features(transform, projection, sums.add)
        losses = per_sample_gradients(context.model, names, batch, features.receive)
        features.finish()
        real = samples != DUMMY_ID
        ids.append(samples[real])
        cosines.append(sums.values(losses)[real])
    return np.concatenate(ids), np.concatenate(cosines)


class Cosines:
    """Inner products with the directions and squared lengths of one batch, piece by piece."""

    def __init__(self, directions: Directions, typed: Directions) -> None:
        self.directions = directions
        self.typed = typed
        self.products: torch.Tensor | None = None
        self.squares: torch.Tensor | None = None

    def add(self, name: str, values: torch.Tensor) -> None:
        """Take one piece of the features, (samples, coordinates)."""
        if name in self.directions:
            if name not in self.typed:
                self.typed[name] = self.directions[name].to(values).t().contiguous()
            product = (values @ self.typed[name]).double()
            self.products = product if self.products is None else self.products + product
        square = torch.linalg.vector_norm(values, dim=1).double().square()
        self.squares = square if self.squares is None else self.squares + square

    def values(self, losses: torch.Tensor) -> Values:
        """(samples, subtasks) cosines; NaN where the loss is."""
        subtasks = len(next(iter(self.directions.values())))
        if self.squares is None:
            return np.full((len(losses), subtasks), np.nan)
        products = self.squares.new_zeros(len(losses), subtasks) if self.products is None else self.products
        cosines = products / self.squares.sqrt().clamp(min=1e-300)[:, None]
        return np.asarray(cosines.masked_fill(losses.isnan()[:, None], torch.nan).cpu())
