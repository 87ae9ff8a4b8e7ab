"""Layers in plain numpy of float64, which the models of exporters are judged by."""

import math

import numpy

_erf = numpy.vectorize(math.erf, otypes=[float])


def softmax(x):
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + numpy.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def linear(x, w, name):
    return x @ w[f'{name}.weight'] + w[f'{name}.bias']


def layer_norm(x, w, name):
    centred = x - x.mean(-1, keepdims=True)
    normal = centred / numpy.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5)
    return normal * w[f'{name}.gain'] + w[f'{name}.bias']


def heads(x, count):
    """[batch, length, count * width] as [batch, count, length, width]."""
    batch, length, width = x.shape
    return x.reshape(batch, length, count, width // count).transpose(0, 2, 1, 3)


def joined(x):
    """The way back from heads."""
    batch, count, length, width = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, count * width)


def attention(q, k, v, seen):
    """`seen` says which keys a query may look at."""
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1])
    return softmax(numpy.where(seen, scores, -1e30)) @ v
