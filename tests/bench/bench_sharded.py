#!/usr/bin/env python3
"""How many times as fast a model that `--tp N` split is on N ranks as on one.

    bench_sharded.py NPUMESH [--ranks N] [--turns N] [--steps N] [--rows N] [--words N] [--past N]
                     [--layers N] [--small] [--from-air] [NAME]...

GPT-2 and Llama as exporters write them (tests/onnx), hidden size 768, 12 heads (Llama: 4 of keys and
values). Both forms run in turns, a thread for each rank, with the same inputs; a step is what the
slowest rank needs for it, its first step left out. Prints the median over the turns of one rank's time
over that of N ranks. --small: extents that only show that it runs. Exit code 77 without python3-onnx.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'onnx'))
import exported_models  # noqa: E402  (skips without python3-onnx)
import exported_language  # noqa: E402
import exported_llama  # noqa: E402
import numpy  # noqa: E402
import onnx  # noqa: E402
from export_writer import Writer  # noqa: E402

LARGE = dict(width=768, heads=12)
SMALL = dict(width=48, heads=4)


def gpt2(options):
    extents = dict(SMALL if options.small else LARGE, words=options.words, layers=options.layers,
                   longest=options.rows + options.past)
    exported_language.GPT2.update(extents)
    return exported_language.gpt2(17)


def llama(options):
    extents = dict(SMALL if options.small else LARGE, words=options.words, layers=options.layers,
                   longest=options.rows + options.past)
    extents.update(shared=extents['heads'] // 3 or 1, inner=extents['width'] * 8 // 3)
    if options.small:
        extents['shared'] = 2
    exported_llama.LLAMA.update(extents)
    return exported_llama.llama(17)


MODELS = {'gpt2': gpt2, 'llama': llama}
TEST_WEIGHT = Writer.weight


def weight(writer, name, *shape, **how):
    """As trained ones: products keep the magnitude of what they take, however wide they are."""
    if len(shape) == 2:
        how['scale'] = shape[0] ** -0.5
    return TEST_WEIGHT(writer, name, *shape, **how)


def said(words, folder):
    done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f'{" ".join(words)} ended with {done.returncode}:\n{done.stdout}')
    return done.stdout


def extents_of(options):
    """Values of open dimensions, by input of the model."""
    return {'batch': 1, 'length': options.rows, 'past': options.past,
            'total': options.rows + options.past}


def inputs_of(model, options):
    """Arrays for the inputs of a model: words, places, a mask of ones, random caches."""
    random, given = numpy.random.RandomState(1), []
    for value in model.graph.input:
        shape = [extents_of(options)[dim.dim_param] if dim.dim_param else dim.dim_value
                 for dim in value.type.tensor_type.shape.dim]
        if value.name.startswith('past'):
            given.append(random.standard_normal(shape).astype(numpy.float32))
        elif value.name == 'position_ids':
            given.append(numpy.arange(options.past, options.past + options.rows)[None])
        elif value.name == 'attention_mask':
            given.append(numpy.ones(shape, numpy.int64))
        else:
            given.append(random.randint(0, options.words, shape))
    return given


def write_inputs(arrays, folder):
    os.makedirs(folder)
    for index, array in enumerate(arrays):
        numpy.save(os.path.join(folder, f'{index}.npy'), array)


def pieces(array, report, name, rank, ranks):
    """What a rank is given of an input: heads of a cache, or all of it."""
    for line in report.splitlines():
        words = line.split()
        if words[:2] == ['sharded', name] and 'axis' in words:
            parts = ranks
            if 'pieces' in words:
                parts = int(words[words.index('pieces') - 1])
            axis = int(words[words.index('axis') + 1].rstrip(','))
            return numpy.split(array, parts, axis)[rank // (ranks // parts)]
    return array


def seconds(options, model, inputs, ranks, steps, folder):
    """The time of `steps` steps on the slowest rank."""
    words = [options.npumesh, 'launch', '-n', str(ranks), '--', 'run', model, '--inputs', inputs, '--steps',
             str(steps), '--no-progress', '--threads', '1', '--report', 'report.json']
    said(words, folder)
    with open(os.path.join(folder, 'report.json'), encoding='utf-8') as file:
        ranks_of = json.load(file)['ranks']
    return max(rank['total_seconds'] for rank in ranks_of)


def step_time(options, model, inputs, ranks, folder):
    """What a step takes after the first, in seconds."""
    first = seconds(options, model, inputs, ranks, 1, folder)
    rest = seconds(options, model, inputs, ranks, 1 + options.steps, folder) - first
    return max(rest / options.steps, 1e-9)  # of --small nothing may be left


def prepare(options, exported, folder):
    """Both forms with their inputs; what the command said."""
    onnx.save(exported.model, os.path.join(folder, 'one.onnx'))
    arrays = inputs_of(exported.model, options)
    write_inputs(arrays, os.path.join(folder, 'in_1', 'rank_0'))
    split = ['import', 'one.onnx', '-o', 'many']
    if options.from_air:
        said([options.npumesh, 'import', 'one.onnx', '-o', 'one.air'], folder)
        split = ['export', 'one.air', '--path', 'many', '--name', 'model']
    report = said([options.npumesh, *split, '--tp', str(options.ranks), '--inputs', 'in_1'], folder)
    for rank in range(options.ranks):
        mine = [pieces(array, report, value.name, rank, options.ranks)
                for array, value in zip(arrays, exported.model.graph.input)]
        write_inputs(mine, os.path.join(folder, 'in_n', f'rank_{rank}'))
    return report


def measure(options, name):
    with tempfile.TemporaryDirectory(prefix='npumesh-bench-') as folder:
        report = prepare(options, MODELS[name](options), folder)
        ratios, ones, manys = [], [], []
        for _ in range(options.turns):
            ones.append(step_time(options, 'one.onnx', 'in_1', 1, folder))
            manys.append(step_time(options, 'many', 'in_n', options.ranks, folder))
            ratios.append(ones[-1] / manys[-1])
    counts = [line for line in report.splitlines() if ' sharded, ' in line]
    print(f'{name}: speed_up {statistics.median(ratios):.2f} on {options.ranks} ranks '
          f'({min(ratios):.2f} to {max(ratios):.2f}), {1e3 * statistics.median(ones):.1f} and '
          f'{1e3 * statistics.median(manys):.1f} ms; {"".join(counts)}', flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('npumesh')
    parser.add_argument('names', nargs='*', default=list(MODELS))
    for name, value in (('ranks', 2), ('turns', 7), ('steps', 10), ('rows', 128), ('words', 8192), ('past', 0),
                        ('layers', 4)):
        parser.add_argument(f'--{name}', type=int, default=value)
    parser.add_argument('--small', action='store_true')
    parser.add_argument('--from-air', action='store_true')
    options = parser.parse_intermixed_args()
    options.npumesh = os.path.abspath(options.npumesh)
    if options.small:
        options.turns, options.steps, options.rows, options.words, options.layers = 1, 2, 4, 32, 1
    Writer.weight = weight
    for name in options.names:
        measure(options, name)


if __name__ == '__main__':
    main()
