"""A Llama and a mixture of experts as exporters write them, with references in plain numpy."""

import math

import numpy

import plain_layers as plain
from export_writer import Exported, Writer

LLAMA = dict(words=23, longest=16, width=16, heads=4, shared=2, inner=24, layers=2)
MIXTURE = dict(words=13, width=8, inner=12, experts=5, chosen=2)
LOWEST = float(numpy.finfo(numpy.float32).min)


def _frequencies(each):
    return 1 / 10000.0 ** (numpy.arange(0, each, 2) / each)


def _turns(positions, each):
    angles = positions[..., None] * _frequencies(each)
    return numpy.concatenate([angles, angles], -1)


def _rms_norm(g, x, name, width):
    square = g.node('ReduceMean', g.node('Pow', x, g.constant(2.0)), axes=[-1])
    root = g.node('Sqrt', g.node('Add', square, g.constant(1e-6)))
    one = g.constant(1.0)
    inverse = g.node('Reciprocal', root) if g.opset >= 13 else g.node('Div', one, root)
    return g.node('Mul', g.weight(name, width, scale=0.1, around=1), g.node('Mul', x, inverse))


def _plain_rms_norm(x, w, name):
    return w[name] * x / numpy.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6)


def _expand(g, x, *extents):
    """Expand, whose shape exporters guard against -1 by Equal and Where."""
    shape = g.shape(*extents)
    ones = g.node('ConstantOfShape', g.node('Shape', shape),
                  value=_scalar_tensor(1))
    unset = g.node('Equal', shape, g.node('Mul', ones, g.constant(-1, 'int64')))
    return g.node('Expand', x, g.node('Where', unset, ones, shape))


def _scalar_tensor(value):
    from onnx import numpy_helper
    return numpy_helper.from_array(numpy.array([value], numpy.int64))


# Llama: rotary positions, keys shared by groups of heads, a gated inner layer, a cache.

def _rotary(g, positions, each):
    """Cosines and sines: of tables before 17, later computed from the positions."""
    if g.opset < 17:
        table = _turns(numpy.arange(LLAMA['longest']), each)
        return [g.unsqueeze(g.node('Gather', g.given(name, values), positions), 1)
                for name, values in (('cos', numpy.cos(table)), ('sin', numpy.sin(table)))]
    wide = g.node('Cast', g.unsqueeze(positions, 1), to=1)
    speed = g.given('speed', _frequencies(each)[None, :, None])
    speed = _expand(g, speed, g.size(positions, 0), -1, 1)
    angles = g.node('Transpose', g.node('MatMul', speed, wide), perm=[0, 2, 1])
    angles = g.node('Concat', angles, angles, axis=-1)
    return [g.unsqueeze(g.node(kind, angles), 1) for kind in ('Cos', 'Sin')]


def _turned(g, x, rotary, each):
    half = g.node('Div', g.size(x, 3), g.constant(2, 'int64'))
    first, second = g.slice(x, 0, half, 3), g.slice(x, half, 2 ** 63 - 1, 3)
    other = g.node('Concat', g.node('Neg', second), first, axis=-1)
    return g.node('Add', g.node('Mul', x, rotary[0]), g.node('Mul', other, rotary[1]))


def _llama_mask(g, mask, before, length):
    """What is added to the scores: hidden by the mask, or later than the query."""
    total = g.node('Add', before, length)
    keys = g.node('Range', g.constant(0, 'int64'), total, g.constant(1, 'int64'))
    queries = g.unsqueeze(g.node('Range', before, total, g.constant(1, 'int64')), 1)
    padding = g.unsqueeze(g.node('Equal', mask, g.constant(0, 'int64')), 1, 2)
    if g.opset < 17:
        past = g.unsqueeze(g.at_least(queries, keys), 0, 1)
        seen = g.node('And', past, g.node('Not', padding))
        return g.node('Where', seen, g.constant(0.0), g.constant(LOWEST))
    lowest = _expand(g, g.constant(LOWEST), length, total)
    later = g.node('Cast', g.node('Greater', keys, queries), to=1)
    causal = g.unsqueeze(g.node('Mul', lowest, later), 0, 1)
    causal = _expand(g, causal, g.size(mask, 0), 1, -1, -1)
    return g.node('Where', padding, g.constant(LOWEST), causal)


def _split_heads(g, x, count, each):
    return g.node('Transpose', g.reshape(x, g.size(x, 0), g.size(x, 1), count, each),
                  perm=[0, 2, 1, 3])


def _repeated(g, x, count):
    """Each head of keys or values for `count` heads of queries: Unsqueeze, Expand, Reshape."""
    batch, heads, length, each = (g.size(x, axis) for axis in range(4))
    wide = _expand(g, g.unsqueeze(x, 2), batch, heads, count, length, each)
    return g.reshape(wide, batch, g.node('Mul', heads, g.constant(count, 'int64')), length, each)


def _llama_attention(g, x, past, mask, rotary, name):
    c = LLAMA
    each = c['width'] // c['heads']
    q, k, v = (_split_heads(g, g.node('MatMul', x, g.weight(f'{name}.{part}', c['width'],
                                                           count * each)), count, each)
               for part, count in (('q', c['heads']), ('k', c['shared']), ('v', c['shared'])))
    q, k = _turned(g, q, rotary, each), _turned(g, k, rotary, each)
    k, v = g.node('Concat', past[0], k, axis=-2), g.node('Concat', past[1], v, axis=-2)
    times = c['heads'] // c['shared']
    keys = g.node('Transpose', _repeated(g, k, times), perm=[0, 1, 3, 2])
    scores = g.node('Mul', g.node('MatMul', q, keys), g.constant(1 / math.sqrt(each)))
    weights = g.node('Softmax', g.node('Add', scores, mask), axis=3)
    mixed = g.node('Transpose', g.node('MatMul', weights, _repeated(g, v, times)), perm=[0, 2, 1, 3])
    mixed = g.reshape(mixed, g.size(mixed, 0), g.size(mixed, 1), -1)
    return g.node('MatMul', mixed, g.weight(f'{name}.o', c['width'], c['width'])), (k, v)


def _gated(g, x, name, width, inner):
    gate = g.silu(g.node('MatMul', x, g.weight(f'{name}.gate', width, inner)))
    up = g.node('MatMul', x, g.weight(f'{name}.up', width, inner))
    return g.node('MatMul', g.node('Mul', gate, up), g.weight(f'{name}.down', inner, width))


def _plain_gated(x, w, name):
    gate = x @ w[f'{name}.gate']
    return (gate * plain.sigmoid(gate) * (x @ w[f'{name}.up'])) @ w[f'{name}.down']


def llama(opset):
    c, g = LLAMA, Writer('llama', opset)
    each = c['width'] // c['heads']
    words = g.input('input_ids', 'int64', ['batch', 'length'])
    mask = g.input('attention_mask', 'int64', ['batch', 'total'])
    positions = g.input('position_ids', 'int64', ['batch', 'length'])
    cache = ['batch', c['shared'], 'past', each]
    pasts = [[g.input(f'past_{i}_{part}', 'float32', cache) for part in ('key', 'value')]
             for i in range(c['layers'])]
    x = g.node('Gather', g.weight('words', c['words'], c['width']), words)
    rotary = _rotary(g, positions, each)
    hidden = _llama_mask(g, mask, g.size(pasts[0][0], 2), g.size(words, 1))
    for i, past in enumerate(pasts):
        name = f'layer{i}'
        mixed, present = _llama_attention(g, _rms_norm(g, x, f'{name}.n1', c['width']), past,
                                          hidden, rotary, name)
        x = g.node('Add', x, mixed)
        inner = _rms_norm(g, x, f'{name}.n2', c['width'])
        x = g.node('Add', x, _gated(g, inner, name, c['width'], c['inner']))
        for part, value in zip(('key', 'value'), present):
            g.output(f'present_{i}_{part}', value, 'float32', cache[:2] + ['total', each])
    logits = g.node('MatMul', _rms_norm(g, x, 'last', c['width']),
                    g.weight('head', c['width'], c['words']))
    g.output('logits', logits, 'float32', ['batch', 'length', c['words']])
    return Exported(g, [_llama_step(2, 5, 0), _llama_step(2, 1, 5), _llama_step(1, 3, 7)],
                    _llama_reference)


def _llama_step(batch, length, past):
    """Words padded on the left in the first row."""
    c, random = LLAMA, numpy.random.RandomState(length + past)
    mask = numpy.ones((batch, past + length), numpy.int64)
    mask[0, :2] = 0
    positions = numpy.maximum(mask.cumsum(1) - 1, 0)[:, past:]
    step = dict(input_ids=random.randint(0, c['words'], (batch, length)).astype(numpy.int64),
                attention_mask=mask, position_ids=positions)
    shape = (batch, c['shared'], past, c['width'] // c['heads'])
    for i in range(c['layers']):
        for part in ('key', 'value'):
            step[f'past_{i}_{part}'] = random.standard_normal(shape).astype(numpy.float32)
    return step


def _plain_turned(x, angles):
    half = x.shape[-1] // 2
    other = numpy.concatenate([-x[..., half:], x[..., :half]], -1)
    return x * numpy.cos(angles) + other * numpy.sin(angles)


def _llama_reference(w, input_ids, attention_mask, position_ids, **pasts):
    c = LLAMA
    each = c['width'] // c['heads']
    total, length = attention_mask.shape[1], input_ids.shape[1]
    later = numpy.arange(total)[None, :] > numpy.arange(total - length, total)[:, None]
    seen = (attention_mask[:, None, None, :] == 1) & ~later
    angles = _turns(position_ids, each)[:, None]
    x, outputs = w['words'][input_ids], {}
    for i in range(c['layers']):
        name = f'layer{i}'
        normal = _plain_rms_norm(x, w, f'{name}.n1')
        q = _plain_turned(plain.heads(normal @ w[f'{name}.q'], c['heads']), angles)
        k = _plain_turned(plain.heads(normal @ w[f'{name}.k'], c['shared']), angles)
        v = plain.heads(normal @ w[f'{name}.v'], c['shared'])
        k = numpy.concatenate([pasts[f'past_{i}_key'], k], 2)
        v = numpy.concatenate([pasts[f'past_{i}_value'], v], 2)
        outputs.update({f'present_{i}_key': k, f'present_{i}_value': v})
        times = c['heads'] // c['shared']
        mixed = plain.attention(q, k.repeat(times, 1), v.repeat(times, 1), seen)
        x = x + plain.joined(mixed) @ w[f'{name}.o']
        x = x + _plain_gated(_plain_rms_norm(x, w, f'{name}.n2'), w, name)
    outputs['logits'] = _plain_rms_norm(x, w, 'last') @ w['head']
    return outputs


# A mixture of experts, each of which computes only the words that chose it.

def _expert_places(g, chosen, expert):
    """Rows of [place among the chosen, word] of one expert, and the words alone."""
    one_hot = g.node('OneHot', chosen, g.constant([MIXTURE['experts']], 'int64'),
                     g.constant([0, 1], 'int64'), axis=-1)
    by_expert = g.node('Transpose', one_hot, perm=[2, 1, 0])
    mine = g.node('Gather', by_expert, g.constant(expert, 'int64'), axis=0)
    places = g.node('Transpose', g.node('NonZero', mine), perm=[1, 0])
    place, word = g.split(places, [1, 1], 1)
    return g.node('Concat', word, place, axis=1), g.squeeze(word, 1)


def _add_rows(g, x, rows, words):
    """x with rows added at words: by ScatterND, from operator set 16 on by ScatterElements."""
    if g.opset < 16:
        zeros = g.node('ConstantOfShape', g.node('Shape', x))
        return g.node('Add', x, g.node('ScatterND', zeros, g.unsqueeze(words, 1), rows))
    wide = g.node('Expand', g.unsqueeze(words, 1), g.node('Shape', rows))
    return g.node('ScatterElements', x, wide, rows, axis=0, reduction='add')


def mixture(opset):
    c, g = MIXTURE, Writer('mixture', opset)
    words = g.input('input_ids', 'int64', ['batch', 'length'])
    x = g.node('Gather', g.weight('words', c['words'], c['width'], scale=1), words)
    batch, length = g.size(x, 0), g.size(x, 1)
    flat = g.reshape(x, -1, c['width'])
    scores = g.node('MatMul', flat, g.weight('router', c['width'], c['experts'], scale=1))
    shares, chosen = g.node('TopK', g.node('Softmax', scores, axis=1),
                            g.constant([c['chosen']], 'int64'), outputs=2, axis=-1)
    shares = g.node('Div', shares, g.reduce_sum(shares, -1))
    total = g.node('ConstantOfShape', g.node('Shape', flat))
    for expert in range(c['experts']):
        places, mine = _expert_places(g, chosen, expert)
        rows = g.node('Gather', flat, mine, axis=0)
        rows = _gated(g, rows, f'expert{expert}', c['width'], c['inner'])
        share = g.unsqueeze(g.node('GatherND', shares, places), 1)
        total = _add_rows(g, total, g.node('Mul', rows, share), mine)
    y = g.node('Add', x, g.reshape(total, batch, length, c['width']))
    g.output('hidden', y, 'float32', ['batch', 'length', c['width']])
    g.output('chosen', chosen, 'int64', ['words', c['chosen']])
    random = numpy.random.RandomState(1)
    steps = [dict(input_ids=random.randint(0, c['words'], shape).astype(numpy.int64))
             for shape in ((2, 9), (1, 1), (3, 4))]
    return Exported(g, steps, _mixture_reference)


def _mixture_reference(w, input_ids):
    c = MIXTURE
    x = w['words'][input_ids]
    shares = plain.softmax(x @ w['router'])
    chosen = numpy.argsort(-shares, axis=-1, kind='stable')[..., :c['chosen']]
    best = numpy.take_along_axis(shares, chosen, -1)
    best = best / best.sum(-1, keepdims=True)
    every = numpy.stack([_plain_gated(x, w, f'expert{e}') for e in range(c['experts'])], -2)
    mixed = numpy.take_along_axis(every, chosen[..., None], -2)
    return dict(hidden=x + (mixed * best[..., None]).sum(-2), chosen=chosen.reshape(-1, c['chosen']))
