"""A ResNet, a UNet and a vocoder as exporters write them, with references in plain numpy."""

import numpy

import plain_layers as plain
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


# The UNet of a diffusion model.

def _group_norm(g, x, name, width, groups):
    """GroupNorm: Reshape, InstanceNormalization without effect of its own, Reshape, Mul, Add."""
    flat = g.node('Reshape', x, g.constant([0, groups, -1], 'int64'))
    normal = g.node('InstanceNormalization', flat, g.constant(numpy.ones(groups)),
                    g.constant(numpy.zeros(groups)), epsilon=1e-5)
    normal = g.node('Reshape', normal, g.node('Shape', x))
    gain = g.weight(f'{name}.gain', width, 1, 1, scale=0.1, around=1)
    return g.node('Add', g.node('Mul', normal, gain), g.weight(f'{name}.shift', width, 1, 1))


def _plain_group_norm(x, w, name, groups):
    flat = x.reshape(x.shape[0], groups, -1)
    centred = flat - flat.mean(-1, keepdims=True)
    normal = centred / numpy.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5)
    return normal.reshape(x.shape) * w[f'{name}.gain'] + w[f'{name}.shift']


def _time(g, timestep, width):
    speed = g.constant(10000.0 ** (-numpy.arange(width // 2) / (width // 2)))
    angles = g.node('Mul', g.unsqueeze(g.node('Cast', timestep, to=1), 1), g.unsqueeze(speed, 0))
    x = g.node('Concat', g.node('Sin', angles), g.node('Cos', angles), axis=-1)
    x = g.node('Gemm', x, g.weight('time', width, width), g.weight('time.bias', width), transB=1)
    return g.silu(x)


def _residual(g, x, time, name, inner, outer):
    y = _conv(g, g.silu(_group_norm(g, x, f'{name}.n1', inner, 2)), f'{name}.c1', inner, outer)
    moved = g.node('Gemm', time, g.weight(f'{name}.time', outer, 8), g.weight(f'{name}.moved', outer),
                   transB=1)
    y = g.node('Add', y, g.unsqueeze(moved, 2, 3))
    y = _conv(g, g.silu(_group_norm(g, y, f'{name}.n2', outer, 2)), f'{name}.c2', outer, outer)
    if inner != outer:
        x = _conv(g, x, f'{name}.c0', inner, outer, 1)
    return g.node('Add', x, y)


def _plain_silu(x):
    return x * plain.sigmoid(x)


def _plain_residual(x, time, w, name):
    y = _plain_conv(_plain_silu(_plain_group_norm(x, w, f'{name}.n1', 2)), w, f'{name}.c1')
    y = y + (time @ w[f'{name}.time'].T + w[f'{name}.moved'])[:, :, None, None]
    y = _plain_conv(_plain_silu(_plain_group_norm(y, w, f'{name}.n2', 2)), w, f'{name}.c2')
    return y + (_plain_conv(x, w, f'{name}.c0') if f'{name}.c0.weight' in w else x)


def _image_attention(g, x, width):
    batch, height, columns = g.size(x, 0), g.size(x, 2), g.size(x, 3)
    pixels = g.node('Mul', height, columns)
    flat = g.node('Transpose', x, perm=[0, 2, 3, 1])
    flat = g.reshape(flat, batch, pixels, width)
    q, k, v = g.split(g.linear(g.layer_norm(flat, 'see', width), 'see.qkv', width, 3 * width),
                      [width] * 3, -1)
    scores = g.node('MatMul', q, g.node('Transpose', k, perm=[0, 2, 1]))
    weights = g.node('Softmax', g.node('Mul', scores, g.constant(width ** -0.5)), axis=2)
    flat = g.node('Add', g.linear(g.node('MatMul', weights, v), 'see.o', width, width), flat)
    return g.node('Transpose', g.reshape(flat, batch, height, columns, width), perm=[0, 3, 1, 2])


def _plain_image_attention(x, w):
    batch, width, height, columns = x.shape
    flat = x.transpose(0, 2, 3, 1).reshape(batch, height * columns, width)
    fused = plain.linear(plain.layer_norm(flat, w, 'see'), w, 'see.qkv')
    q, k, v = (part[:, None] for part in numpy.split(fused, 3, -1))
    flat = flat + plain.linear(plain.attention(q, k, v, True)[:, 0], w, 'see.o')
    return flat.reshape(batch, height, columns, width).transpose(0, 3, 1, 2)


def _doubled(g, x):
    """Twice the size: by scales; in operator set 17 by the sizes, as for a given output size."""
    how = dict(mode='nearest', coordinate_transformation_mode='asymmetric', nearest_mode='floor')
    if g.opset < 13:
        nowhere = g.constant(numpy.zeros(0))
        return g.node('Resize', x, nowhere, g.constant([1.0, 1.0, 2.0, 2.0]), **how)
    if g.opset < 17:
        return g.node('Resize', x, '', g.constant([1.0, 1.0, 2.0, 2.0]), **how)
    shape = g.node('Shape', x)
    kept = g.node('Slice', shape, g.constant([0], 'int64'), g.constant([2], 'int64'))
    sizes = [g.node('Mul', g.size(x, axis), g.constant(2, 'int64')) for axis in (2, 3)]
    return g.node('Resize', x, '', '', g.node('Concat', kept, g.shape(*sizes), axis=0), **how)


def unet(opset):
    g = Writer('unet', opset)
    image = g.input('sample', 'float32', ['batch', 4, 'height', 'width'])
    time = _time(g, g.input('timestep', 'int64', ['batch']), 8)
    high = _residual(g, _conv(g, image, 'in', 4, 8), time, 'r1', 8, 8)
    wide = g.node('Pad', high, g.constant([0, 0, 0, 0, 0, 0, 1, 1], 'int64'), g.constant(0.0),
                  mode='constant')
    low = g.node('Conv', wide, g.weight('down.weight', 8, 8, 3, 3), kernel_shape=[3, 3], strides=[2, 2])
    low = _residual(g, low, time, 'r2', 8, 16)
    deep = g.node('AveragePool', low, kernel_shape=[2, 2], strides=[2, 2])
    deep = _image_attention(g, deep, 16)
    up = g.node('ConvTranspose', deep, g.weight('up', 16, 8, 2, 2), g.weight('up.bias', 8),
                kernel_shape=[2, 2], strides=[2, 2])
    up = _residual(g, g.node('Concat', up, low, axis=1), time, 'r3', 24, 8)
    up = _conv(g, _doubled(g, up), 'wider', 8, 8)
    last = _residual(g, g.node('Concat', up, high, axis=1), time, 'r4', 16, 8)
    last = _conv(g, g.silu(_group_norm(g, last, 'last', 8, 2)), 'out', 8, 4)
    g.output('noise', last, 'float32', ['batch', 4, 'height', 'width'])
    steps = [dict(sample=_image(n, n, 4, *size), timestep=numpy.arange(7, 7 + n))
             for n, size in ((2, (8, 8)), (1, (12, 16)))]
    return Exported(g, steps, _unet_reference)


def _unet_reference(w, sample, timestep):
    angles = timestep[:, None] * 10000.0 ** (-numpy.arange(4) / 4)
    waves = numpy.concatenate([numpy.sin(angles), numpy.cos(angles)], -1)
    time = _plain_silu(waves @ w['time'].T + w['time.bias'])
    high = _plain_residual(_plain_conv(sample.astype(float), w, 'in'), time, w, 'r1')
    wide = numpy.pad(high, ((0, 0), (0, 0), (0, 1), (0, 1)))
    low = _plain_residual(_plain_conv(wide, w, 'down', 2, 0), time, w, 'r2')
    batch, width, height, columns = low.shape
    deep = low.reshape(batch, width, height // 2, 2, columns // 2, 2).mean((3, 5))
    deep = _plain_image_attention(deep, w)
    up = numpy.einsum('bchw,coij->bohiwj', deep, w['up']).reshape(batch, 8, height, columns)
    up = up + w['up.bias'][:, None, None]
    up = _plain_residual(numpy.concatenate([up, low], 1), time, w, 'r3')
    up = _plain_conv(up.repeat(2, 2).repeat(2, 3), w, 'wider')
    last = _plain_residual(numpy.concatenate([up, high], 1), time, w, 'r4')
    return dict(noise=_plain_conv(_plain_silu(_plain_group_norm(last, w, 'last', 2)), w, 'out'))


# A step of a vocoder: a row that gets longer.

def vocoder(opset, **how):
    g = Writer('vocoder', opset)
    row = g.input('row', 'float32', ['batch', 4, 'length'])
    how = how or dict(pads=[2, 1], output_padding=[1])
    y = g.node('ConvTranspose', row, g.weight('w', 4, 3, 5), g.weight('b', 3), kernel_shape=[5],
               strides=[3], **how)
    g.output('wave', g.node('Tanh', g.node('LeakyRelu', y, alpha=0.1)), 'float32',
             ['batch', 3, 'samples'])
    steps = [dict(row=_image(n, n, 4, length)) for n, length in ((2, 7), (1, 1), (3, 4))]
    return Exported(g, steps, _vocoder_reference)


def _vocoder_reference(w, row):
    length = row.shape[2]
    whole = numpy.zeros((row.shape[0], 3, 3 * (length - 1) + 5 + 1))
    for i in range(length):
        whole[:, :, 3 * i:3 * i + 5] += numpy.einsum('bc,cok->bok', row[:, :, i], w['w'])
    wave = whole[:, :, 2:-1] + w['b'][:, None]
    return dict(wave=numpy.tanh(numpy.where(wave < 0, 0.1 * wave, wave)))


def vocoder_of_same_length(opset):
    """Pads that follow from a length which is open."""
    return vocoder(opset, auto_pad='SAME_UPPER')


def vocoder_with_two_paddings(opset):
    return vocoder(opset, output_padding=[1, 1])
