"""Language models as exporters write them, with references in plain numpy."""

import math

import numpy

import plain_layers as plain
from export_writer import Exported, Writer

BERT = dict(words=19, longest=12, width=16, heads=2, inner=32, layers=2)
GPT2 = dict(words=17, longest=16, width=16, heads=4, layers=2)


def token_ids(random, words, *shape):
    return random.randint(0, words, shape).astype(numpy.int64)


# BERT with a head for questions.

def _heads(g, x, count, width, order):
    batch, length = g.size(x, 0), g.size(x, 1)
    return g.node('Transpose', g.reshape(x, batch, length, count, width // count), perm=order)


def _joined(g, x, width):
    together = g.node('Transpose', x, perm=[0, 2, 1, 3])
    return g.reshape(together, g.size(together, 0), g.size(together, 1), width)


def _bert_embedding(g, c, words, kinds):
    length = g.size(words, 1)
    places = g.slice(g.given('places', numpy.arange(c['longest'])[None]), 0, length, 1)
    values = g.node('Gather', g.weight('words', c['words'], c['width']), words)
    values = g.node('Add', values, g.node('Gather', g.weight('kinds', 2, c['width']), kinds))
    values = g.node('Add', values,
                    g.node('Gather', g.weight('position', c['longest'], c['width']), places))
    return g.layer_norm(values, 'embedding', c['width'])


def _bert_mask(g, mask):
    """What is added to the scores: of exporters before 17 by arithmetic, later by Expand and Where."""
    if g.opset < 17:
        wide = g.node('Cast', g.unsqueeze(mask, 1, 2), to=1)
        return g.node('Mul', g.node('Sub', g.constant(1.0), wide), g.constant(-10000.0))
    length = g.size(mask, 1)
    wide = g.node('Expand', g.unsqueeze(mask, 1, 2), g.shape(g.size(mask, 0), 1, length, length))
    hidden = g.node('Sub', g.constant(1.0), g.node('Cast', wide, to=1))
    return g.node('Where', g.node('Cast', hidden, to=9),
                  g.constant(numpy.finfo(numpy.float32).min, 'float32'), hidden)


def _bert_layer(g, c, x, mask, name):
    width, heads = c['width'], c['heads']
    q = _heads(g, g.linear(x, f'{name}.q', width, width), heads, width, [0, 2, 1, 3])
    k = _heads(g, g.linear(x, f'{name}.k', width, width), heads, width, [0, 2, 3, 1])
    v = _heads(g, g.linear(x, f'{name}.v', width, width), heads, width, [0, 2, 1, 3])
    scores = g.node('Div', g.node('MatMul', q, k), g.constant(math.sqrt(width // heads)))
    weights = g.node('Softmax', g.node('Add', scores, mask), axis=-1 if g.opset >= 13 else 3)
    seen = _joined(g, g.node('MatMul', weights, v), width)
    x = g.layer_norm(g.node('Add', g.linear(seen, f'{name}.o', width, width), x), f'{name}.n1', width)
    inner = g.gelu(g.linear(x, f'{name}.up', width, c['inner']))
    outer = g.linear(inner, f'{name}.down', c['inner'], width)
    return g.layer_norm(g.node('Add', outer, x), f'{name}.n2', width)


def bert(opset):
    c, g = BERT, Writer('bert', opset)
    sizes = ['batch', 'length']
    words = g.input('input_ids', 'int64', sizes)
    mask = g.input('attention_mask', 'int64', sizes)
    kinds = g.input('token_type_ids', 'int64', sizes)
    x, hidden = _bert_embedding(g, c, words, kinds), _bert_mask(g, mask)
    for layer in range(c['layers']):
        x = _bert_layer(g, c, x, hidden, f'layer{layer}')
    first = g.node('Gather', x, g.constant(0, 'int64'), axis=1)
    pooled = g.node('Tanh', g.node('Gemm', first, g.weight('pool', c['width'], c['width']),
                                   g.weight('pool.bias', c['width']), transB=1))
    start, end = g.split(g.linear(x, 'answer', c['width'], 2), [1, 1], -1)
    g.output('start_logits', g.squeeze(start, -1), 'float32', sizes)
    g.output('end_logits', g.squeeze(end, -1), 'float32', sizes)
    g.output('pooler_output', pooled, 'float32', ['batch', c['width']])
    return Exported(g, [_bert_step(2, 7), _bert_step(1, 12), _bert_step(3, 1)], _bert_reference)


def _bert_step(batch, length):
    random = numpy.random.RandomState(length)
    mask = numpy.ones((batch, length), numpy.int64)
    mask[0, 1 + length // 2:] = 0
    return dict(input_ids=token_ids(random, BERT['words'], batch, length), attention_mask=mask,
                token_type_ids=token_ids(random, 2, batch, length))


def _bert_reference(w, input_ids, attention_mask, token_type_ids):
    x = w['words'][input_ids] + w['kinds'][token_type_ids] + w['position'][:input_ids.shape[1]]
    x = plain.layer_norm(x, w, 'embedding')
    seen = attention_mask[:, None, None, :] == 1
    for layer in range(BERT['layers']):
        name = f'layer{layer}'
        q, k, v = (plain.heads(plain.linear(x, w, f'{name}.{part}'), BERT['heads'])
                   for part in 'qkv')
        mixed = plain.joined(plain.attention(q, k, v, seen))
        x = plain.layer_norm(plain.linear(mixed, w, f'{name}.o') + x, w, f'{name}.n1')
        inner = plain.gelu(plain.linear(x, w, f'{name}.up'))
        x = plain.layer_norm(plain.linear(inner, w, f'{name}.down') + x, w, f'{name}.n2')
    answer = plain.linear(x, w, 'answer')
    return dict(start_logits=answer[..., 0], end_logits=answer[..., 1],
                pooler_output=numpy.tanh(x[:, 0] @ w['pool'].T + w['pool.bias']))


# GPT-2 with a cache of keys and values.

def _conv1d(g, x, name, rows, columns):
    """The linear layer of GPT-2: Reshape, Gemm, Reshape back."""
    batch, length = g.size(x, 0), g.size(x, 1)
    product = g.node('Gemm', g.node('Reshape', x, g.constant([-1, rows], 'int64')),
                     g.weight(f'{name}.weight', rows, columns), g.weight(f'{name}.bias', columns))
    return g.reshape(product, batch, length, columns)


def _gpt2_seen(g, queries, keys):
    """Which keys each query sees: a slice of a triangle, from operator set 14 on made by Trilu."""
    square = (GPT2['longest'], GPT2['longest'])
    if g.opset < 14:
        triangle = g.constant(numpy.tril(numpy.ones(square)), 'bool')
    else:
        ones = g.node('ConstantOfShape', g.constant(square, 'int64'))
        triangle = g.node('Cast', g.node('Trilu', g.node('Add', ones, g.constant(1.0)), upper=0), to=9)
    rows = g.slice(triangle, g.node('Sub', keys, queries), keys, 0)
    return g.unsqueeze(g.slice(rows, 0, keys, 1), 0, 1)


def _gpt2_attention(g, x, past, name):
    width, heads = GPT2['width'], GPT2['heads']
    parts = g.split(_conv1d(g, x, f'{name}.qkv', width, 3 * width), [width] * 3, 2)
    q, k, v = (_heads(g, part, heads, width, [0, 2, 1, 3]) for part in parts)
    old_k = g.node('Gather', past, g.constant(0, 'int64'), axis=0)
    old_v = g.node('Gather', past, g.constant(1, 'int64'), axis=0)
    k, v = g.node('Concat', old_k, k, axis=-2), g.node('Concat', old_v, v, axis=-2)
    present = g.node('Concat', g.unsqueeze(k, 0), g.unsqueeze(v, 0), axis=0)
    scores = g.node('MatMul', q, g.node('Transpose', k, perm=[0, 1, 3, 2]))
    scores = g.node('Div', scores, g.constant(math.sqrt(width // heads)))
    seen = _gpt2_seen(g, g.size(q, 2), g.size(k, 2))
    scores = g.node('Where', seen, scores, g.constant(-10000.0))
    mixed = g.node('MatMul', g.node('Softmax', scores, axis=3), v)
    return _conv1d(g, _joined(g, mixed, width), f'{name}.o', width, width), present


def gpt2(opset):
    c, g = GPT2, Writer('gpt2', opset)
    width = c['width']
    words = g.input('input_ids', 'int64', ['batch', 'length'])
    cache = [2, 'batch', c['heads'], 'past', width // c['heads']]
    pasts = [g.input(f'past_{i}', 'float32', cache) for i in range(c['layers'])]
    before, length = g.size(pasts[0], 3), g.size(words, 1)
    places = g.node('Range', before, g.node('Add', before, length), g.constant(1, 'int64'))
    places = g.reshape(g.unsqueeze(places, 0), -1, length)
    table = g.weight('words', c['words'], width)
    x = g.node('Add', g.node('Gather', table, words),
               g.node('Gather', g.weight('position', c['longest'], width), places))
    presents = []
    for i, past in enumerate(pasts):
        name = f'layer{i}'
        mixed, present = _gpt2_attention(g, g.layer_norm(x, f'{name}.n1', width), past, name)
        presents.append(present)
        x = g.node('Add', mixed, x)
        inner = _conv1d(g, g.layer_norm(x, f'{name}.n2', width), f'{name}.up', width, 4 * width)
        x = g.node('Add', x, _conv1d(g, g.gelu_tanh(inner), f'{name}.down', 4 * width, width))
    x = g.layer_norm(x, 'last', width)
    logits = g.node('MatMul', x, g.node('Transpose', table, perm=[1, 0]))
    g.output('logits', logits, 'float32', ['batch', 'length', c['words']])
    for i, present in enumerate(presents):
        g.output(f'present_{i}', present, 'float32', cache[:3] + ['total'] + cache[4:])
    return Exported(g, [_gpt2_step(2, 5, 0), _gpt2_step(2, 1, 5), _gpt2_step(1, 3, 9)],
                    _gpt2_reference)


def _gpt2_step(batch, length, past):
    random = numpy.random.RandomState(length + past)
    shape = (2, batch, GPT2['heads'], past, GPT2['width'] // GPT2['heads'])
    step = {f'past_{i}': random.standard_normal(shape).astype(numpy.float32)
            for i in range(GPT2['layers'])}
    return dict(step, input_ids=token_ids(random, GPT2['words'], batch, length))


def _gpt2_reference(w, input_ids, **pasts):
    before, length = pasts['past_0'].shape[3], input_ids.shape[1]
    places = numpy.arange(before, before + length)
    x = w['words'][input_ids] + w['position'][places]
    seen = numpy.arange(before + length)[None, :] <= places[:, None]
    outputs = {}
    for i in range(GPT2['layers']):
        name, (old_k, old_v) = f'layer{i}', pasts[f'past_{i}']
        fused = plain.linear(plain.layer_norm(x, w, f'{name}.n1'), w, f'{name}.qkv')
        q, k, v = (plain.heads(part, GPT2['heads']) for part in numpy.split(fused, 3, axis=-1))
        k, v = numpy.concatenate([old_k, k], 2), numpy.concatenate([old_v, v], 2)
        outputs[f'present_{i}'] = numpy.stack([k, v])
        x = x + plain.linear(plain.joined(plain.attention(q, k, v, seen)), w, f'{name}.o')
        inner = plain.linear(plain.layer_norm(x, w, f'{name}.n2'), w, f'{name}.up')
        x = x + plain.linear(plain.gelu_tanh(inner), w, f'{name}.down')
    outputs['logits'] = plain.layer_norm(x, w, 'last') @ w['words'].T
    return outputs
