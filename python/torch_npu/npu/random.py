"""Random numbers: those of the CPU, which is the npu."""

from __future__ import annotations

from typing import Any, List

import torch


def get_rng_state(device: Any = "npu") -> torch.Tensor:
    return torch.default_generator.get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = "npu") -> None:
    torch.default_generator.set_state(new_state)


def get_rng_state_all() -> List[torch.Tensor]:
    return [get_rng_state()]


def set_rng_state_all(new_states: List[torch.Tensor]) -> None:
    for state in new_states:
        set_rng_state(state)


def manual_seed(seed: int) -> None:
    torch.default_generator.manual_seed(int(seed))


manual_seed_all = manual_seed


def seed() -> None:
    torch.default_generator.seed()


seed_all = seed


def initial_seed() -> int:
    return torch.default_generator.initial_seed()
