"""Reports losses as events and tells the method the learning rate of every step."""

from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback

from datamill.training.events import EventWriter


class EventCallback(TrainerCallback):  # type: ignore[misc]  # transformers has no type stubs
    """One `log` event for each of the trainer's logs, with whatever it measured."""

    def __init__(self, events: EventWriter) -> None:
        self._events = events

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        """Hand the trainer's numbers on."""
        self._events.emit("log", step=int(state.global_step), steps=int(state.max_steps), **(logs or {}))


class LearningRateCallback(TrainerCallback):  # type: ignore[misc]  # transformers has no type stubs
    """Calls back after the optimizer and before the scheduler, when the rate in force is the one just used."""

    def __init__(self, on_step: Callable[[], None]) -> None:
        self._on_step = on_step

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """One optimizer step was taken."""
        self._on_step()
