#!/usr/bin/env python3
"""Splits language models as exporters write them over 2, 4 and 8 ranks, and compares what the ranks
compute with numpy.

    sharded_models.py NPUMESH [NAME]...

Each model has 8 heads (Llama: 2 of keys and values) and caches that it takes and gives. `npumesh
import --tp N` and, from AIR, `export --tp N` prove their result themselves; here the package runs by
mpirun with pieces of the inputs that numpy cuts, and each rank's outputs are compared with their
pieces of the reference. NAME (gpt2, llama_4) picks cases. Exit code 77 (skipped) without Debian's
python3-onnx.
"""

import os
import re
import subprocess
import sys
import tempfile

import numpy

import exported_models
import exported_language
import exported_llama
from export_writer import OPERATOR_SETS

MODELS = {
    'gpt2': (exported_language.gpt2, exported_language.GPT2,
             dict(words=24, width=32, heads=8)),
    'llama': (exported_llama.llama, exported_llama.LLAMA,
              dict(words=24, width=32, heads=8, shared=2, inner=48)),
}
RANKS = (2, 4, 8)
SECONDS = 100


class Failure(Exception):
    """Why a case fails."""


def command(words, folder):
    result = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, timeout=SECONDS, check=False)
    if result.returncode != 0:
        raise Failure(f'{" ".join(words[1:])} ended with {result.returncode}: '
                      f'{result.stdout.strip()[-2000:]}')
    return result.stdout


def layouts(report):
    """By node: axis and number of pieces (0: as many as ranks); what is whole is missing, and what
    is gathered for an output."""
    found = {}
    for line in report.splitlines():
        fate, node, _, said = (line.split(maxsplit=3) + [''] * 4)[:4]
        seen = re.match(r'(?:each rank is given )?axis (\d+)(?:, (\d+) pieces)?', said)
        if fate == 'sharded' and seen:
            found[node] = int(seen[1]), int(seen[2] or 0)
        elif fate == 'gathered' and said.endswith('NetOutput'):
            found.pop(node)
    return found


def piece(values, layout, rank, ranks):
    if layout is None:
        return values
    axis, pieces = layout[0], layout[1] or ranks
    return numpy.split(values, pieces, axis)[rank // (ranks // pieces)]


def write_inputs(exported, split, ranks, folder):
    for number, step in enumerate(exported.steps):
        for rank in range(ranks):
            place = os.path.join(folder, f'in_{ranks}', f'step_{number}', f'rank_{rank}')
            os.makedirs(place)
            for index, name in enumerate(exported.inputs):
                numpy.save(os.path.join(place, f'{index}.npy'),
                           piece(step[name], split.get(name), rank, ranks))


def compare(exported, split, ranks, folder):
    for number in range(len(exported.steps)):
        expected = exported.expected(number)
        for rank in range(ranks):
            for index, name in enumerate(exported.outputs):
                file = os.path.join(folder, f'out_{ranks}', f'step_{number}', f'rank_{rank}',
                                    f'{index}.npy')
                wanted = piece(numpy.asarray(expected[name]), split.get('out/' + name), rank, ranks)
                why = exported_models.difference(numpy.load(file), wanted)
                if why:
                    raise Failure(f'step {number}, rank {rank}: {name} {why}')


def run_package(program, exported, split, ranks, package, folder):
    write_inputs(exported, split, ranks, folder)
    command([program, 'launch', '-n', str(ranks), '--', 'run', package, '--inputs', f'in_{ranks}',
             '--outputs', f'out_{ranks}', '--steps', str(len(exported.steps)), '--no-progress',
             '--threads', '1'], folder)
    compare(exported, split, ranks, folder)


def build(name, opset):
    make, facts, wider = MODELS[name]
    before = dict(facts)
    facts.update(wider)
    try:
        exported = make(opset)
        # The reference needs the extents too; it computes in float64, weights are float32.
        exported.weights = {key: values.astype(numpy.float64) if values.dtype.kind == 'f' else values
                            for key, values in exported.weights.items()}
        results = [exported.expected(step) for step in range(len(exported.steps))]
        exported.expected = lambda step: results[step]
        return exported
    finally:
        facts.clear()
        facts.update(before)


def check(program, name, ranks):
    for opset in OPERATOR_SETS:
        exported = build(name, opset)
        with tempfile.TemporaryDirectory() as folder:
            exported_models.write(exported, folder)
            report = command([program, 'import', 'model.onnx', '--tp', str(ranks), '-o', 'package',
                              '--inputs', 'in'], folder)
            split = layouts(report)
            caches = [each for each in exported.inputs if each.startswith('past')]
            whole = [each for each in caches if each not in split]
            if whole or not caches:
                raise Failure(f'set {opset}: caches are not split: {whole}')
            run_package(program, exported, split, ranks, 'package', folder)
            if opset == OPERATOR_SETS[-1]:
                from_air(program, exported, split, ranks, folder)


def from_air(program, exported, split, ranks, folder):
    """The same from AIR: split in the same way, with the same outputs to the bit."""
    command([program, 'import', 'model.onnx', '-o', 'model.air'], folder)
    report = command([program, 'export', 'model.air', '--tp', str(ranks), '--path', 'from_air',
                      '--name', 'model', '--inputs', 'in'], folder)
    if layouts(report) != split:
        raise Failure('from AIR it is split in another way than from ONNX')
    command([program, 'launch', '-n', str(ranks), '--', 'run', 'from_air', '--inputs', f'in_{ranks}',
             '--check', f'out_{ranks}', '--tolerance', 'exact', '--steps', str(len(exported.steps)),
             '--no-progress', '--threads', '1'], folder)


def main():
    program, picked = os.path.abspath(sys.argv[1]), sys.argv[2:]
    failed, count = 0, 0
    for name in MODELS:
        for ranks in RANKS:
            if picked and name not in picked and f'{name}_{ranks}' not in picked:
                continue
            count += 1
            try:
                check(program, name, ranks)
                print(f'pass {name} on {ranks} ranks', flush=True)
            except Failure as failure:
                failed += 1
                print(f'FAIL {name} on {ranks} ranks: {failure}', flush=True)
    print(f'{count - failed} of {count} as expected')
    return 0 if failed == 0 and count > 0 else 1


if __name__ == '__main__':
    sys.exit(main())
