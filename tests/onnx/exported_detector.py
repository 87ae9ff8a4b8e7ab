"""A detector with NonMaxSuppression as exporters write it, with a reference in plain numpy."""

import numpy

import exported_vision as vision
import plain_layers as plain
from export_writer import Exported, Writer

CLASSES, STRIDE, KEPT, EACH = 3, 4, 6, 4
OVERLAP, LEAST = 0.4, 0.72


def _centres(g, height, width):
    """Centres of the cells as [cells, 2], y before x: Range, Expand, Reshape, Concat."""
    both = []
    for extent, axis in ((height, 1), (width, 0)):
        line = g.node('Range', g.constant(0, 'int64'), extent, g.constant(1, 'int64'))
        line = g.node('Expand', g.unsqueeze(line, axis), g.shape(height, width))
        both.append(g.unsqueeze(g.node('Reshape', line, g.constant([-1], 'int64')), 1))
    cells = g.node('Cast', g.node('Concat', *both, axis=1), to=1)
    middle = g.node('Add', cells, g.constant(0.5))
    return g.node('Mul', middle, g.constant(float(STRIDE)))


def _best(g, scores):
    """The places of the best, KEPT at most: TopK of a number that the operands decide."""
    count = g.size(scores, 0)
    if g.opset < 13:  # Min of integers came with operator set 12
        both = g.node('Concat', g.unsqueeze(g.node('Cast', count, to=1), 0), g.constant([float(KEPT)]),
                      axis=0)
        most = g.node('Cast', g.node('ReduceMin', both, axes=[0], keepdims=1), to=7)
    else:
        most = g.unsqueeze(g.node('Min', count, g.constant(KEPT, 'int64')), 0)
    return g.node('TopK', scores, most, outputs=2, axis=0, largest=1, sorted=1)


def detector(opset):
    g = Writer('detector', opset)
    image = g.input('image', 'float32', [1, 3, 'height', 'width'])
    x = g.node('Relu', vision._conv(g, image, 'c1', 3, 8, stride=2))
    x = vision._conv(g, x, 'c2', 8, 8, stride=2)
    x = g.node('HardSwish', x) if opset >= 14 else _hard_swish(g, x)
    x = vision._conv(g, x, 'head', 8, 4 + CLASSES, 1)
    height, width = g.size(x, 2), g.size(x, 3)
    cells = g.reshape(g.node('Transpose', x, perm=[0, 2, 3, 1]), g.size(x, 0), -1, 4 + CLASSES)
    moved, sizes, classes = g.split(cells, [2, 2, CLASSES], 2)
    centre = g.node('Add', g.node('Mul', moved, g.constant(float(STRIDE))), _centres(g, height, width))
    grown = g.node('Clip', sizes, '', g.constant(2.0))
    half = g.node('Mul', g.node('Exp', grown), g.constant(float(STRIDE)))
    boxes = g.node('Concat', g.node('Sub', centre, half), g.node('Add', centre, half), axis=2)
    scores = g.node('Transpose', g.node('Sigmoid', classes), perm=[0, 2, 1])
    found = g.node('NonMaxSuppression', boxes, scores, g.constant([EACH], 'int64'),
                   g.constant([OVERLAP]), g.constant([LEAST]), center_point_box=0)
    kept = g.node('GatherND', scores, found)
    kept, places = _best(g, kept)
    found = g.node('Gather', found, places, axis=0)
    classes = g.node('Gather', found, g.constant(1, 'int64'), axis=1)
    cell = g.node('Gather', found, g.constant(2, 'int64'), axis=1)
    g.output('boxes', g.node('Gather', g.squeeze(boxes, 0), cell, axis=0), 'float32', ['found', 4])
    g.output('scores', kept, 'float32', ['found'])
    g.output('labels', classes, 'int64', ['found'])
    steps = [dict(image=vision._image(n, 1, 3, *size) * 0.7)
             for n, size in ((3, (16, 24)), (4, (32, 20)))]
    nothing = dict(image=numpy.zeros((1, 3, 8, 8), numpy.float32))
    return Exported(g, steps + [nothing], _detector_reference)


def _hard_swish(g, x):
    """Of exporters before operator set 14: Add, Clip, Div, Mul."""
    gate = g.node('Clip', g.node('Add', x, g.constant(3.0)), g.constant(0.0), g.constant(6.0))
    return g.node('Mul', x, g.node('Div', gate, g.constant(6.0)))


def _overlap(a, b):
    sides = numpy.maximum(numpy.minimum(a[2:], b[2:]) - numpy.maximum(a[:2], b[:2]), 0)
    common = sides.prod()
    return common / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common)


def _not_suppressed(boxes, scores):
    """Cells of one class, best first."""
    chosen = []
    for cell in numpy.argsort(-scores, kind='stable'):
        if scores[cell] <= LEAST or len(chosen) == EACH:
            break
        if all(_overlap(boxes[cell], boxes[other]) <= OVERLAP for other in chosen):
            chosen.append(cell)
    return chosen


def _detector_reference(w, image):
    x = numpy.maximum(vision._plain_conv(image.astype(float), w, 'c1', 2), 0)
    x = vision._plain_conv(x, w, 'c2', 2)
    x = vision._plain_conv(x * numpy.clip(x + 3, 0, 6) / 6, w, 'head')[0]
    rows, columns = x.shape[1:]
    cells = x.transpose(1, 2, 0).reshape(-1, 4 + CLASSES)
    centre = numpy.stack(numpy.mgrid[:rows, :columns], -1).reshape(-1, 2) + 0.5 + cells[:, :2]
    half = numpy.exp(numpy.minimum(cells[:, 2:4], 2))
    boxes = STRIDE * numpy.concatenate([centre - half, centre + half], -1)
    scores = plain.sigmoid(cells[:, 4:])
    found = [(scores[cell, label], label, cell) for label in range(CLASSES)
             for cell in _not_suppressed(boxes, scores[:, label])]
    found = sorted(found, key=lambda one: -one[0])[:KEPT]
    cells = [cell for _, _, cell in found]
    return dict(boxes=boxes[cells].reshape(-1, 4), scores=numpy.array([one[0] for one in found]),
                labels=numpy.array([label for _, label, _ in found], numpy.int64))
