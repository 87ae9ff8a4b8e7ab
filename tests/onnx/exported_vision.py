"""A ResNet as exporters write it, with a reference in plain numpy."""

import numpy

from export_writer import Exported, Writer


def _image(seed, *shape):
    return numpy.random.RandomState(seed).standard_normal(shape).astype(numpy.float32)


def _conv(g, x, name, inner, outer, size=3, stride=1, bias=True, groups=1):
    operands = [x, g.weight(f'{name}.weight', outer, inner // groups, size, size)]
    if bias:
        operands.append(g.weight(f'{name}.bias', outer))
    return g.node('Conv', *operands, kernel_shape=[size, size], strides=[stride, stride],
                  pads=[size // 2] * 4, dilations=[1, 1], group=groups)


def _plain_conv(x, w, name, stride=1, pad=None, groups=1):
    weights = w[f'{name}.weight']
    size = weights.shape[2]
    pad = size // 2 if pad is None else pad
    x = numpy.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows, columns = ((extent - size) // stride + 1 for extent in x.shape[2:])
    total = numpy.zeros((x.shape[0], weights.shape[0], rows, columns))
    inner, outer = x.shape[1] // groups, weights.shape[0] // groups
    for group in range(groups):
        part = x[:, group * inner:(group + 1) * inner]
        mine = slice(group * outer, (group + 1) * outer)
        for i in range(size):
            for j in range(size):
                seen = part[:, :, i:i + rows * stride:stride, j:j + columns * stride:stride]
                seen = seen[:, :, :rows, :columns]
                total[:, mine] += numpy.einsum('bchw,oc->bohw', seen, weights[mine, :, i, j])
    bias = w.get(f'{name}.bias')
    return total if bias is None else total + bias[:, None, None]


# ResNet.

def _norm(g, x, name, width):
    """BatchNormalization, whose mode is an attribute from operator set 14 on."""
    gain = g.weight(f'{name}.gain', width, scale=0.1, around=1)
    parts = [gain, g.weight(f'{name}.shift', width), g.weight(f'{name}.mean', width),
             g.weight(f'{name}.variance', width, scale=0.1, around=1)]
    mode = {} if g.opset < 14 else {'training_mode': 0}
    return g.node('BatchNormalization', x, *parts, epsilon=1e-5, momentum=0.9, **mode)


def _plain_norm(x, w, name):
    gain, shift, mean, variance = (w[f'{name}.{part}'][:, None, None]
                                   for part in ('gain', 'shift', 'mean', 'variance'))
    return (x - mean) / numpy.sqrt(variance + 1e-5) * gain + shift


def _block(g, x, name, inner, outer, stride):
    y = g.node('Relu', _norm(g, _conv(g, x, f'{name}.c1', inner, outer, stride=stride, bias=False),
                             f'{name}.n1', outer))
    y = _norm(g, _conv(g, y, f'{name}.c2', outer, outer, bias=False, groups=2), f'{name}.n2', outer)
    if stride > 1:
        x = _norm(g, _conv(g, x, f'{name}.c0', inner, outer, 1, stride, False), f'{name}.n0', outer)
    return g.node('Relu', g.node('Add', y, x))


def resnet(opset):
    g = Writer('resnet', opset)
    x = g.input('image', 'float32', ['batch', 3, 'height', 'width'])
    x = g.node('Relu', _norm(g, _conv(g, x, 'stem', 3, 8, 7, 2, bias=False), 'stem', 8))
    x = g.node('MaxPool', x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, ceil_mode=0)
    x = _block(g, _block(g, x, 'b1', 8, 8, 1), 'b2', 8, 16, 2)
    if opset < 17:
        x = g.node('GlobalAveragePool', x)
    else:
        x = g.node('ReduceMean', x, axes=[-1, -2], keepdims=1)
    x = g.reshape(x, g.size(x, 0), -1) if opset < 13 else g.node('Flatten', x, axis=1)
    logits = g.node('Gemm', x, g.weight('fc', 10, 16), g.weight('fc.bias', 10), alpha=1.0, beta=1.0,
                    transB=1)
    g.output('logits', logits, 'float32', ['batch', 10])
    steps = [dict(image=_image(n, n, 3, *size)) for n, size in ((2, (32, 32)), (1, (29, 37)))]
    return Exported(g, steps, _resnet_reference)


def _plain_block(x, w, name, stride):
    y = numpy.maximum(_plain_norm(_plain_conv(x, w, f'{name}.c1', stride), w, f'{name}.n1'), 0)
    y = _plain_norm(_plain_conv(y, w, f'{name}.c2', groups=2), w, f'{name}.n2')
    if stride > 1:
        x = _plain_norm(_plain_conv(x, w, f'{name}.c0', stride), w, f'{name}.n0')
    return numpy.maximum(y + x, 0)


def _resnet_reference(w, image):
    stem = {'stem.weight': w['stem.weight']}
    x = numpy.maximum(_plain_norm(_plain_conv(image.astype(float), stem, 'stem', 2), w, 'stem'), 0)
    wide = numpy.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-numpy.inf)
    windows = numpy.lib.stride_tricks.sliding_window_view(wide, (3, 3), (2, 3))[:, :, ::2, ::2]
    x = _plain_block(_plain_block(windows.max((-1, -2)), w, 'b1', 1), w, 'b2', 2)
    return dict(logits=x.mean((2, 3)) @ w['fc'].T + w['fc.bias'])
