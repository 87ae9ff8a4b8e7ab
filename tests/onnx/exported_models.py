#!/usr/bin/env python3
"""Writes models as exporters of frameworks do and compares what `npumesh run` computes with numpy.

    exported_models.py NPUMESH [NAME]...

Each model is written in the operator sets 11, 13 and 17 and run once: every step has inputs of
other sizes, so that one import serves them all. What `npumesh graph --onnx` makes of some of them
passes onnx.checker and computes the same (bert_back). NAME (bert, bert_11) picks models. What KNOWN lists
has to fail with those words, and fails the test as soon as it passes. Exit code 77 (skipped)
without Debian's python3-onnx.
"""

import os
import subprocess
import sys
import tempfile

SKIPPED = 77
try:
    import numpy
    # ONNX 1.12 uses names that numpy 1.24 dropped.
    for old, plain_type in (('bool', bool), ('object', object), ('int', int), ('float', float)):
        if old not in numpy.__dict__:
            setattr(numpy, old, plain_type)
    import onnx
except ImportError as missing:
    print(f'skipped: {missing} (Debian: python3-onnx, python3-numpy)')
    sys.exit(SKIPPED)

import exported_detector
import exported_language
import exported_llama
import exported_vision
from export_writer import OPERATOR_SETS

MODELS = {
    'bert': exported_language.bert,
    'gpt2': exported_language.gpt2,
    'llama': exported_llama.llama,
    'mixture': exported_llama.mixture,
    'resnet': exported_vision.resnet,
    'unet': exported_vision.unet,
    'vocoder': exported_vision.vocoder,
    'detector': exported_detector.detector,
}
# Models that are refused, with words of what is said.
REFUSED = {
    'vocoder_of_same_length': (exported_vision.vocoder_of_same_length,
                               'dimension 2 of an operand is open'),
    'vocoder_with_two_paddings': (exported_vision.vocoder_with_two_paddings,
                                  '"output_padding" has 2 entries, expected 1'),
}
# Models all of whose operators have counterparts in ONNX.
WRITTEN_BACK = ('bert', 'gpt2', 'llama', 'mixture', 'resnet')
# name: words of the reason for which it fails.
KNOWN = {}
RTOL, ATOL, SECONDS = 1e-4, 2e-5, 50


def write(exported, folder):
    onnx.save(exported.model, os.path.join(folder, 'model.onnx'))
    for number, step in enumerate(exported.steps):
        place = os.path.join(folder, 'in', f'step_{number}', 'rank_0')
        os.makedirs(place)
        for index, name in enumerate(exported.inputs):
            numpy.save(os.path.join(place, f'{index}.npy'), step[name])


def run(program, exported, folder):
    """Why it cannot be run; empty if it can."""
    words = [program, 'run', 'model.onnx', '--inputs', 'in', '--outputs', 'out', '--no-progress',
             '--steps', str(len(exported.steps)), '--threads', '1']
    result = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, timeout=SECONDS, check=False)
    if result.returncode == 0:
        return ''
    return f'exit code {result.returncode}: {result.stdout.strip()}'


def difference(seen, expected):
    """How an output differs; empty if it does not."""
    if seen.shape != expected.shape:
        return f'is {seen.shape}, expected {expected.shape}'
    if seen.dtype.kind != expected.dtype.kind:
        return f'is of {seen.dtype}, expected {expected.dtype}'
    bound = ATOL + RTOL * numpy.abs(expected)
    wrong = ~(numpy.abs(seen - expected) <= bound)
    if not wrong.any():
        return ''
    first = tuple(int(i) for i in numpy.argwhere(wrong)[0])
    return (f'has {wrong.sum()} wrong elements, first {first}: {seen[first]}, '
            f'expected {expected[first]}')


def compare(exported, folder):
    for step in range(len(exported.steps)):
        expected = exported.expected(step)
        for index, name in enumerate(exported.outputs):
            file = os.path.join(folder, 'out', f'step_{step}', 'rank_0', f'{index}.npy')
            why = difference(numpy.load(file), numpy.asarray(expected[name]))
            if why:
                return f'step {step}: {name} {why}'
    return ''


def in_double(exported):
    """Weights are float32; the reference computes in float64."""
    exported.weights = {name: values.astype(numpy.float64) if values.dtype.kind == 'f' else values
                        for name, values in exported.weights.items()}
    return exported


def failure(program, build, opset):
    exported = in_double(build(opset))
    with tempfile.TemporaryDirectory() as folder:
        write(exported, folder)
        return run(program, exported, folder) or compare(exported, folder)


def not_written_back(program, build):
    """Why a model that npumesh wrote is not valid, or computes something else; empty: neither."""
    exported = in_double(build(OPERATOR_SETS[-1]))
    with tempfile.TemporaryDirectory() as folder:
        write(exported, folder)
        words = [program, 'graph', 'model.onnx', '--onnx', 'back.onnx']
        done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=SECONDS, check=False)
        if done.returncode != 0:
            return f'graph --onnx ended with {done.returncode}: {done.stdout.strip()}'
        back = os.path.join(folder, 'back.onnx')
        onnx.checker.check_model(back, full_check=True)
        os.replace(back, os.path.join(folder, 'model.onnx'))
        return run(program, exported, folder) or compare(exported, folder)


def verdict(name, why):
    """Whether the outcome is the one that is known, which is said."""
    if name not in KNOWN:
        print(f'FAIL {name}: {why}' if why else f'pass {name}', flush=True)
        return not why
    if KNOWN[name] in why:
        print(f'known {name}: {KNOWN[name]}', flush=True)
        return True
    print(f'FAIL {name}: ' + (f'another reason than is known: {why}' if why else
                              'is known to fail, but passes; take it off the list'), flush=True)
    return False


def not_refused(program, build, words):
    """How a model that has to be refused as input is not; empty if it is."""
    exported = build(OPERATOR_SETS[-1])
    with tempfile.TemporaryDirectory() as folder:
        write(exported, folder)
        why = run(program, exported, folder)
    return '' if why.startswith('exit code 3:') and words in why else f'not refused: {why}'


def cases(program):
    """Names of what is tested, with functions that say why it fails."""
    for name, build in MODELS.items():
        for opset in OPERATOR_SETS:
            yield f'{name}_{opset}', lambda: failure(program, build, opset)
    for name in WRITTEN_BACK:
        yield f'{name}_back', lambda: not_written_back(program, MODELS[name])
    for name, (build, words) in REFUSED.items():
        yield name, lambda: not_refused(program, build, words)


def main():
    program, picked = sys.argv[1], sys.argv[2:]
    right, count = 0, 0
    for name, outcome in cases(program):
        if picked and name not in picked and name.rpartition('_')[0] not in picked:
            continue
        right += verdict(name, outcome())
        count += 1
    print(f'{right} of {count} as expected')
    return 0 if right == count and count > 0 else 1


if __name__ == '__main__':
    sys.exit(main())
