"""Copies between the host and the npu: random programs that make, move, view, write and forget tensors,
against numpy arrays that are copied where a device would copy."""

import os
import random
import unittest

import npu_case

if npu_case.torch is not None:
    import numpy as np
    import torch

PROGRAMS = int(os.environ.get("NPUMESH_TRANSFER_PROGRAMS", "400"))
FIRST = int(os.environ.get("NPUMESH_TRANSFER_PROGRAMS_FIRST", "1"))
ROWS, COLUMNS = 3, 4

NPU, HOST, UNSAID = "npu", "host", "unsaid"


class Variable:
    """A tensor, the array that it must equal, and where calls have said that its memory lies. Views
    share the list `place`."""

    def __init__(self, tensor, array, place):
        self.tensor, self.array, self.place = tensor, array, place

    def view(self, tensor, array):
        return Variable(tensor, array, self.place)


class Program:
    """Random calls on variables, float64 matrices of whole numbers. The same seed gives the same calls."""

    KINDS = {"make": 3, "data": 2, "move": 8, "ambiguous": 2, "like": 2, "typed": 1, "pin": 1, "view": 4,
             "compute": 3, "write": 8, "copy": 3, "numpy": 2, "storage": 1, "module": 1, "forget": 2}

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.left, self.said = [self.made()], []

    def run(self):
        for _ in range(self.dice.randint(2, 24)):
            kind = self.dice.choices(list(self.KINDS), list(self.KINDS.values()))[0]
            self.said.append(kind)
            getattr(self, "do_" + kind)()
            yield

    def any(self):
        return self.dice.choice(self.left)

    def new(self, tensor, array, place):
        self.left.append(Variable(tensor, array.copy(), [place]))

    def made(self):
        value = self.dice.randint(-3, 3)
        words = self.dice.choice([({"device": "npu"}, NPU), ({"device": torch.device("npu:0")}, NPU),
                                  ({"device": 0}, NPU), ({"device": "cpu"}, HOST),
                                  ({"pin_memory": True}, HOST), ({}, UNSAID)])
        tensor = torch.full((ROWS, COLUMNS), value, dtype=torch.float64, **words[0])
        return Variable(tensor, np.full((ROWS, COLUMNS), float(value)), [words[1]])

    def do_make(self):
        self.left.append(self.made())

    def do_data(self):
        """A tensor of an array shares its memory, unless it is on the npu."""
        array = np.arange(ROWS * COLUMNS, dtype=np.float64).reshape(ROWS, COLUMNS)
        make = self.dice.choice([torch.as_tensor, torch.asarray])
        if self.dice.random() < 0.5:
            self.new(make(array, device="npu"), array, NPU)
            array += 100
        else:
            self.left.append(Variable(make(array), array, [UNSAID]))

    def moved(self, x, tensor, place):
        """`tensor` must be `x` itself where both places are known and equal, a copy otherwise."""
        if x.place[0] == place != UNSAID:
            self.left.append(x.view(tensor, x.array))
        else:
            self.new(tensor, x.array, place)

    def do_move(self):
        x = self.any()
        move, place = self.dice.choice([
            (lambda t: t.npu(), NPU), (lambda t: t.npu(0), NPU), (lambda t: t.to("npu"), NPU),
            (lambda t: t.to(device="npu:0"), NPU), (lambda t: t.to(torch.device("npu")), NPU),
            (lambda t: t.to(0), NPU), (lambda t: t.to("npu", t.dtype, True), NPU),
            (lambda t: torch.as_tensor(t, device="npu"), NPU), (lambda t: t.cpu(), HOST),
            (lambda t: t.to("cpu"), HOST), (lambda t: t.to(device="cpu", non_blocking=True), HOST)])
        self.moved(x, move(x.tensor), place)

    def do_ambiguous(self):
        """torch.device("cpu") may be the device of either."""
        x, y = self.any(), self.any()
        self.new(x.tensor.to(y.tensor.device), x.array, UNSAID)

    def do_like(self):
        x, y = self.any(), self.any()
        self.moved(x, x.tensor.to(y.tensor), y.place[0])

    def do_typed(self):
        """There and back in another type: always a copy."""
        x = self.any()
        tensor = x.tensor.to("npu", torch.float32).to(torch.float64)
        self.new(tensor, x.array, UNSAID)

    def do_pin(self):
        x = self.any()
        if x.place[0] == HOST and not x.tensor.is_pinned():
            pinned = x.tensor.pin_memory()
            assert pinned.is_pinned()
            self.new(pinned, x.array, HOST)

    def do_view(self):
        x = self.any()
        at = self.dice.randrange(ROWS)
        make = self.dice.choice([
            (lambda a: a[at:at + 1], lambda a: a[at:at + 1]), (lambda a: a[:, 1:], lambda a: a[:, 1:]),
            (lambda a: a.detach(), lambda a: a[...]), (lambda a: a.unsqueeze(0)[0], lambda a: a[None][0])])
        if x.array.shape == (ROWS, COLUMNS):
            self.left.append(x.view(make[0](x.tensor), make[1](x.array)))

    def do_compute(self):
        x, y = self.any(), self.any()
        if x.array.shape == y.array.shape:
            self.new(x.tensor - y.tensor, x.array - y.array, UNSAID)
        else:
            self.new(x.tensor.clone(), x.array, UNSAID)

    def do_write(self):
        x, value = self.any(), self.dice.randint(-3, 3)
        if self.dice.random() < 0.5:
            x.tensor.add_(value)
            x.array += value
        else:
            x.tensor[0, -1] = value
            x.array[0, -1] = value

    def do_copy(self):
        x, y = self.any(), self.any()
        if x.array.shape == y.array.shape:
            # Views of one memory may overlap, which torch leaves open.
            x.tensor.copy_(y.tensor.clone(), non_blocking=True)
            x.array[...] = y.array.copy()

    def do_numpy(self):
        """Writes through numpy reach the host's tensor and no copy of it."""
        x = self.any()
        if x.place[0] != NPU:
            x.tensor.numpy()[0, 0] += 7
            x.array[0, 0] += 7

    def do_storage(self):
        x = self.any()
        name, place = self.dice.choice([("npu", NPU), ("cpu", UNSAID)])
        storage = getattr(x.tensor.untyped_storage(), name)()
        tensor = torch.empty(0, dtype=torch.float64).set_(
            storage, x.tensor.storage_offset(), x.tensor.shape, x.tensor.stride())
        self.new(tensor, x.array, place)

    def do_module(self):
        """A module that moves keeps its parameters, which get other memory."""
        x = self.any()
        module = torch.nn.Module()
        module.weight = torch.nn.Parameter(x.tensor, requires_grad=False)
        weight = module.weight
        module.npu()
        assert module.weight is weight
        self.moved(x, weight.data, NPU)

    def do_forget(self):
        if len(self.left) > 2:
            del self.left[self.dice.randrange(len(self.left))]


class Programs(unittest.TestCase):
    def test_no_write_reaches_a_copy(self):
        steps = 0
        for seed in range(FIRST, FIRST + PROGRAMS):
            program = Program(seed)
            for _ in program.run():
                steps += 1
                for at, each in enumerate(program.left):
                    if not np.array_equal(each.tensor.detach().numpy(), each.array):
                        self.fail(f"seed {seed}: {program.said}: variable {at} is {each.tensor}, "
                                  f"expected {each.array}")
                    if each.tensor.is_npu != (each.place[0] != HOST):
                        self.fail(f"seed {seed}: {program.said}: variable {at}: is_npu, {each.place}")
        print(f"{PROGRAMS} programs, {steps} calls")


if __name__ == "__main__":
    npu_case.main()
