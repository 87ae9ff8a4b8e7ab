"""Calls of functions of aclnn with what torch says of them: aclnn_test.py draws them.

CASES[name](d) gives the arguments in order, with OUT for each tensor that is only written, and what stands in the
written tensors afterwards. Floats are computed in double.
"""

import torch
import torch.nn.functional as F

from case import numpy as np

OUT = object()
FLOATS = ("float32", "float16")
WHOLE = ("int32", "int64", "int8", "uint8", "int16")
CASES = {}


def case(*names):
    def register(function):
        for name in names:
            CASES["aclnn" + name] = lambda d, name=name: function(d, name)
        return function
    return register


def T(x):
    """A tensor of torch: floats as double."""
    made = torch.from_numpy(np.ascontiguousarray(x).reshape(np.shape(x)))
    return made.double() if made.is_floating_point() else made


def N(x, dtype=None):
    """The array of a tensor; floats in the type of `dtype`."""
    made = x.detach().numpy()
    return made if dtype is None else made.astype(dtype)


def reals(d, *ranks, low=-3, high=3, dtypes=FLOATS, least=1, most=5):
    shape = tuple(int(v) for v in d.random.integers(least, most + 1, d.pick(ranks or (1, 2, 3, 4))))
    return d.array(d.pick(dtypes), shape, low, high)


def like(d, x, low=-3, high=3, dtype=None):
    return d.array(dtype or x.dtype.name, x.shape, low, high)


def gradient(function, grad, *inputs):
    """The gradients of function(*inputs) for each input."""
    leaves = [T(x).requires_grad_() for x in inputs]
    function(*leaves).backward(T(grad))
    return [N(leaf.grad, x.dtype) for leaf, x in zip(leaves, inputs)]


# ---- One and two tensors ----

for _name, _function, _low, _high in (
        ("Sinc", torch.sinc, -3, 3), ("Erfinv", torch.erfinv, -0.9, 0.9), ("Erfc", torch.erfc, -3, 3),
        ("Exp2", torch.exp2, -3, 3), ("Log2", torch.log2, 1, 4), ("Log10", torch.log10, 1, 4),
        ("Frac", torch.frac, -3, 3), ("Round", torch.round, -3, 3), ("Atanh", torch.atanh, -0.8, 0.8),
        ("Tan", torch.tan, -1, 1), ("Trunc", torch.trunc, -3, 3), ("Ceil", torch.ceil, -3, 3),
        ("Neg", torch.neg, -3, 3), ("Rsqrt", torch.rsqrt, 1, 4), ("Reciprocal", torch.reciprocal, 1, 4),
        ("Acosh", torch.acosh, 1.5, 4), ("Asinh", torch.asinh, -3, 3), ("Acos", torch.acos, -0.9, 0.9),
        ("Asin", torch.asin, -0.9, 0.9), ("Atan", torch.atan, -3, 3), ("Cosh", torch.cosh, -3, 3),
        ("Sinh", torch.sinh, -3, 3), ("Sin", torch.sin, -3, 3), ("Expm1", torch.expm1, -3, 3),
        ("Log1p", torch.log1p, 0, 4), ("Erf", torch.erf, -3, 3), ("Mish", F.mish, -3, 3),
        ("Hardswish", F.hardswish, -3, 3), ("Hardsigmoid", F.hardsigmoid, -4, 4), ("Selu", F.selu, -3, 3),
        ("LogSigmoid", F.logsigmoid, -3, 3), ("Softsign", F.softsign, -3, 3), ("HardsigmoidV2", F.hardsigmoid, -4, 4)):
    def _one(d, name, function=_function, low=_low, high=_high):
        x = reals(d, 0, 1, 2, 3, 4, low=low, high=high, least=0)
        expected = [N(function(T(x)), x.dtype)]
        return ([x] if "Inplace" in name else [x, OUT]), expected
    if _name not in ("Erfc", "LogSigmoid", "Softsign", "HardsigmoidV2"):
        case("Inplace" + _name)(_one)
    case(_name)(_one)
    if _name in ("Erfc", "HardsigmoidV2"):
        case("Inplace" + _name)(_one)


@case("Signbit")
def signbit(d, name):
    x = reals(d, 0, 1, 2, 3, dtypes=FLOATS + ("int32",))
    x = np.where(d.random.random(x.shape) < 0.3, np.array(-0.0, x.dtype), x)
    return [x, OUT], [np.signbit(x) if x.dtype.kind == "f" else x < 0]


@case("IsPosInf", "IsNegInf", "IsFinite", "NanToNum", "InplaceNanToNum")
def special(d, name):
    x = reals(d)
    x = np.where(d.random.random(x.shape) < 0.5, d.random.choice([np.inf, -np.inf, np.nan], x.shape), x).astype(x.dtype)
    if "NanToNum" in name:
        words = [1.5, 2.0, -2.0]
        expected = [N(torch.nan_to_num(T(x), *words), x.dtype)]
        return [x, *words] + ([] if "Inplace" in name else [OUT]), expected
    function = {"IsPosInf": np.isposinf, "IsNegInf": np.isneginf, "IsFinite": np.isfinite}[name]
    return [x, OUT], [function(x)]


@case("RoundDecimals", "InplaceRoundDecimals")
def round_decimals(d, name):
    x = reals(d, dtypes=("float32",))
    decimals = int(d.random.integers(0, 3))
    away = np.abs(x * 10.0 ** decimals - np.floor(x * 10.0 ** decimals) - 0.5)
    if (away < 1e-3).any():
        return None
    return [x, decimals] + ([] if "Inplace" in name else [OUT]), [N(torch.round(T(x), decimals=decimals), x.dtype)]


@case("FmodTensor", "InplaceFmodTensor", "RemainderTensorTensor", "InplaceRemainderTensorTensor", "FloorDivide",
      "InplaceFloorDivide", "FmodScalar", "InplaceFmodScalar", "RemainderTensorScalar", "InplaceRemainderTensorScalar",
      "FloorDivides", "InplaceFloorDivides", "RemainderScalarTensor")
def quotients(d, name):
    x = reals(d, 0, 1, 2, 3, dtypes=("int32", "int64", "float32"), low=-9, high=9)
    scalar = "Scalar" in name or name.endswith("ides")
    y = d.pick([-3, -2, 2, 4]) if scalar else like(d, x, -4, 4)
    if not scalar:
        y = np.where(np.abs(y) < 0.5, np.ones((), x.dtype), y)
    function = torch.fmod if "Fmod" in name else torch.remainder if "Remainder" in name else torch.floor_divide
    if name == "RemainderScalarTensor":
        base = like(d, x, 1, 5)
        if (np.abs(base) < 0.5).any():
            return None
        return [7, base, OUT], [N(torch.remainder(torch.tensor(7), T(base)), x.dtype)]
    values = N(function(T(x), y if scalar else T(y)), x.dtype)
    if x.dtype.kind == "f":  # close to a multiple either side is right
        quotient = T(x).numpy() / (y if scalar else T(y).numpy())
        if (np.abs(quotient - np.round(quotient)) < 1e-3).any():
            return None
    return [x, y] + ([] if "Inplace" in name else [OUT]), [values]


@case("DivMod", "InplaceDivMod", "DivMods", "InplaceDivMods", "DivV3")
def div_mod(d, name):
    x = reals(d, 0, 1, 2, 3, dtypes=("int32", "float32"), low=-9, high=9)
    mode = d.pick([1, 2]) if x.dtype.kind == "i" else d.pick([0, 1, 2])
    y = d.pick([-3, -2, 2, 4]) if "Mods" in name else d.pick([-3, 2, 4]) * np.ones(x.shape, x.dtype)
    quotient = np.asarray(x, "float64") / y
    if x.dtype.kind == "f" and (np.abs(quotient - np.round(quotient)) < 1e-3).any():
        return None
    rounding = [None, "trunc", "floor"][mode]
    expected = N(torch.div(T(x), y if "Mods" in name else T(y), rounding_mode=rounding), x.dtype)
    return [x, y, mode] + ([] if "Inplace" in name else [OUT]), [expected]


@case("Atan2", "InplaceAtan2", "LogAddExp", "LogAddExp2", "XLogYTensor", "InplaceXLogYTensor", "Heaviside",
      "PowTensorTensor", "InplacePowTensorTensor", "Maximum", "Minimum")
def two(d, name):
    low = 0.5 if "LogY" in name or "Pow" in name else -3
    x = reals(d, 0, 1, 2, 3, low=low, least=0)
    y = d.array(x.dtype.name, x.shape if "Inplace" in name else d.against(x.shape), low, 3)
    if name == "Heaviside":
        x = np.where(d.random.random(x.shape) < 0.3, np.zeros((), x.dtype), x)
    function = {"Atan2": torch.atan2, "LogAddExp": torch.logaddexp, "LogAddExp2": torch.logaddexp2,
                "XLogYTensor": torch.xlogy, "Heaviside": torch.heaviside, "PowTensorTensor": torch.pow,
                "Maximum": torch.maximum, "Minimum": torch.minimum}[name.replace("Inplace", "")]
    expected = [N(function(T(x), T(y)), x.dtype)]
    return [x, y] + ([] if "Inplace" in name else [OUT]), expected


@case("AddV3")
def add_v3(d, name):
    x = reals(d, dtypes=("float32", "int32"))
    alpha = d.pick([1, 3])
    return [2, x, alpha, OUT], [(2 + alpha * x.astype("float64")).astype(x.dtype)]


@case("XLogYScalarOther", "InplaceXLogYScalarOther", "XLogYScalarSelf")
def xlogy_scalar(d, name):
    x, s = reals(d, low=0.5), float(np.float32(d.random.uniform(0.5, 3)))
    if name == "XLogYScalarSelf":
        return [s, x, OUT], [N(torch.xlogy(s, T(x)), x.dtype)]
    return [x, s] + ([] if "Inplace" in name else [OUT]), [N(torch.xlogy(T(x), s), x.dtype)]


@case("Lerp", "InplaceLerp", "Lerps", "InplaceLerps")
def lerp(d, name):
    x = reals(d)
    end = like(d, x)
    weight = d.pick([0.25, 0.5, 2.0]) if "Lerps" in name else like(d, x)
    expected = N(torch.lerp(T(x), T(end), weight if "Lerps" in name else T(weight)), x.dtype)
    return [x, end, weight] + ([] if "Inplace" in name else [OUT]), [expected]


@case("ClampMax", "InplaceClampMax", "ClampMin", "ClampMaxTensor", "InplaceClampMaxTensor", "ClampMinTensor",
      "InplaceClampMinTensor", "ClampTensor")
def clamps(d, name):
    x = reals(d, 0, 1, 2, 3, dtypes=FLOATS + ("int32",))
    tensor = "Tensor" in name
    bound = like(d, x) if tensor else d.pick([-1, 0, 2])
    if name == "ClampTensor":
        high = like(d, x)
        if d.pick([True, False]):
            return [x, None, high, OUT], [np.minimum(x, high)]
        return [x, bound, high, OUT], [np.minimum(np.maximum(x, bound), high)]
    expected = (np.minimum if "Max" in name else np.maximum)(x, np.asarray(bound, x.dtype))
    return [x, bound] + ([] if "Inplace" in name else [OUT]), [expected]


@case("InplaceFillTensor", "Equal", "AddRelu", "InplaceAddRelu", "IsInTensorScalar", "IsInScalarTensor", "LeftShifts",
      "BitwiseAndTensorOut", "InplaceBitwiseAndTensorOut", "MaskedScale", "ApproximateEqual", "AddMatMatElements")
def others(d, name):
    x = reals(d, 1, 2, 3, dtypes=("int32",) if "Shift" in name or "Bitwise" in name else ("float32", "int32"))
    if name == "InplaceFillTensor":
        value = np.array(2, x.dtype)
        return [x, value], [np.full(x.shape, 2, x.dtype)]
    if name == "Equal":
        y = d.pick([x.copy(), like(d, x), d.array(x.dtype.name, x.shape + (1,))])
        return [x, y, OUT], [np.array([np.array_equal(x, y)])]
    if "AddRelu" in name:
        y, alpha = like(d, x), d.pick([1, 2])
        expected = np.maximum(x + alpha * y, 0).astype(x.dtype)
        return [x, y, alpha] + ([] if "Inplace" in name else [OUT]), [expected]
    if name == "IsInTensorScalar":
        invert = d.pick([False, True])
        return [x, 2, False, invert, OUT], [(x == 2) != invert]
    if name == "IsInScalarTensor":
        invert = d.pick([False, True])
        return [2, x, False, invert, OUT], [np.asarray((x == 2).any() != invert)]
    if name == "LeftShifts":
        x = np.abs(x)
        return [x, 2, OUT], [x << 2]
    if "Bitwise" in name:
        y = like(d, x)
        return [x, y] + ([] if "Inplace" in name else [OUT]), [x & y]
    x = x.astype("float32")
    if name == "MaskedScale":
        mask = d.array("uint8", x.shape, 0, 1)
        return [x, mask, 2.0, OUT], [x * mask * np.float32(2)]
    if name == "ApproximateEqual":
        y = like(d, x)
        return [x, y, 1.0, OUT], [np.abs(x - y) < 1]
    y, z = like(d, x), like(d, x)
    return [x, y, z, 2.0, 0.5, OUT], [(0.5 * z + 2 * x * y).astype("float32")]


@case("Addr", "InplaceAddr", "AddrV2", "InplaceAddrV2")
def addr(d, name):
    m, n = (int(v) for v in d.random.integers(1, 6, 2))
    c, a, b = d.array("float32", (m, n)), d.array("float32", (m,)), d.array("float32", (n,))
    beta, alpha = d.pick([0.5, 1, 2, 0]), d.pick([0.5, 1, 2])
    expected = N(torch.addr(T(c), T(a), T(b), beta=beta, alpha=alpha), "float32")
    return [c, a, b, beta, alpha] + ([] if "Inplace" in name else [OUT]), [expected]


@case("Addbmm", "InplaceAddbmm", "InplaceAddmm", "InplaceBaddbmm", "Gemm")
def products(d, name):
    b, m, k, n = (int(v) for v in d.random.integers(1, 6, 4))
    array = lambda *shape: d.array("float32", shape, -1, 1)  # noqa: E731
    beta, alpha = d.pick([0.5, 1, 2]), d.pick([0.5, 1, 2])
    if name == "Gemm":
        ta, tb = d.pick([0, 1]), d.pick([0, 1])
        x, y, c = array(*((k, m) if ta else (m, k))), array(*((n, k) if tb else (k, n))), array(m, n)
        product = (T(x).T if ta else T(x)) @ (T(y).T if tb else T(y))
        return [x, y, c, alpha, beta, ta, tb, OUT, 1], [N(alpha * product + beta * T(c), "float32")]
    batched = "bmm" in name
    x, y = (array(b, m, k), array(b, k, n)) if batched else (array(m, k), array(k, n))
    c = array(b, m, n) if "Badd" in name else array(m, n)
    function = {"Addbmm": torch.addbmm, "InplaceAddbmm": torch.addbmm, "InplaceAddmm": torch.addmm,
                "InplaceBaddbmm": torch.baddbmm}[name]
    expected = N(function(T(c), T(x), T(y), beta=beta, alpha=alpha), "float32")
    return [c, x, y, beta, alpha] + ([1] if "Inplace" in name else [OUT, 1]), [expected]


@case("Trace", "Diag", "DiagFlat", "InplaceFillDiagonal")
def diagonals(d, name):
    x = reals(d, 2, dtypes=("float32", "int32"))
    if name == "Trace":
        expected = N(torch.trace(T(x)))
        return [x, OUT], [expected.astype("float32" if x.dtype.kind == "f" else "int64")]
    if name == "InplaceFillDiagonal":
        x = x[:x.shape[1] + 1]
        y = x.copy()
        np.fill_diagonal(y, 2)
        return [np.ascontiguousarray(x), 2, False], [y]
    k = int(d.random.integers(-2, 3))
    if name == "DiagFlat":
        return [x, k, OUT], [N(torch.diagflat(T(x), k), x.dtype)]
    if d.pick([True, False]):
        x = x[0].copy()
    elif not -x.shape[0] < k < x.shape[1]:
        return None
    return [x, k, OUT], [N(torch.diag(T(x), k), x.dtype)]


@case("LinalgCross", "Cdist", "Norm", "LinalgVectorNorm", "Renorm", "InplaceRenorm", "ReduceNansum", "ReduceLogSum",
      "MaxV2", "MeanV2", "Aminmax", "AminmaxAll", "AminmaxDim", "VarCorrection", "Var", "VarMean", "Std",
      "StdMeanCorrection", "MaxN", "MinN", "Sum", "SumV2", "LogSumExp", "Prod", "ProdDim", "Max", "Min")
def sums(d, name):
    x = reals(d, 1, 2, 3, dtypes=("float32",))
    dims = sorted({int(v) for v in d.random.integers(0, x.ndim, d.pick([0, 1, 2]))})
    over = tuple(dims) or tuple(range(x.ndim))
    keep, t = d.pick([True, False]), T(x)
    if name == "LinalgCross":
        axis = int(d.random.integers(x.ndim))
        x = d.array("float32", x.shape[:axis] + (3,) + x.shape[axis + 1:])
        y = like(d, x)
        return [x, y, axis, OUT], [N(torch.linalg.cross(T(x), T(y), dim=axis), "float32")]
    if name == "Cdist":
        b, m, n, k = (int(v) for v in d.random.integers(1, 5, 4))
        a, c, p = d.array("float32", (b, m, k)), d.array("float32", (b, n, k)), d.pick([1.0, 2.0, 3.0])
        return [a, c, p, 2, OUT], [N(torch.cdist(T(a), T(c), p=p), "float32")]
    if name in ("Norm", "LinalgVectorNorm"):
        p = d.pick([1, 2, 3, 0.5])
        expected = N(torch.linalg.vector_norm(t, p, over, keep), "float32")
        return [x, p, list(dims), keep] + ([] if name == "Norm" else ["float32"]) + [OUT], [expected]
    if "Renorm" in name:
        if x.ndim < 2:
            return None
        axis, p = int(d.random.integers(x.ndim)), d.pick([1, 2])
        return [x, p, axis, 2.0] + ([] if "Inplace" in name else [OUT]), [N(torch.renorm(t, p, axis, 2.0), "float32")]
    if name == "ReduceNansum":
        x = np.where(d.random.random(x.shape) < 0.3, np.float32(np.nan), x)
        return [x, dims, keep, "float32", OUT], [np.nansum(x.astype("float64"), over, keepdims=keep).astype("float32")]
    if name == "ReduceLogSum":
        x = np.abs(x) + np.float32(1)
        expected = np.log(x.astype("float64").sum(over, keepdims=keep)).astype("float32")
        return [x, dims, keep, False, OUT], [expected]
    if name in ("MaxV2", "MeanV2"):
        wise = d.pick([True, False])
        function = np.max if name == "MaxV2" else np.mean
        expected = x if wise and not dims else function(x.astype("float64"), over, keepdims=keep).astype("float32")
        return [x, dims, keep, wise, OUT], [expected]
    if "Aminmax" in name:
        if name == "AminmaxAll":
            return [x, OUT, OUT], [np.asarray(x.min()), np.asarray(x.max())]
        if name == "AminmaxDim":
            dims, over = dims[:1] or [0], tuple(dims[:1] or [0])
        expected = [np.asarray(x.min(over, keepdims=keep)), np.asarray(x.max(over, keepdims=keep))]
        return [x, dims[0] if name == "AminmaxDim" else dims, keep, OUT, OUT], expected
    if name in ("VarCorrection", "Var", "VarMean", "Std", "StdMeanCorrection"):
        n = int(np.prod([x.shape[a] for a in over]))
        if n < 2:
            return None
        correction = d.pick([0, 1])
        word = bool(correction) if name == "Var" else correction
        v, m = torch.var_mean(t, over, correction=correction, keepdim=keep)
        first = torch.sqrt(v) if name.startswith("Std") else v
        expected = [N(first, "float32")] + ([N(m, "float32")] if "Mean" in name else [])
        return [x, dims, word, keep] + [OUT] * len(expected), expected
    if name in ("MaxN", "MinN", "Sum", "SumV2"):
        xs = [x] + [like(d, x) for _ in range(int(d.random.integers(3)))]
        if name in ("MaxN", "MinN"):
            xs += [d.array("float32", tuple(d.pick([n, 1]) for n in x.shape))]
        function = {"MaxN": np.max, "MinN": np.min}.get(name, np.sum)
        return [xs, OUT], [function(np.stack(np.broadcast_arrays(*xs)), 0).astype("float32")]
    if name == "LogSumExp":
        return [x, dims, keep, OUT], [N(torch.logsumexp(t, over, keep), "float32")]
    if name in ("Max", "Min"):
        return [x, OUT], [np.asarray(getattr(x, name.lower())())]
    if name == "Prod":
        return [x, "float32", OUT], [np.asarray(N(t.prod(), "float32"))]
    axis = over[0]
    return [x, axis, keep, "float32", OUT], [N(t.prod(axis, keep), "float32")]


@case("Kthvalue", "MedianDim", "NanMedianDim", "Median", "NanMedian", "Argsort", "SortWithIndex", "Topk", "ArgMax",
      "ArgMin")
def orders(d, name):
    x = reals(d, 1, 2, 3, dtypes=("float32",))
    x = d.strided(d.random.permutation(x.size).astype("float32").reshape(x.shape))
    if "edian" in name and d.pick([True, False]):
        x = np.where(d.random.random(x.shape) < 0.2, np.float32(np.nan), x)
    axis, keep = int(d.random.integers(-x.ndim, x.ndim)), d.pick([True, False])
    t = torch.from_numpy(np.ascontiguousarray(x))
    if name in ("Median", "NanMedian"):
        return [x, OUT], [N(torch.median(t) if name == "Median" else torch.nanmedian(t))]
    if name == "Argsort":
        down = d.pick([True, False])
        return [x, axis, down, OUT], [N(torch.argsort(t, axis, down))]
    if name == "SortWithIndex":
        index, down = d.array("int32", x.shape, 0, 9), d.pick([True, False])
        values, order = torch.sort(t, axis, down)
        return [x, index, axis, down, True, OUT, OUT], [N(values), np.take_along_axis(index, N(order), axis)]
    if name == "Topk":
        k, largest = int(d.random.integers(1, x.shape[axis] + 1)), d.pick([True, False])
        values, order = torch.topk(t, k, axis, largest)
        return [x, k, axis, largest, True, OUT, OUT], [N(values), N(order)]
    if name in ("ArgMax", "ArgMin"):
        function = torch.argmax if name == "ArgMax" else torch.argmin
        return [x, axis, keep, OUT], [N(function(t, axis, keep))]
    if name == "Kthvalue":
        k = int(d.random.integers(1, x.shape[axis] + 1))
        values, order = torch.kthvalue(t, k, axis, keep)
        return [x, k, axis, keep, OUT, OUT], [N(values), N(order)]
    values, order = (torch.median if name == "MedianDim" else torch.nanmedian)(t, axis, keep)
    several = np.isnan(x).sum(axis) > 1  # which of them is not said
    if several.any():
        return None
    return [x, axis, keep, OUT, OUT], [N(values), N(order)]


@case("TriangularSolve", "Inverse", "Slogdet", "Logdet", "LinalgCholesky", "LinalgQr", "Qr")
def decompositions(d, name):
    n, m = (int(v) for v in d.random.integers(1, 6, 2))
    lead, dtype = d.pick([(), (2,), (2, 3)]), d.pick(["float32", "float64"])
    square = d.array(dtype, lead + (n, n), -1, 1)
    square = (square + np.eye(n) * 3 * d.pick([1, -1])).astype(dtype)
    if name == "TriangularSolve":
        upper, transpose, unit = (d.pick([True, False]) for _ in range(3))
        own = d.pick([(), lead])
        b = d.array(dtype, d.pick([lead, own]) + (n, m), -1, 1)
        a = square[(0,) * (len(lead) - len(own))]
        matrix = T(a).transpose(-1, -2) if transpose else T(a)
        x = torch.linalg.solve_triangular(matrix, T(b), upper=upper != transpose, unitriangular=unit)
        batch = x.shape[:-2]
        return [b, a, upper, transpose, unit, OUT, OUT], [N(x, dtype), np.broadcast_to(a, (*batch, n, n))]
    if name == "Inverse":
        return [square, OUT], [N(torch.linalg.inv(T(square)), dtype)]
    if name == "Slogdet":
        sign, log = torch.linalg.slogdet(T(square))
        return [square, OUT, OUT], [N(sign, dtype), N(log, dtype)]
    if name == "Logdet":
        return [square, OUT], [N(torch.logdet(T(square)), dtype)]
    if name == "LinalgCholesky":
        upper = d.pick([True, False])
        x = (N(T(square) @ T(square).transpose(-1, -2)) + np.eye(n)).astype(dtype)
        x = np.where(np.tril(np.ones((n, n))) == (not upper), x, np.where(np.eye(n) > 0, x, 7)).astype(dtype)
        return [x, upper, OUT], [N(torch.linalg.cholesky(T(x), upper=upper), dtype)]
    x = d.array(dtype, lead + (n, m), -1, 1)
    mode = d.pick(["reduced", "complete"] + (["r"] if name == "LinalgQr" else []))
    q, r = torch.linalg.qr(T(x), mode)
    if name == "Qr":
        return [x, mode == "reduced", OUT, OUT], [N(q, dtype), N(r, dtype)]
    if mode == "r":
        return [x, 2, None, OUT], [N(r, dtype)]
    return [x, ["reduced", "complete"].index(mode), OUT, OUT], [N(q, dtype), N(r, dtype)]


@case("Histc", "Bincount", "RepeatInterleave", "RepeatInterleaveWithDim", "RepeatInterleaveTensor", "Cummax", "Cummin",
      "ChunkCat")
def counts(d, name):
    if name == "Histc":
        x = reals(d, 1, 2, dtypes=("float32", "int32"))
        bins = int(d.random.integers(1, 8))
        low, high = d.pick([(0, 0), (-2, 2), (-1, 0), (1, 1)])
        x = d.pick([x, np.full(x.shape, 1, x.dtype)])
        expected = N(torch.histc(torch.from_numpy(np.asarray(x, "float64")), bins, low, high), x.dtype)
        return [x, bins, low, high, OUT], [expected]
    if name == "Bincount":
        x = d.array(d.pick(WHOLE), (int(d.random.integers(0, 9)),), 0, 6)
        least = int(d.random.integers(0, 10))
        weights = d.array("float32", x.shape) if d.pick([True, False]) else None
        expected = torch.bincount(T(x), None if weights is None else T(weights), least)
        return [x, weights, least, OUT], [N(expected, "int64" if weights is None else "float32")]
    if name == "RepeatInterleaveTensor":
        repeats = d.array(d.pick(["int32", "int64"]), (int(d.random.integers(1, 6)),), 0, 3)
        expected = N(torch.repeat_interleave(T(repeats)), "int64")
        return [repeats, len(expected), OUT], [expected]
    if name.startswith("RepeatInterleave"):
        x = reals(d, 1, 2, 3, dtypes=FLOATS + ("int32", "uint8"))
        axis = int(d.random.integers(-x.ndim, x.ndim)) if name.endswith("Dim") else None
        n = x.size if axis is None else x.shape[axis]
        repeats = d.array(d.pick(["int32", "int64"]), d.pick([(n,), (1,), ()]), 0, 3)
        expected = np.repeat(x, np.broadcast_to(repeats, (n,)), axis)
        size = expected.shape[0 if axis is None else axis]
        return [x, repeats] + ([] if axis is None else [axis]) + [size, OUT], [expected]
    if name == "ChunkCat":
        lead, dtype = d.shape((0, 1, 2), 3), d.pick(FLOATS)
        if 0 in lead:
            return None
        xs = [d.array(dtype, lead + tuple(int(v) for v in d.random.integers(1, 6, d.pick([1, 2, 3]))))
              for _ in range(d.pick([1, 2, 3]))]
        chunks = d.pick([1, 2, 3])
        expected = torch._chunk_cat([torch.from_numpy(np.ascontiguousarray(x)) for x in xs], len(lead), chunks)
        return [xs, len(lead), chunks, OUT], [N(expected)]
    x = reals(d, 1, 2, 3, dtypes=FLOATS + ("int32", "int8"), low=-2, high=2)
    if x.dtype.kind == "f":
        x = np.where(d.random.random(x.shape) < 0.15, np.nan, np.round(x)).astype(x.dtype)
    axis = int(d.random.integers(-x.ndim, x.ndim))
    t = torch.from_numpy(np.ascontiguousarray(x))
    values, places = (torch.cummax if name == "Cummax" else torch.cummin)(t, axis)
    return [x, axis, OUT, OUT], [N(values), N(places, d.pick(["int64", "int32"]))]


@case("SearchSorted", "SearchSorteds", "Bucketize")
def searches(d, name):
    line = np.sort(d.random.integers(0, 9, int(d.random.integers(1, 6)))).astype("float32")
    x, right = d.array("float32", d.shape((1, 2)), 0, 9), d.pick([True, False])
    dtype = d.pick(["int32", "int64"])
    if 0 in x.shape:
        return None
    if name == "Bucketize":
        expected = N(torch.bucketize(T(x), T(line), right=right), dtype)
        return [x, line, dtype == "int32", right, OUT], [expected]
    if name == "SearchSorteds":
        expected = N(torch.searchsorted(T(line), torch.tensor(4.0).double(), right=right), dtype)
        return [line, 4, dtype == "int32", right, None, OUT], [np.asarray(expected)]
    return [line, x, dtype == "int32", right, None, OUT], [N(torch.searchsorted(T(line), T(x), right=right), dtype)]


@case("Range", "Linspace", "LogSpace", "OneHot", "Arange", "Eye")
def makers(d, name):
    if name in ("Range", "Arange"):
        start, step, n = d.pick([-2, 0, 3]), d.pick([1, 2, -1]), int(d.random.integers(1, 6))
        dtype = d.pick(["float32", "int32", "int64"])
        end = start + step * (n - 1 if name == "Range" else n)
        return [start, end, step, OUT], [(start + step * np.arange(n)).astype(dtype)]
    n = int(d.random.integers(1, 7))
    if name == "Linspace":
        return [-1.0, 2.0, n, OUT], [N(torch.linspace(-1, 2, n, dtype=torch.double), "float32")]
    if name == "LogSpace":
        return [-1.0, 2.0, n, 2.0, OUT], [N(torch.logspace(-1, 2, n, 2.0, dtype=torch.double), "float32")]
    if name == "Eye":
        m = int(d.random.integers(1, 7))
        return [n, m, OUT], [np.eye(n, m, dtype=d.pick(["float32", "int32"]))]
    x = d.array("int32", d.shape((1, 2)), 0, n - 1)
    on, off = np.array([2], "float32"), np.array([0.5], "float32")
    return [x, n, on, off, -1, OUT], [np.where(x[..., None] == np.arange(n), on[0], off[0]).astype("float32")]


# ---- Shapes and places ----

@case("StridedSlice", "SplitTensor", "ConfusionTranspose", "ChannelShuffle", "GatherV2", "Take", "RepeatInterleaveInt",
      "RepeatInterleaveIntWithDim", "Flip", "Roll", "Tril", "Triu", "InplaceTril", "InplaceTriu", "Repeat", "Flatten",
      "SplitWithSize", "ConstantPadNd", "Embedding", "GatherNd")
def shapes(d, name):
    x = reals(d, 2, 3, 4, dtypes=("float32", "int32", "float16"))
    t, axis = torch.from_numpy(np.ascontiguousarray(x)), int(d.random.integers(-x.ndim, x.ndim))
    n = x.shape[axis]
    if name == "StridedSlice":
        begin, end = [0] * x.ndim, list(x.shape)
        step = [int(v) for v in d.random.integers(1, 3, x.ndim)]
        where = tuple(slice(b, e, s) for b, e, s in zip(begin, end, step))
        return [x, begin, end, step, 0, 0, 0, 0, 0, OUT], [np.ascontiguousarray(x[where])]
    if name in ("SplitTensor", "SplitWithSize"):
        size = int(d.random.integers(1, n + 1))
        parts = [np.ascontiguousarray(p.numpy()) for p in torch.split(t, size, axis)]
        if name == "SplitWithSize":
            size = [p.shape[axis] for p in parts]
        return [x, size, axis, [OUT] * len(parts)], [parts]
    if name == "ConfusionTranspose":
        perm, first = [int(a) for a in d.random.permutation(x.ndim)], d.pick([True, False])
        expected = x.transpose(perm).reshape(-1) if first else x.reshape(x.shape).transpose(perm)
        return [x, perm, [x.size] if first else list(x.shape), first, OUT], [np.ascontiguousarray(expected)]
    if name == "ChannelShuffle":
        x = d.array("float32", (2, 6, 2, 3))
        groups = d.pick([1, 2, 3, 6])
        return [x, groups, OUT], [N(torch.channel_shuffle(torch.from_numpy(np.ascontiguousarray(x)), groups))]
    if name == "GatherV2":
        index = d.array("int64", d.shape((0, 1, 2)), 0, n - 1)
        return [x, axis, index, OUT], [np.take(x, index, axis)]
    if name == "Take":
        index = d.array("int64", d.shape((0, 1, 2)), -x.size, x.size - 1)
        return [x, index, OUT], [np.take(x, index)]
    if name == "RepeatInterleaveInt":
        return [x, 3, 3 * x.size, OUT], [np.repeat(x, 3)]
    if name == "RepeatInterleaveIntWithDim":
        return [x, 2, axis, 2 * n, OUT], [np.repeat(x, 2, axis)]
    if name == "Flip":
        dims = [int(a) for a in d.random.permutation(x.ndim)[:d.pick([0, 1, 2])]]  # none: as it is
        return [x, dims, OUT], [np.ascontiguousarray(np.flip(x, dims))]
    if name == "Roll":
        return [x, [2], [axis], OUT], [np.roll(x, 2, axis)]
    if "Tri" in name:
        k = int(d.random.integers(-2, 3))
        return [x, k] + ([] if "Inplace" in name else [OUT]), [N((torch.tril if "Tril" in name else torch.triu)(t, k))]
    if name == "Repeat":
        more = [2] + [int(v) for v in d.random.integers(1, 3, x.ndim)]
        return [x, more, OUT], [np.ascontiguousarray(np.tile(x, more))]
    if name == "Flatten":
        a = int(d.random.integers(0, x.ndim))
        return [x, a, OUT], [np.ascontiguousarray(x).reshape(int(np.prod(x.shape[:a])), -1)]
    if name == "ConstantPadNd":
        pad = [int(v) for v in d.random.integers(0, 3, 4)]
        return [x, pad, 2, OUT], [N(F.pad(t, pad, value=2))]
    if name == "Embedding":
        x = d.array("float32", (5, 3))
        index = d.array("int64", d.shape((1, 2)), 0, 4)
        return [x, index, OUT], [x[index]]
    index = np.stack([d.array("int32", (3,), 0, s - 1) for s in x.shape[:2]], -1)
    return [x, index, False, OUT], [np.ascontiguousarray(x[index[:, 0], index[:, 1]])]


@case("Scatter", "InplaceScatter", "ScatterAdd", "ScatterValue", "InplaceScatterValue", "ScatterReduce",
      "InplaceScatterReduce", "IndexAdd", "IndexAddV2", "IndexCopy", "InplaceIndexCopy", "IndexFill",
      "InplaceIndexFill", "IndexFillTensor", "InplaceIndexFillTensor", "InplacePut", "InplaceMaskedScatter",
      "InplaceScatterUpdate", "ScatterNdUpdate", "ScatterNd", "TfScatterAdd", "Index", "IndexPutImpl")
def scatters(d, name):
    x = reals(d, 2, 3, dtypes=("float32", "int32"))
    t, axis = torch.from_numpy(np.ascontiguousarray(x)), int(d.random.integers(x.ndim))
    n, inplace = x.shape[axis], "Inplace" in name
    tail = [] if inplace else [OUT]
    if name in ("Scatter", "InplaceScatter", "ScatterAdd", "ScatterValue", "InplaceScatterValue", "ScatterReduce",
                "InplaceScatterReduce"):
        shape = [int(d.random.integers(1, s + 1)) for s in x.shape]
        order = np.stack([d.random.permutation(n)[:shape[axis]] for _ in range(int(np.prod(shape)) // shape[axis])])
        rest = [s for a, s in enumerate(shape) if a != axis]
        index = np.ascontiguousarray(np.moveaxis(order.reshape(rest + [shape[axis]]), -1, axis)).astype("int64")
        src = d.array(x.dtype.name, [s + int(d.random.integers(0, 2)) for s in shape])  # larger than the index
        i, s = torch.from_numpy(index), torch.from_numpy(np.ascontiguousarray(src))
        if name == "ScatterAdd":
            return [x, axis, index, src, OUT], [N(t.scatter_add(axis, i, s))]
        if "Reduce" in name:
            kind, own = int(d.random.integers(6)), d.pick([True, False])
            if kind == 5 and x.dtype.kind != "f":
                return None
            if kind == 0:
                return [x, axis, index, src, kind, own] + tail, [N(t.scatter(axis, i, s))]
            word = ["", "sum", "prod", "amax", "amin", "mean"][kind]
            return [x, axis, index, src, kind, own] + tail, [N(t.scatter_reduce(axis, i, s, word, include_self=own))]
        kind = int(d.random.integers(3))
        words = {} if kind == 0 else {"reduce": ["", "add", "multiply"][kind]}
        if "Value" in name:
            return [x, axis, index, 2, kind] + tail, [N(t.scatter(axis, i, 2, **words))]
        return [x, axis, index, src, kind] + tail, [N(t.scatter(axis, i, s, **words))]
    count = int(d.random.integers(1, n + 1))
    index = d.random.permutation(n)[:count].astype(d.pick(["int32", "int64"]))
    i = torch.from_numpy(index.astype("int64"))
    source = d.array(x.dtype.name, x.shape[:axis] + (count,) + x.shape[axis + 1:])
    s = torch.from_numpy(np.ascontiguousarray(source))
    if "IndexAdd" in name:
        words = [2, 0] if "V2" in name else [2]
        return [x, axis, index, source, *words, OUT], [N(t.index_add(axis, i, s, alpha=2))]
    if "IndexCopy" in name:
        return [x, axis, index, source] + tail, [N(t.index_copy(axis, i, s))]
    if "IndexFill" in name:
        word = [int(v) for v in index] if "Tensor" in name else index
        return [x, axis, word, 3] + tail, [N(t.index_fill(axis, i, 3))]
    if name == "InplacePut":
        places, add = d.random.permutation(x.size)[:3].astype("int64"), d.pick([True, False])
        places = np.where(d.random.random(places.shape) < 0.3, places - x.size, places)
        values = d.array(x.dtype.name, places.shape)
        expected = t.clone().put_(torch.from_numpy(places), torch.from_numpy(np.ascontiguousarray(values)), add)
        return [x, places, values, add], [N(expected)]
    if name == "InplaceMaskedScatter":
        mask, values = d.array("bool", x.shape), like(d, x)
        return [x, mask, values], [N(t.masked_scatter(torch.from_numpy(np.ascontiguousarray(mask)),
                                                      torch.from_numpy(np.ascontiguousarray(values))))]
    if name in ("ScatterNdUpdate", "ScatterNd", "TfScatterAdd", "InplaceScatterUpdate"):
        rows = d.random.permutation(x.shape[0])[:2].astype("int32")
        values = d.array(x.dtype.name, (len(rows),) + x.shape[1:])
        expected = x.copy()
        if name == "TfScatterAdd":
            expected[rows] += values
            return [x, rows, values], [expected]
        if name.startswith("ScatterNd"):
            expected[rows] = values
            return [x, rows[:, None].copy(), values] + ([] if "Update" in name else [OUT]), [expected]
        x = d.array("float32", (2, 4, 5, 3))
        at, values = d.array("int32", (2,), 0, 3), d.array("float32", (2, 4, 2, 3))
        expected = x.copy()
        for b in range(2):
            expected[b, :, at[b]:at[b] + 2] = values[b]
        return [x, at, values, -2], [expected]
    places = [d.array("int64", (3,), 0, s - 1) for s in x.shape[:2]]
    which = d.pick([(0,), (1,), (0, 1)])
    empty = np.zeros((0,), "int64")
    lists = [places[a] if a in which else empty for a in range(max(which) + 1)]
    key = tuple(places[a] if a in which else slice(None) for a in range(max(which) + 1))
    if name == "Index":
        return [x, lists, OUT], [np.ascontiguousarray(x[key])]
    distinct = [np.arange(min(3, s)).astype("int64") for s in x.shape[:2]]
    length = min(len(v) for v in distinct)
    lists = [distinct[a][:length] if a in which else empty for a in range(max(which) + 1)]
    key = tuple(distinct[a][:length] if a in which else slice(None) for a in range(max(which) + 1))
    expected, add = x.copy(), d.pick([True, False])
    values = d.array(x.dtype.name, expected[key].shape)
    expected[key] = expected[key] + values if add else values
    return [x, lists, values, add, False], [expected]


# ---- Activations and their gradients ----

@case("HardshrinkBackward", "SoftshrinkBackward", "SoftsignBackward", "SeluBackward", "SwishBackward", "SqrtBackward",
      "ReluGradV4", "ThresholdBackward", "HardswishBackward", "HardswishBackwardV2", "HardsigmoidBackward",
      "GeluBackward", "SiluBackward", "TanhBackward", "SigmoidBackward", "LogSigmoidBackward", "MishBackward",
      "SoftplusBackward", "LeakyReluBackward", "EluBackward", "HardtanhBackward", "LogitGrad", "PreluBackward",
      "GeluBackwardV2", "GluBackward", "SoftmaxBackward", "LogSoftmaxBackward", "FastGeluBackward", "GeGluV3Backward",
      "GeGluBackward", "SwiGluGrad")
def activation_gradients(d, name):
    x = reals(d, 1, 2, 3, dtypes=("float32",))
    g = like(d, x)
    simple = {"HardshrinkBackward": (lambda t: F.hardshrink(t, 0.7), [0.7]),
              "SoftshrinkBackward": (lambda t: F.softshrink(t, 0.7), [0.7]),
              "ReluGradV4": (lambda t: F.threshold(t, 0.5, 0), [0.5]),
              "ThresholdBackward": (lambda t: F.threshold(t, 0.5, 0), [0.5]),
              "HardswishBackward": (F.hardswish, []), "HardswishBackwardV2": (F.hardswish, []),
              "HardsigmoidBackward": (F.hardsigmoid, []), "GeluBackward": (F.gelu, []), "SiluBackward": (F.silu, []),
              "MishBackward": (F.mish, []), "SoftplusBackward": (lambda t: F.softplus(t, 2.0, 1.5), [2.0, 1.5]),
              "LeakyReluBackward": (lambda t: F.leaky_relu(t, 0.2), [0.2, False]),
              "HardtanhBackward": (lambda t: F.hardtanh(t, -1, 2), [-1, 2]),
              "SwishBackward": (lambda t: t * torch.sigmoid(1.5 * t), [1.5]),
              "GeluBackwardV2": (lambda t: F.gelu(t, approximate="tanh"), ["tanh"]),
              "LogSigmoidBackward": (F.logsigmoid, [np.zeros(x.shape, "float32")])}
    if name in simple:
        function, words = simple[name]
        return [g, x, *words, OUT], gradient(function, g, x)
    if name == "SoftsignBackward":
        return [g, x, OUT], gradient(F.softsign, g, x)
    if name == "EluBackward":
        function = lambda t: F.elu(t, 1.5)  # noqa: E731
        result = d.pick([True, False])
        return [g, 1.5, 1, 1, result, N(function(T(x)), "float32") if result else x, OUT], gradient(function, g, x)
    if name in ("SeluBackward", "TanhBackward", "SigmoidBackward"):
        function = {"SeluBackward": F.selu, "TanhBackward": torch.tanh, "SigmoidBackward": torch.sigmoid}[name]
        return [g, N(function(T(x)), "float32"), OUT], gradient(function, g, x)
    if name == "SqrtBackward":
        x = np.abs(x) + np.float32(0.5)
        return [N(torch.sqrt(T(x)), "float32"), g, OUT], gradient(torch.sqrt, g, x)
    if name == "LogitGrad":
        x = like(d, x, 0.1, 0.9)
        eps = d.pick([0.2, -1.0])
        return [x, g, eps, OUT], gradient(lambda t: torch.logit(t, eps if eps > 0 else None), g, x)
    if name == "PreluBackward":
        x = reals(d, 2, 3, dtypes=("float32",))
        g, w = like(d, x), d.array("float32", (x.shape[1],))
        return [g, x, w, OUT, OUT], gradient(F.prelu, g, x, w)
    if name in ("SoftmaxBackward", "LogSoftmaxBackward"):
        axis = int(d.random.integers(-x.ndim, x.ndim))
        function = lambda t: (torch.softmax if name[0] == "S" else torch.log_softmax)(t, axis)  # noqa: E731
        return [g, N(function(T(x)), "float32"), axis, OUT], gradient(function, g, x)
    if name == "FastGeluBackward":
        return [g, x, OUT], gradient(lambda t: t / (1 + torch.exp(-1.702 * t)), g, x)
    axis = int(d.random.integers(-x.ndim, x.ndim))
    x = d.array("float32", x.shape[:axis % x.ndim] + (4,) + x.shape[axis % x.ndim + 1:])
    half = list(x.shape)
    half[axis] = 2
    g = d.array("float32", half)
    if name == "GluBackward":
        return [g, x, axis, OUT], gradient(lambda t: F.glu(t, axis), g, x)
    if name == "SwiGluGrad":
        return [g, x, axis, OUT], gradient(lambda t: F.silu(t.chunk(2, axis)[0]) * t.chunk(2, axis)[1], g, x)
    left, tanh = (d.pick([True, False]) if "V3" in name else False), d.pick([0, 1])
    gelu = lambda t: F.gelu(t, approximate=["none", "tanh"][tanh])  # noqa: E731
    gate = lambda t: t.chunk(2, axis)[0 if left else 1]  # noqa: E731
    function = lambda t: gelu(gate(t)) * t.chunk(2, axis)[1 if left else 0]  # noqa: E731
    inner = N(gelu(gate(T(x))), "float32")
    return [g, x, inner, axis, tanh] + ([left] if "V3" in name else []) + [OUT], gradient(function, g, x)


@case("LeakyRelu", "InplaceLeakyRelu", "Elu", "EluV2", "InplaceElu", "Celu", "InplaceCelu", "Hardtanh",
      "InplaceHardtanh", "Softplus", "Threshold", "ThresholdV2", "InplaceThreshold", "Softshrink", "Hardshrink",
      "Swish", "GeluV2", "FastGelu", "Prelu", "Glu", "SwiGlu", "GeGluV3", "GeGlu", "Logit", "Shrink", "Modulate",
      "RReluWithNoise", "InplaceRReluWithNoise", "FusedBiasLeakyRelu", "GeluMul")
def activations(d, name):
    x = reals(d, 1, 2, 3, dtypes=("float32",))
    t, tail = T(x), ([] if "Inplace" in name else [OUT])
    plain = {"LeakyRelu": (lambda t: F.leaky_relu(t, 0.2), [0.2]), "Elu": (lambda t: F.elu(t, 1.5), [1.5, 1, 1]),
             "EluV2": (lambda t: F.elu(t, 1.5), [1.5, 1, 1]), "Celu": (lambda t: F.celu(t, 1.5), [1.5]),
             "Hardtanh": (lambda t: F.hardtanh(t, -1, 2), [-1, 2]),
             "Softplus": (lambda t: F.softplus(t, 2.0, 1.5), [2.0, 1.5]),
             "Threshold": (lambda t: F.threshold(t, 0.5, 2), [0.5, 2]),
             "ThresholdV2": (lambda t: F.threshold(t, 0.5, 2), [0.5, 2]),
             "Softshrink": (lambda t: F.softshrink(t, 0.7), [0.7]),
             "Hardshrink": (lambda t: F.hardshrink(t, 0.7), [0.7]),
             "Swish": (lambda t: t * torch.sigmoid(1.5 * t), [1.5]),
             "FastGelu": (lambda t: t / (1 + torch.exp(-1.702 * t)), []),
             "Shrink": (lambda t: torch.where(t > 0.7, t - 0.2, torch.where(t < -0.7, t + 0.2, 0 * t)), [0.7, 0.2])}
    key = name.replace("Inplace", "")
    if key in plain:
        function, words = plain[key]
        return [x, *words, *tail], [N(function(t), "float32")]
    if "RRelu" in name:
        return [x, None, 0.1, 0.3, False, 1, 0, *tail], [N(F.leaky_relu(t, 0.2), "float32")]
    if name == "GeluV2":
        kind = d.pick([0, 1])
        return [x, kind, OUT], [N(F.gelu(t, approximate=["none", "tanh"][kind]), "float32")]
    if name == "Prelu":
        x = reals(d, 2, 3, dtypes=("float32",))
        w = d.array("float32", (d.pick([1, x.shape[1]]),))
        return [x, w, OUT], [N(F.prelu(T(x), T(w)), "float32")]
    if name == "Logit":
        x = like(d, x, 0.1, 0.9)
        return [x, 0.2, OUT], [N(torch.logit(T(x), 0.2), "float32")]
    if name == "FusedBiasLeakyRelu":
        b = like(d, x)
        return [x, b, 0.2, 1.5, OUT], [N(1.5 * F.leaky_relu(t + T(b), 0.2), "float32")]
    if name == "Modulate":
        b, s, h = (int(v) for v in d.random.integers(1, 5, 3))
        x = d.array("float32", (b, s, h))
        shape = d.pick([(b, h), (b, 1, h)])
        scale, shift = (d.array("float32", shape) if d.pick([1, 1, 0]) else None for _ in range(2))
        wide = lambda a: T(a).reshape(b, 1, h)  # noqa: E731
        result = T(x) * (1 + wide(scale)) if scale is not None else T(x)
        return [x, scale, shift, OUT], [N(result + wide(shift) if shift is not None else result, "float32")]
    axis = int(d.random.integers(-x.ndim, x.ndim)) if name != "GeluMul" else -1
    x = d.array("float32", x.shape[:axis % x.ndim] + (4,) + x.shape[axis % x.ndim + 1:])
    a, b = T(x).chunk(2, axis)
    if name == "GeluMul":
        return [x, "none", OUT], [N(F.gelu(a) * b, "float32")]
    if name == "Glu":
        return [x, axis, OUT], [N(F.glu(T(x), axis), "float32")]
    if name == "SwiGlu":
        return [x, axis, OUT], [N(F.silu(a) * b, "float32")]
    left, kind = (d.pick([True, False]) if "V3" in name else False), d.pick([0, 1])
    gelu = F.gelu(a if left else b, approximate=["none", "tanh"][kind])
    expected = [N(gelu * (b if left else a), "float32"), N(gelu, "float32")]
    return [x, axis, kind] + ([left] if "V3" in name else []) + [OUT, OUT], expected


# ---- Losses ----

REDUCTIONS = ["none", "mean", "sum", "batchmean"]


@case("KlDiv", "KlDivBackward", "KlDivTargetBackward", "L1Loss", "L1LossBackward", "MseLoss", "MseLossOut",
      "MseLossBackward", "SmoothL1Loss", "SmoothL1LossBackward", "BinaryCrossEntropy", "BinaryCrossEntropyBackward",
      "BinaryCrossEntropyWithLogits", "BinaryCrossEntropyWithLogitsBackward",
      "BinaryCrossEntropyWithLogitsTargetBackward", "SoftMarginLoss", "SoftMarginLossBackward")
def losses(d, name):
    x = reals(d, 1, 2, 3, dtypes=("float32",))
    kind = int(d.random.integers(4 if "KlDiv" in name else 3))
    word, target, words = REDUCTIONS[kind], like(d, x), []
    if "KlDiv" in name:
        logs = d.pick([True, False])
        target = like(d, x, 0.1, 1)
        words, function = [logs], lambda a, b: F.kl_div(a, b, reduction=word, log_target=logs)
    elif "L1Loss" in name and "Smooth" not in name:
        function = lambda a, b: F.l1_loss(a, b, reduction=word)  # noqa: E731
    elif "Mse" in name:
        function = lambda a, b: F.mse_loss(a, b, reduction=word)  # noqa: E731
    elif "Smooth" in name:
        words, function = [0.5], lambda a, b: F.smooth_l1_loss(a, b, reduction=word, beta=0.5)
    elif "SoftMargin" in name:
        target = np.sign(target) + (target == 0)
        function = lambda a, b: F.soft_margin_loss(a, b, reduction=word)  # noqa: E731
    else:
        weight = like(d, x, 0.1, 2) if d.pick([True, False]) else None
        w = None if weight is None else T(weight)
        target = like(d, x, 0.1, 0.9)
        if "Logits" in name:
            positive = like(d, x, 0.5, 2) if d.pick([True, False]) else None
            p = None if positive is None else T(positive)
            function = lambda a, b: F.binary_cross_entropy_with_logits(  # noqa: E731
                a, b, w, reduction=word, pos_weight=p)
            middle = [weight, positive]
        else:
            x = like(d, x, 0.1, 0.9)
            function = lambda a, b: F.binary_cross_entropy(a, b, w, reduction=word)  # noqa: E731
            middle = [weight]
        words = None
    result = function(T(x), T(target))
    order = (lambda k: middle + [k]) if words is None else (lambda k: [k] + words)
    if "Backward" not in name:
        return [x, target, *order(kind), OUT], [N(result, "float32")]
    g = d.array("float32", tuple(result.shape))
    if "Target" in name:
        return [g, x, target, *order(kind), OUT], gradient(lambda b: function(T(x), b), g, target)
    return [g, x, target, *order(kind), OUT], gradient(lambda a: function(a, T(target)), g, x)


@case("NLLLoss", "NLLLossBackward", "NLLLoss2d", "NLLLoss2dBackward")
def nll(d, name):
    n, c, h, w = (int(v) for v in d.random.integers(1, 5, 4))
    flat = "2d" not in name
    x = d.array("float32", (n, c) if flat else (n, c, h, w))
    target = d.array("int64", (n,) if flat else (n, h, w), 0, c - 1)
    weight, kind = d.array("float32", (c,), 0.5, 2), int(d.random.integers(3))
    function = lambda a: F.nll_loss(a, torch.from_numpy(np.ascontiguousarray(target)), T(weight),  # noqa: E731
                                    reduction=REDUCTIONS[kind])
    result, total = function(T(x)), np.asarray(weight[target].sum(dtype="float64"), "float32")
    if "Backward" not in name:
        values = [x, target, weight, kind, -100, OUT, OUT]
        expected = [N(result, "float32"), total if kind != 0 else np.zeros((), "float32")]
        return None if kind == 0 else (values, expected)
    g = d.array("float32", tuple(result.shape))
    return [g, x, target, weight, kind, -100, total, OUT], gradient(function, g, x)


@case("FakeQuantPerTensorAffineCachemask", "FakeQuantPerChannelAffineCachemask")
def fake_quant(d, name):
    x = reals(d, 2, 3, dtypes=("float32",))
    if "Tensor" in name:
        scale, zero = np.array([0.1], "float32"), np.array([2], "int32")
        at = x / scale + 2
        words, step, shift = [1.0, -10, 12], scale, 2
    else:
        axis = int(d.random.integers(x.ndim))
        scale, zero = d.array("float32", (x.shape[axis],), 0.1, 0.3), d.array("int32", (x.shape[axis],), -2, 2)
        shape = [-1 if a == axis else 1 for a in range(x.ndim)]
        step, shift = scale.reshape(shape), zero.reshape(shape)
        at, words = x / step + shift, [axis, -10, 12]
    if (np.abs(at - np.floor(at) - 0.5) < 1e-3).any():
        return None
    at = np.round(at)
    expected = ((np.clip(at, -10, 12) - shift) * step).astype("float32")
    return [x, scale, zero, *words, OUT, OUT], [expected, (at >= -10) & (at <= 12)]


# ---- Norms ----

@case("LayerNormBackward", "FastLayerNorm", "LayerNormWithImplMode", "AdaLayerNorm", "AdaLayerNormV2", "GroupNorm",
      "GroupNormBackward", "GroupNormSilu", "GroupNormSiluV2", "InstanceNorm", "RmsNorm", "AddRmsNorm",
      "InplaceAddRmsNorm", "BatchNorm", "BatchNormBackward", "FastBatchNormBackward", "BatchNormElemt",
      "BatchNormStats", "BatchNormReduce", "BatchNormReduceBackward", "BatchNormElemtBackward", "RmsNormGrad",
      "GemmaRmsNorm", "AddLayerNorm", "DeepNorm")
def norms(d, name):
    eps = 1e-2
    b, c, h, w = (int(v) for v in d.random.integers(2, 5, 4))
    rows = d.array("float32", (b, h, c))
    gamma, beta = d.array("float32", (c,), 0.5, 2), d.array("float32", (c,))
    mean = lambda t: t.mean(-1, keepdim=True)  # noqa: E731
    rstd = lambda t: 1 / torch.sqrt(t.var(-1, correction=0, keepdim=True) + eps)  # noqa: E731
    rms = lambda t: 1 / torch.sqrt((t * t).mean(-1, keepdim=True) + eps)  # noqa: E731
    layer = lambda t: F.layer_norm(t, (c,), T(gamma), T(beta), eps)  # noqa: E731
    f32 = lambda *ts: [N(t, "float32") for t in ts]  # noqa: E731
    t = T(rows)
    if name == "LayerNormBackward":
        g = like(d, rows)
        grads = gradient(lambda a, s, m: F.layer_norm(a, (c,), s, m, eps), g, rows, gamma, beta)
        return [g, rows, [c], *f32(mean(t), rstd(t)), gamma, beta, [True] * 3, OUT, OUT, OUT], grads
    if name in ("FastLayerNorm", "LayerNormWithImplMode"):
        return [rows, [c], gamma, beta, eps, OUT, OUT, OUT] + ([0] if "Impl" in name else []), \
            f32(layer(t), mean(t), rstd(t))
    if "AdaLayer" in name:
        scale, shift = (d.array("float32", d.pick([(b, c), (b, 1, c)])) for _ in range(2))
        result = layer(t) * (1 + T(scale).reshape(b, 1, c)) + T(shift).reshape(b, 1, c)
        if name == "AdaLayerNorm":
            return [rows, scale, shift, gamma, beta, eps, OUT], f32(result)
        return [rows, scale, shift, gamma, beta, eps, OUT, OUT, OUT], f32(result, mean(t), rstd(t))
    if name == "RmsNorm":
        return [rows, gamma, eps, OUT, OUT], f32(t * rms(t) * T(gamma), rms(t))
    if name == "GemmaRmsNorm":
        return [rows, gamma, eps, OUT, OUT], f32(t * rms(t) * (1 + T(gamma)), rms(t))
    if name == "RmsNormGrad":
        g = like(d, rows)
        grads = gradient(lambda a, s: a * rms(a) * s, g, rows, gamma)
        return [g, rows, N(rms(t), "float32"), gamma, OUT, OUT], grads
    if "AddRmsNorm" in name or name in ("AddLayerNorm", "DeepNorm"):
        other = like(d, rows)
        s = t + T(other)
        if name == "InplaceAddRmsNorm":
            return [rows, other, gamma, eps, OUT], f32(s * rms(s) * T(gamma), s, rms(s))
        if name == "AddRmsNorm":
            return [rows, other, gamma, eps, OUT, OUT, OUT], f32(s * rms(s) * T(gamma), rms(s), s)
        if name == "AddLayerNorm":
            return [rows, other, gamma, beta, None, eps, True, OUT, OUT, OUT, OUT], f32(layer(s), mean(s), rstd(s), s)
        s = 0.5 * t + T(other)
        return [rows, other, beta, gamma, 0.5, eps, OUT, OUT, OUT], f32(mean(s), rstd(s), layer(s))
    x = d.array("float32", (b, 4, h, w))
    gamma, beta, groups = d.array("float32", (4,), 0.5, 2), d.array("float32", (4,)), d.pick([1, 2, 4])
    t = T(x)
    if "Group" in name:
        parts = t.reshape(b, groups, -1)
        stats = [m.reshape(b, groups) for m in (mean(parts), rstd(parts))]
        function = lambda a, s, m: F.group_norm(a, groups, s, m, eps)  # noqa: E731
        if name == "GroupNormBackward":
            g = like(d, x)
            return [g, x, *f32(*stats), gamma, b, 4, h * w, groups, [True] * 3, OUT, OUT, OUT], \
                gradient(function, g, x, gamma, beta)
        y = function(t, T(gamma), T(beta))
        if name == "GroupNorm":
            return [x, gamma, beta, b, 4, h * w, groups, eps, OUT, OUT, OUT], f32(y, *stats)
        silu = name == "GroupNormSilu" or d.pick([True, False])
        words = [groups, eps] + ([silu] if "V2" in name else [])
        return [x, gamma, beta, *words, OUT, OUT, OUT], f32(F.silu(y) if silu else y, *stats)
    over = (0, 2, 3)
    wide = lambda v: v.reshape(1, 4, 1, 1)  # noqa: E731
    m, r = t.mean(over), 1 / torch.sqrt(t.var(over, correction=0) + eps)
    if name == "InstanceNorm":
        last = d.pick([True, False])
        mi, vi = t.mean((2, 3), keepdim=True), t.var((2, 3), correction=0, keepdim=True)
        y = F.instance_norm(t, weight=T(gamma), bias=T(beta), eps=eps)
        order = (lambda a: np.ascontiguousarray(a.transpose(0, 2, 3, 1))) if last else (lambda a: a)
        return [order(x), gamma, beta, "NHWC" if last else "NCHW", eps, OUT, OUT, OUT], \
            [order(a) for a in f32(y, mi, vi)]
    if name == "BatchNorm":
        training, running = d.pick([True, False]), [d.array("float32", (4,)), d.array("float32", (4,), 0.5, 2)]
        left = [T(a).clone() for a in running]
        y = F.batch_norm(t, left[0], left[1], T(gamma), T(beta), training, 0.25, eps)
        values = [x, gamma, beta, *running, training, 0.25, eps, OUT, OUT if training else None,
                  OUT if training else None]
        return values, f32(left[0], left[1], y, *((m, r) if training else ()))
    if "BatchNormBackward" in name:
        training, g = d.pick([True, False]), like(d, x)
        running = [d.array("float32", (4,)), d.array("float32", (4,), 0.5, 2)]
        function = lambda a, s, v: F.batch_norm(a, T(running[0]), T(running[1]), s, v, training, 0, eps)  # noqa: E731
        words = [training, eps, [True] * 3] + ([0] if "Fast" in name else [])
        return [g, x, gamma, *running, *f32(m, r), *words, OUT, OUT, OUT], gradient(function, g, x, gamma, beta)
    if name == "BatchNormElemt":
        return [x, gamma, beta, *f32(m, r), eps, OUT], \
            f32((t - wide(m)) * wide(r) * wide(T(gamma)) + wide(T(beta)))
    if name == "BatchNormStats":
        return [x, eps, OUT, OUT], f32(m, r)
    if name == "BatchNormReduce":
        return [x, OUT, OUT], f32(t.sum(over), (t * t).sum(over))
    g = like(d, x)
    total, away = T(g).sum(over), (T(g) * (t - wide(m))).sum(over)
    if name == "BatchNormReduceBackward":
        return [g, x, *f32(m, r), gamma, True, True, True, OUT, OUT, OUT, OUT], f32(total, away, away * r, total)
    n = b * h * w
    grad = (T(g) - wide(total / n) - (t - wide(m)) * wide(r * r * away / n)) * wide(r * T(gamma))
    return [g, x, *f32(m, r), gamma, *f32(total, away), np.array([n], "int32"), OUT], f32(grad)


# ---- Images ----

@case("Convolution", "ConvolutionBackward")
def convolutions(d, name):
    rank, groups, transposed = d.pick([1, 2, 3]), d.pick([1, 2]), d.pick([True, False])
    n, a, b = int(d.random.integers(1, 3)), groups * d.pick([1, 2]), groups * d.pick([1, 2])
    pick = lambda most: [int(v) for v in d.random.integers(1, most + 1, rank)]  # noqa: E731
    stride, dilation, kernel = pick(2), pick(2), pick(3)
    padding = [int(d.random.integers(0, dd * (k - 1) // 2 + 1)) for dd, k in zip(dilation, kernel)]
    more = [int(d.random.integers(0, s)) if transposed else 0 for s in stride]
    x = d.array("float32", [n, a] + [dd * k + int(d.random.integers(0, 3)) for dd, k in zip(dilation, kernel)])
    w = d.array("float32", ([a, b // groups] if transposed else [b, a // groups]) + kernel)
    bias = d.array("float32", (b,))
    plain = getattr(F, f"conv{rank}d")
    back = getattr(F, f"conv_transpose{rank}d")
    function = (lambda p, q, r: back(p, q, r, stride, padding, more, groups, dilation)) if transposed else \
        (lambda p, q, r: plain(p, q, r, stride, padding, dilation, groups))
    words = [stride, padding, dilation, transposed, more, groups]
    y = function(T(x), T(w), T(bias))
    if name == "Convolution":
        if d.pick([True, False]):
            return [x, w, bias, *words, OUT, 1], [N(y, "float32")]
        return [x, w, None, *words, OUT, 1], [N(function(T(x), T(w), None), "float32")]
    g = d.array("float32", tuple(y.shape))
    return [g, x, w, [b], *words, [True] * 3, 1, OUT, OUT, OUT], gradient(function, g, x, w, bias)


@case("ConvDepthwise2d", "ConvTbc", "ConvTbcBackward")
def other_convolutions(d, name):
    if name == "ConvDepthwise2d":
        x, w = d.array("float32", (2, 3, 5, 6)), d.array("float32", (3, 1, 3, 2))
        bias = d.array("float32", (3,))
        return [x, w, [3, 2], bias, [1, 2], [1, 0], [1, 1], OUT, 1], \
            [N(F.conv2d(T(x), T(w), T(bias), (1, 2), (1, 0), 1, 3), "float32")]
    t, b, c, o, k, pad = 5, 2, 3, 4, d.pick([1, 3]), d.pick([0, 1])
    x, w, bias = d.array("float32", (t, b, c)), d.array("float32", (k, c, o)), d.array("float32", (o,))
    function = lambda p, q, r: torch.conv_tbc(p, q, r, pad)  # noqa: E731
    y = function(T(x), T(w), T(bias))
    if name == "ConvTbc":
        return [x, w, bias, pad, OUT, 1], [N(y, "float32")]
    g = d.array("float32", tuple(y.shape))
    return [g, x, w, bias, pad, 1, OUT, OUT, OUT], gradient(function, g, x, w, bias)


@case("MaxPool")
def max_pool(d, _):
    front = [int(v) for v in d.random.integers(1, 3, d.pick((1, 2)))]
    x = d.array(d.pick(("float32", "float16")), front + [int(v) for v in d.random.integers(4, 8, 2)])
    kernel = [int(v) for v in d.random.integers(1, 4, d.pick((1, 2)))]
    strides = [int(v) for v in d.random.integers(1, 3, d.pick((0, 1, 2)))]
    most = min(kernel) // 2
    pads = [int(v) for v in d.random.integers(0, most + 1, d.pick((0, 1, 2, 4)))]
    ceil = bool(d.random.integers(2))
    top, left, bottom, right = (pads or [0]) * (4 // max(1, len(pads)))
    # The windows in the order of the rule, so that torch's is not needed for four paddings.
    padded = np.pad(x, [(0, 0)] * len(front) + [(top, bottom), (left, right)], constant_values=-np.inf)
    high, wide = kernel[0], kernel[-1]
    down, across = (strides or [1])[0], (strides or [1])[-1]
    sizes = []
    for size, before, window, step, full in ((x.shape[-2], top, high, down, padded.shape[-2]),
                                             (x.shape[-1], left, wide, across, padded.shape[-1])):
        windows = (full - window + (step - 1 if ceil else 0)) // step + 1
        if ceil and (windows - 1) * step >= size + before:
            windows -= 1
        sizes.append(windows)
    out = np.empty((*front, *sizes), x.dtype)
    for i in range(sizes[0]):
        for j in range(sizes[1]):
            out[..., i, j] = padded[..., i * down:i * down + high, j * across:j * across + wide].max((-2, -1))
    return [x, kernel, strides, 0, pads, [1] * d.pick((0, 1, 2)), int(ceil), OUT], [out]


@case("AvgPool2d", "AvgPool2dBackward", "MaxPool2dWithIndices", "MaxPool2dWithIndicesBackward", "MaxPool3dWithArgmax",
      "MaxPool3dWithArgmaxBackward", "AdaptiveAvgPool2d", "AdaptiveAvgPool2dBackward", "AdaptiveAvgPool3d",
      "AdaptiveAvgPool3dBackward", "AdaptiveMaxPool2dBackward", "AdaptiveMaxPool3dBackward", "MaxUnpool2d",
      "MaxUnpool2dBackward", "MaxUnpool3d", "MaxUnpool3dBackward", "GlobalMaxPool", "GlobalAveragePool")
def pools(d, name):
    deep = "3" in name
    front = [int(v) for v in d.random.integers(1, 3, 2)]
    sizes = [int(v) for v in d.random.integers(3, 7, 3 if deep else 2)]
    x = d.array("float32", front + sizes)
    x = d.strided(d.random.permutation(x.size).astype("float32").reshape(x.shape))
    t = T(x)
    if "Global" in name:
        return [x, OUT], [N(t.amax((2, 3), True) if "Max" in name else t.mean((2, 3), True), "float32")]
    if "Adaptive" in name:
        out = [int(v) for v in d.random.integers(1, 4, len(sizes))]
        if "Max" in name:
            function = F.adaptive_max_pool3d if deep else F.adaptive_max_pool2d
            y, at = function(t, out, return_indices=True)
            g = d.array("float32", tuple(y.shape))
            return [g, x, N(at, "int32"), OUT], gradient(lambda a: function(a, out), g, x)
        function = (lambda a: F.adaptive_avg_pool3d(a, out)) if deep else (lambda a: F.adaptive_avg_pool2d(a, out))
        if "Backward" not in name:
            return [x, out, OUT], [N(function(t), "float32")]
        g = d.array("float32", tuple(function(t).shape))
        return [g, x, OUT], gradient(function, g, x)
    kernel = [int(v) for v in d.random.integers(1, 4, len(sizes))]
    stride = d.pick([[], [1] * len(sizes), [2] * len(sizes)])
    padding, ceil = [k // 2 if d.pick([0, 1]) else 0 for k in kernel], d.pick([True, False])
    step = stride or kernel
    if "Avg" in name:
        own, divisor = d.pick([True, False]), d.pick([0, 0, 3])
        function = lambda a: F.avg_pool2d(a, kernel, step, padding, ceil, own, divisor or None)  # noqa: E731
        words = [kernel, stride, padding, ceil, own, divisor, 1, OUT]
        if name == "AvgPool2d":
            return [x, *words], [N(function(t), "float32")]
        g = d.array("float32", tuple(function(t).shape))
        return [g, x, *words], gradient(function, g, x)
    if "Unpool" in name:
        y, at = (F.max_pool3d if deep else F.max_pool2d)(t, 2, return_indices=True)
        y, at = N(y, "float32"), N(at, "int64")
        function = lambda a: (F.max_unpool3d if deep else F.max_unpool2d)(  # noqa: E731
            a, torch.from_numpy(at), 2, output_size=sizes)
        words = [at, sizes] + ([[2] * 3, [0] * 3] if deep else [])
        if "Backward" not in name:
            return [y, *words, OUT], [N(function(T(y)), "float32")]
        g = d.array("float32", front + sizes)
        return [g, y, *words, OUT], gradient(function, g, y)
    dilation = [d.pick([1, 1, 2]) for _ in sizes]
    if any(dd * (k - 1) + 1 > s for dd, k, s in zip(dilation, kernel, sizes)):
        return None
    function = lambda a: (F.max_pool3d if deep else F.max_pool2d)(  # noqa: E731
        a, kernel, step, padding, dilation, ceil, return_indices=True)
    y, at = function(t)
    words = [kernel, stride, padding, dilation, ceil]
    if "Backward" not in name:
        return [x, *words, OUT, OUT], [N(y, "float32"), N(at, d.pick(["int32", "int64"]))]
    g = d.array("float32", tuple(y.shape))
    return [g, x, N(at, "int32"), *words, OUT], gradient(lambda a: function(a)[0], g, x)


@case("ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
      "ReplicationPad3d", "ReflectionPad1dBackward", "ReflectionPad2dBackward", "ReflectionPad3dBackward",
      "ReplicationPad1dBackward", "ReplicationPad2dBackward", "ReplicationPad3dBackward")
def pads(d, name):
    rank = int(name[name.index("Pad") + 3])
    x = d.array("float32", (1, 2) + tuple(int(v) for v in d.random.integers(3, 5, rank)))
    pad = [int(v) for v in d.random.integers(0, 3, 2 * rank)]
    function = lambda a: F.pad(a, pad, "reflect" if "Reflection" in name else "replicate")  # noqa: E731
    if "Backward" not in name:
        return [x, pad, OUT], [N(function(T(x)), "float32")]
    g = d.array("float32", tuple(function(T(x)).shape))
    return [g, x, pad, OUT], gradient(function, g, x)


@case("Im2col", "Im2colBackward", "UnfoldGrad")
def windows(d, name):
    dtype = d.pick(FLOATS)
    if name == "UnfoldGrad":
        shape = d.shape((1, 2, 3), 6)
        if 0 in shape:
            return None
        axis = int(d.random.integers(-len(shape), len(shape)))
        size, step = int(d.random.integers(1, shape[axis] + 1)), int(d.random.integers(1, 4))
        x = d.array(dtype, shape)
        g = d.array(dtype, tuple(T(x).unfold(axis, size, step).shape))
        return [g, list(shape), axis, size, step, OUT], gradient(lambda a: a.unfold(axis, size, step), g, x)
    pair = lambda low, high: [int(v) for v in d.random.integers(low, high + 1, 2)]  # noqa: E731
    kernel, dilation, padding, stride = pair(1, 3), pair(1, 2), pair(0, 2), pair(1, 3)
    image = [max(1, e * (k - 1) + 1 - 2 * p) + int(d.random.integers(0, 4))
             for e, k, p in zip(dilation, kernel, padding)]
    x = d.array(dtype, (2, 3, *image)[d.pick([0, 1]):])
    function = lambda a: F.unfold(a, kernel, dilation, padding, stride)  # noqa: E731
    if name == "Im2col":
        return [x, kernel, dilation, padding, stride, OUT], [N(function(T(x)), dtype)]
    g = d.array(dtype, tuple(function(T(x)).shape))
    return [g, image, kernel, dilation, padding, stride, OUT], gradient(function, g, x)


@case("UpsampleNearest1d", "UpsampleNearest1dV2", "UpsampleNearestExact1d", "UpsampleNearest1dBackward",
      "UpsampleNearestExact1dBackward", "UpsampleNearest2d", "UpsampleNearest2dV2", "UpsampleNearestExact2d",
      "UpsampleNearest2dBackward", "UpsampleNearestExact2dBackward", "UpsampleNearest3d", "UpsampleNearestExact3d",
      "UpsampleNearest3dBackward", "UpsampleNearestExact3dBackward", "UpsampleLinear1d", "UpsampleLinear1dBackward",
      "UpsampleBilinear2d", "UpsampleBilinear2dBackward", "UpsampleBilinear2dBackwardV2", "UpsampleTrilinear3d",
      "UpsampleTrilinear3dBackward")
def upsamples(d, name):
    rank = int(name[name.index("d") - 1]) if name[name.index("d") - 1].isdigit() else int(
        [c for c in name if c in "123"][0])
    x = d.array("float32", (1, 2) + tuple(int(v) for v in d.random.integers(1, 5, rank)))
    sizes = [int(v) for v in d.random.integers(1, 8, rank)]
    scaled = d.pick([True, False])
    if scaled:
        sizes = [2 * s for s in x.shape[2:]]
    scales = [2.0 if scaled else 0.0] * rank
    linear = "inear" in name
    corners = d.pick([True, False]) if linear else None
    mode = "nearest-exact" if "Exact" in name else "nearest"
    if linear:
        mode = ["linear", "bilinear", "trilinear"][rank - 1]
    function = lambda a: F.interpolate(a, sizes, mode=mode, align_corners=corners)  # noqa: E731
    words = ([corners] if linear else []) + scales
    if name in ("UpsampleNearest1d", "UpsampleNearest2d"):
        words = []
    if "Backward" not in name:
        return [x, sizes, *words, OUT], [N(function(T(x)), "float32")]
    g = d.array("float32", (1, 2, *sizes))
    return [g, sizes, list(x.shape), *words, OUT], gradient(function, g, x)


@case("UpsampleBicubic2d", "UpsampleBicubic2dBackward", "UpsampleBicubic2dAA", "UpsampleBicubic2dAAGrad",
      "UpsampleBilinear2dAA", "UpsampleBilinear2dAABackward")
def resamples(d, name):
    x = d.array("float32", (1, 2) + tuple(int(v) for v in d.random.integers(1, 9, 2)))
    scaled, corners = d.pick([True, False]), d.pick([True, False])
    scales = [d.pick([0.5, 1.5, 2.0, 0.3]) for _ in range(2)]
    sizes = [int(v) for v in d.random.integers(1, 9, 2)]
    if scaled:
        sizes = [int(n * s) for n, s in zip(x.shape[2:], scales)]
        if 0 in sizes:
            return None
    if "AA" in name and sizes[1] == 1:
        return None  # torch takes the first row for all: other than width and height one after the other
    kind = ("_upsample_bi" if "AA" in name else "upsample_bi") + ("cubic2d" if "cubic" in name else "linear2d")
    resized = getattr(torch.ops.aten, kind + ("_aa" if "AA" in name else "")).default
    function = lambda a: resized(a, sizes, corners, *(scales if scaled else [None, None]))  # noqa: E731
    words = [corners] + (scales if scaled else [0.0, 0.0])
    if not name.endswith(("Grad", "Backward")):
        return [x, sizes, *words, OUT], [N(function(T(x)), "float32")]
    g = d.array("float32", (1, 2, *sizes))
    return [g, sizes, list(x.shape), *words, OUT], gradient(function, g, x)


@case("AvgPool3d", "AvgPool3dBackward")
def volumes(d, name):
    dtype = d.pick(FLOATS)
    x = d.array(dtype, (2, 3, *[int(v) for v in d.random.integers(4, 7, 3)])[d.pick([0, 1]):])
    draw = lambda low, high: [int(v) for v in d.random.integers(low, high + 1, d.pick([1, 3]))]  # noqa: E731
    kernel, stride, pads = draw(2, 3), d.pick([[], draw(1, 3)]), draw(0, 1)
    ceil, padded, divisor = d.pick([True, False]), d.pick([True, False]), d.pick([0, 0, 5])
    full = lambda v: v * 3 if len(v) == 1 else v  # noqa: E731
    function = lambda a: F.avg_pool3d(a, full(kernel), full(stride) or None, full(pads), ceil, padded,  # noqa: E731
                                      divisor or None)
    words = [kernel, stride, pads, ceil, padded, divisor]
    if name == "AvgPool3d":
        return [x, *words, OUT], [N(function(T(x)), dtype)]
    g = d.array(dtype, tuple(function(T(x)).shape))
    return [g, x, *words, OUT], gradient(function, g, x)


@case("CdistBackward")
def cdist_backward(d, name):
    b, m, n, k = (int(v) for v in d.random.integers(1, 5, 4))
    x, y, p = d.array("float32", (b, m, k)), d.array("float32", (b, n, k)), d.pick([1.0, 1.5, 2.0, 3.0])
    if m == n and d.pick([True, False]):
        x = y.copy()
    far = N(torch.cdist(T(x), T(y), p=p), "float32")
    g = d.array("float32", far.shape)
    return [g, x, y, far, p, OUT], gradient(lambda a, c: torch.cdist(a, c, p=p), g, x, y)[:1]


@case("AffineGrid")
def affine_grid(d, name):
    n, h, w = (int(v) for v in d.random.integers(1, 5, 3))
    theta, corners = d.array("float32", (n, 2, 3)), d.pick([True, False]) and h > 1 and w > 1  # else torch warns
    return [theta, [n, 2, h, w], corners, OUT], [N(F.affine_grid(T(theta), [n, 2, h, w], corners), "float32")]


@case("GridSampler2D", "GridSampler2DBackward", "GridSampler3D")
def grids(d, name):
    deep = "3D" in name
    x = d.array("float32", (2, 2, 3, 4, 2)[:5 if deep else 4])
    grid = d.array("float32", (2, 2, 3, 2, 3) if deep else (2, 3, 2, 2), -1.2, 1.2)
    mode = 0 if "Backward" in name else d.pick([0, 1])
    pad, corners = d.pick([0, 1]), d.pick([True, False])
    function = lambda a, b: F.grid_sample(a, b, ["bilinear", "nearest", "bicubic"][mode],  # noqa: E731
                                          ["zeros", "border", "reflection"][pad], corners)
    if "Backward" not in name:
        return [x, grid, mode, pad, corners, OUT], [N(function(T(x), T(grid)), "float32")]
    y = function(T(x), T(grid))
    g = d.array("float32", tuple(y.shape))
    return [g, x, grid, mode, pad, corners, [True, True], OUT, OUT], gradient(function, g, x, grid)


# ---- Lists of tensors ----

FOREACH_ONE = {
    "Abs": torch.abs, "Acos": torch.acos, "Asin": torch.asin, "Atan": torch.atan, "Cos": torch.cos, "Cosh": torch.cosh,
    "Erf": torch.erf, "Erfc": torch.erfc, "Exp": torch.exp, "Expm1": torch.expm1, "Log": torch.log,
    "Log10": torch.log10,
    "Log1p": torch.log1p, "Log2": torch.log2, "Neg": torch.neg, "Reciprocal": torch.reciprocal,
    "Sigmoid": torch.sigmoid, "Sign": torch.sign, "Sin": torch.sin, "Sinh": torch.sinh, "Sqrt": torch.sqrt,
    "Tan": torch.tan, "Tanh": torch.tanh, "Copy": torch.clone}
FOREACH_TWO = {"Add": torch.add, "Sub": torch.sub, "Mul": torch.mul, "Div": torch.div, "Maximum": torch.maximum,
               "Minimum": torch.minimum, "Pow": torch.pow}


def lists(d, count=1):
    """Lists of as many tensors, of the same shapes."""
    shapes = [d.shape((1, 2, 3), 4) for _ in range(int(d.random.integers(1, 4)))]
    return [[d.array("float32", shape, 0.2, 0.9) for shape in shapes] for _ in range(count)]


def each(function, *arrays):
    return [N(function(*[T(a) for a in group]), "float32") for group in zip(*arrays)]


@case(*["Foreach" + name for name in FOREACH_ONE], "ForeachZeroInplace", "ForeachNorm")
def foreach_one(d, name):
    xs, = lists(d)
    if name == "ForeachZeroInplace":
        return [xs], [[np.zeros_like(x) for x in xs]]
    outs = [OUT] * len(xs)
    if name == "ForeachNorm":
        norms = [np.linalg.norm(x.astype("float64").ravel()) for x in xs]
        return [xs, 2.0, outs], [[np.asarray(norm).astype("float32") for norm in norms]]
    return [xs, outs], [each(FOREACH_ONE[name[7:]], xs)]


@case(*[f"Foreach{name}{form}" for name in FOREACH_TWO for form in ("List", "Scalar", "ScalarV2", "ScalarList")
        if (name, form) != ("Pow", "List")], "ForeachPowList", "ForeachAddListV2", "ForeachSubListV2",
      "ForeachAddcmulScalar", "ForeachAddcdivScalar", "ForeachAddcmulScalarV2", "ForeachAddcdivScalarV2",
      "ForeachAddcmulScalarList", "ForeachAddcdivScalarList", "ForeachLerpScalar", "ForeachPowScalarAndTensor")
def foreach_two(d, name):
    xs, ys, zs = lists(d, 3)
    outs = [OUT] * len(xs)
    kind = name[7:]
    if kind.startswith("Addc"):
        function = torch.addcmul if "mul" in kind else torch.addcdiv
        if kind.endswith("List"):
            scalars = np.asarray([0.5 + i for i in range(len(xs))], "float32")
            expected = [N(function(T(x), T(y), T(z), value=float(s)), "float32")
                        for x, y, z, s in zip(xs, ys, zs, scalars)]
            return [xs, ys, zs, scalars, outs], [expected]
        word = 0.5 if "V2" in kind else np.asarray([0.5], "float32")
        return [xs, ys, zs, word, outs], [each(lambda x, y, z: function(x, y, z, value=0.5), xs, ys, zs)]
    if kind == "LerpScalar":
        return [xs, ys, 0.25, outs], [each(lambda x, y: torch.lerp(x, y, 0.25), xs, ys)]
    if kind == "PowScalarAndTensor":
        return [2.0, xs, outs], [each(lambda x: torch.pow(2.0, x), xs)]
    base = next(n for n in FOREACH_TWO if kind.startswith(n))
    function = FOREACH_TWO[base]
    if "ScalarList" in kind:
        scalars = [0.5 + i for i in range(len(xs))]
        expected = [N(function(T(x), torch.tensor(s).double()), "float32") for x, s in zip(xs, scalars)]
        return [xs, scalars, outs], [expected]
    if "Scalar" in kind:
        word = 0.5 if "V2" in kind else np.asarray([0.5], "float32")
        return [xs, word, outs], [each(lambda x: function(x, torch.tensor(0.5).double()), xs)]
    if base in ("Add", "Sub"):
        word = 0.5 if "V2" in kind else np.asarray([0.5], "float32")
        return [xs, ys, word, outs], [each(lambda x, y: function(x, y, alpha=0.5), xs, ys)]
    return [xs, ys, outs], [each(function, xs, ys)]


# ---- Numbers of fewer bits ----

@case("QuantMatmulV3", "QuantMatmulV4", "QuantMatmulV5", "WeightQuantBatchMatmulV2", "WeightQuantBatchMatmulV3",
      "AscendQuant", "AscendQuantV3", "AscendAntiQuant", "DynamicQuant", "DynamicQuantV3", "AddRmsNormQuant",
      "GroupedMatmulV2", "GroupedMatmulV3", "GroupedMatmulV4", "GroupedMatmulV5", "FFN", "FFNV2", "FFNV3")
def quantised(d, name):
    m, k, n = (int(v) for v in d.random.integers(1, 7, 3))
    if name.startswith("QuantMatmul"):
        a, b = d.array("int8", (m, k), -9, 9), d.array("int8", (k, n), -9, 9)
        flip = d.pick([True, False])
        w = np.ascontiguousarray(b.T) if flip else b
        scale = d.array("float32", (n,), 0.1, 1)
        row = d.array("float32", (m,), 0.1, 1) if name != "QuantMatmulV3" and d.pick([True, False]) else None
        bias = d.array("int32", (n,), -9, 9) if d.pick([True, False]) else None
        product = a.astype("float64") @ b.astype("float64") + (0 if bias is None else bias)
        y = product * scale * (1 if row is None else row[:, None].astype("float64"))
        expected = [y.astype("float16")]
        if name == "QuantMatmulV3":
            return [a, w, scale, None, bias, False, flip, OUT], expected
        if name == "QuantMatmulV4":
            return [a, w, scale, None, row, bias, False, flip, OUT], expected
        return [a, w, row, scale, None, None, None, None, bias, False, flip, 0, OUT], expected
    if name.startswith("WeightQuant"):
        x, w = d.array("float16", (m, k), -1, 1), d.array("int8", (k, n), -9, 9)
        scale, offset = d.array("float16", (n,), 0.1, 1), d.array("float16", (n,), -2, 2)
        y = x.astype("float64") @ ((w.astype("float64") + offset) * scale.astype("float64"))
        return [x, w, scale, offset, None, None, None, 0] + ([0] if "V3" in name else []) + [OUT], [y.astype("float16")]
    if name in ("AscendQuant", "AscendQuantV3"):
        x, scale, offset = d.array("float32", (m, k), -3, 3), d.array("float32", (k,), 1, 9), d.array("float32", (k,))
        at = x.astype("float64") * scale + offset
        if (np.abs(at - np.floor(at) - 0.5) < 1e-3).any():
            return None
        expected = [np.clip(np.round(at), -128, 127).astype("int8")]
        return [x, scale, offset, False, "round", 2] + ([-1] if "V3" in name else []) + [OUT], expected
    if name == "AscendAntiQuant":
        x, scale, offset = d.array("int8", (m, k), -9, 9), d.array("float32", (k,), 0.1, 1), d.array("float32", (k,))
        return [x, scale, offset, 1, False, OUT], [((x + offset.astype("float64")) * scale).astype("float16")]
    if name in ("DynamicQuant", "DynamicQuantV3"):
        x = d.array("float16", (m, k))
        scale = np.abs(x.astype("float32")).max(-1) / np.float32(127)
        at = x.astype("float64") / scale[:, None].astype("float64")
        if (scale == 0).any() or (np.abs(at - np.floor(at) - 0.5) < 1e-3).any():
            return None
        expected = [np.round(at).astype("int8"), scale]
        if name == "DynamicQuantV3":
            return [x, None, None, 2, True, "pertoken", OUT, OUT, None], expected
        return [x, None, OUT, OUT], expected
    if name == "AddRmsNormQuant":
        a, b, gamma = d.array("float16", (m, k)), d.array("float16", (m, k)), d.array("float16", (k,), 0.5, 2)
        scale = d.array("float32", (k,), 0.02, 0.1)
        s = (a + b).astype("float16").astype("float64")
        y = s / np.sqrt((s * s).mean(-1, keepdims=True) + 1e-2) * gamma / scale
        if (np.abs(y - np.floor(y) - 0.5) < 5e-2).any():
            return None
        expected = [np.clip(np.round(y), -128, 127).astype("int8"), (a + b).astype("float16")]
        return [a, b, gamma, scale, None, None, None, -1, 1e-2, True, OUT, None, OUT], expected
    if name.startswith("FFN"):
        x, h = d.array("float16", (m, k), -1, 1), int(d.random.integers(1, 5))
        w1, w2 = d.array("float16", (k, h), -1, 1), d.array("float16", (h, k), -1, 1)
        inner = F.relu(T(x) @ T(w1))
        y = [N(inner @ T(w2), "float16")]
        words = ["relu", 1] + ([] if name == "FFN" else [False])
        return [x, w1, w2, None] + [None] * 10 + words + [OUT], y
    groups = int(d.random.integers(1, 4))
    sizes = [int(v) for v in d.random.integers(1, 4, groups)]
    x = d.array("float16", (sum(sizes), k), -1, 1)
    w = d.array("float16", (groups, k, n), -1, 1)
    parts = np.split(x, np.cumsum(sizes)[:-1])
    y = np.concatenate([p.astype("float64") @ v.astype("float64") for p, v in zip(parts, w)]).astype("float16")
    ends = [int(v) for v in np.cumsum(sizes)]
    none = [None] * 5
    if name == "GroupedMatmulV2":
        return [[x], [w], *none, ends, 3, 0, [OUT]], [[y]]
    ends = np.asarray(ends, "int64")
    if name == "GroupedMatmulV3":
        return [[x], [w], *none, ends, 3, 0, [OUT]], [[y]]
    more = [None] if name == "GroupedMatmulV5" else []
    return [[x], [w], *none, None, ends, None, None, None, 3, 0, 0, 0, *more, [OUT], None, None], [[y]]


# ---- Attention, positions, experts ----

def attended(q, k, v, scale):
    """[B, N, S, D] each, in double; fewer heads of k and v serve several of q."""
    repeat = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    return torch.softmax(q @ k.transpose(-1, -2) * scale, -1) @ v


@case("FlashAttentionScore", "FlashAttentionScoreV2", "FlashAttentionScoreGrad", "PromptFlashAttention",
      "PromptFlashAttentionV2", "PromptFlashAttentionV3", "IncreFlashAttention", "IncreFlashAttentionV2",
      "IncreFlashAttentionV3", "IncreFlashAttentionV4", "FusedInferAttentionScore", "FusedInferAttentionScoreV2",
      "FusedInferAttentionScoreV3", "FusedInferAttentionScoreV4")
def attention(d, name):
    b, kv, group, s, t, size = (int(v) for v in d.random.integers(1, 4, 6))
    size *= 8
    heads, scale, wide = kv * group, 0.3, 2 ** 31 - 1
    train = name.startswith("Flash")
    s = 1 if name.startswith("Incre") else s
    dtype = "float32" if train else "float16"
    q = d.array(dtype, (b, heads, s, size), -1, 1)
    k, v = (d.array(dtype, (b, heads if train else kv, t, size), -1, 1) for _ in range(2))
    y = attended(T(q), T(k), T(v), scale)
    expected = [N(y, dtype)]
    if train:
        scores = T(q) @ T(k).transpose(-1, -2) * scale
        most = scores.amax(-1, keepdim=True)
        total = torch.exp(scores - most).sum(-1, keepdim=True)
        stats = [np.ascontiguousarray(np.broadcast_to(N(a, "float32"), (b, heads, s, 8))) for a in (most, total)]
        more, last = ([None, None], [0]) if "V2" in name else ([], [])
        words = [None, *more, scale, 1.0, wide, wide, heads, "BNSD", 0, 0, *last]
        if "Grad" in name:
            g = like(d, q, -1, 1)
            grads = gradient(lambda a, c, e: attended(a, c, e, scale), g, q, k, v)
            return [q, k, v, g, None, None, None, None, *stats, None, expected[0], *words, OUT, OUT, OUT, None], grads
        return [q, k, v, None, None, None, None, *words, OUT, OUT, None, OUT], stats + expected
    if name.startswith("Prompt"):
        none = [] if name == "PromptFlashAttention" else [None] * 6
        end = {"": [], "V2": [0], "V3": [0, 1]}[name[20:]]
        return [q, k, v, None, None, None, *none, heads, scale, wide, wide, "BNSD", kv, *end, OUT], expected
    if name.startswith("Incre"):
        none = [None] * {"": 3, "V2": 8, "V3": 11, "V4": 12}[name[19:]]
        end = [0, 1] if name[19:] in ("V3", "V4") else []
        return [q, [k], [v], *none, heads, scale, "BNSD", kv, *end, OUT], expected
    none = [None] * {"": 14, "V2": 21, "V3": 24, "V4": 26}[name[24:]]
    end = {"": [], "V2": [0, 0], "V3": [0, 0], "V4": [0, 0, 0]}[name[24:]]
    return [q, [k], [v], *none, heads, scale, wide, wide, "BNSD", kv, 0, 0, 0, 0, False, *end, OUT, None], expected


@case("RotaryPositionEmbedding", "RotaryPositionEmbeddingV2", "ApplyRotaryPosEmb", "ApplyRotaryPosEmbV2",
      "MoeGatingTopKSoftmax", "MoeGatingTopKSoftmaxV2", "MoeComputeExpertTokens", "MoeFinalizeRoutingV2",
      "MoeInitRouting")
def positions(d, name):
    if name.startswith("Moe"):
        n, experts, k, h = 4, 6, int(d.random.integers(1, 4)), 3
        x = d.strided(d.random.permutation(n * experts).reshape(n, experts).astype("float32") / np.float32(8))
        p = torch.softmax(T(x), -1)
        values, which = torch.topk(p, k)
        if name == "MoeGatingTopKSoftmax":
            rows = (np.arange(k)[None, :] * n + np.arange(n)[:, None]).astype("int32")
            return [x, None, k, OUT, OUT, OUT], [N(values, "float32"), N(which, "int32"), rows]
        if name == "MoeGatingTopKSoftmaxV2":
            return [x, None, k, 0, True, OUT, OUT, OUT], [N(values, "float32"), N(which, "int32"), N(p, "float32")]
        if name == "MoeComputeExpertTokens":
            line = np.sort(d.random.integers(0, experts, 9)).astype("int32")
            return [line, experts, OUT], [np.searchsorted(line, np.arange(experts), "right").astype("int32")]
        tokens, chosen = d.array("float32", (n, h)), d.array("int32", (n, k), 0, experts - 1)
        if name == "MoeInitRouting":
            rows = (np.arange(k)[None, :] * n + np.arange(n)[:, None]).astype("int32")
            order = np.argsort(chosen.ravel(), kind="stable")
            source = rows.ravel()[order]
            back = np.empty(n * k, "int32")
            back[source] = np.arange(n * k, dtype="int32")
            return [tokens, rows, chosen, n, OUT, OUT, OUT], \
                [np.ascontiguousarray(tokens[source % n]), back, np.sort(chosen.ravel())]
        expanded = d.array("float32", (n * k, h))
        back, scales = d.random.permutation(n * k).astype("int32"), d.array("float32", (n, k), 0.1, 1)
        y = sum(expanded[back[np.arange(n) + j * n]] * scales[:, j:j + 1].astype("float64") for j in range(k))
        return [expanded, back, None, None, None, scales, None, 0, OUT], [y.astype("float32")]
    b, s, heads, size = 2, 3, int(d.random.integers(1, 4)), 128 if "Apply" in name else 8
    x, key = (d.array("float32", (b, s, heads, size)) for _ in range(2))
    cos, sin = (d.array("float32", (b if "Apply" in name else 1, s, 1, size), -1, 1) for _ in range(2))
    half = lambda a: np.concatenate([-a[..., size // 2:], a[..., :size // 2]], -1)  # noqa: E731
    turned = lambda a: (a.astype("float64") * cos + half(a.astype("float64")) * sin).astype("float32")  # noqa: E731
    if "Apply" in name:
        return [x, key, cos, sin, 1] + (["half"] if "V2" in name else []), [turned(x), turned(key)]
    return [x, cos, sin, 0] + ([None] if "V2" in name else []) + [OUT], [turned(x)]


# ---- What is left of the simple ones ----

@case(*[f"Inplace{name}{kind}" for name in ("Eq", "Ne", "Ge", "Gt", "Le", "Lt") for kind in ("Tensor", "Scalar")],
      "InplaceLogicalAnd", "InplaceLogicalOr", "InplaceLogicalNot", "LogicalNot", "BitwiseNot", "BitwiseAndScalar",
      "BitwiseOrScalar", "BitwiseXorScalar", "InplaceBitwiseAndScalar", "InplaceBitwiseOrScalar",
      "InplaceBitwiseXorScalar", "RightShift", "LeftShift")
def truths(d, name):
    x = reals(d, 0, 1, 2, 3, dtypes=("int32", "int64"), least=0)
    y, tail = like(d, x), ([] if "Inplace" in name else [OUT])
    key = name.replace("Inplace", "")
    if "Shift" in name:
        x, y = np.abs(x) + 8, np.full(x.shape, 2, x.dtype)
        return [x, y, OUT], [x << y if "Left" in name else x >> y]
    if key == "BitwiseNot":
        return [x, OUT], [np.invert(x)]
    if key == "LogicalNot":
        return [x, *tail], [np.logical_not(x).astype(x.dtype if not tail else "bool")]
    if "Bitwise" in name:
        function = {"And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor}[key[7:-6]]
        return [x, 3, *tail], [function(x, np.asarray(3, x.dtype))]
    if "Logical" in name:
        return [x, y], [(np.logical_and if "And" in name else np.logical_or)(x, y).astype(x.dtype)]
    function = {"Eq": np.equal, "Ne": np.not_equal, "Ge": np.greater_equal, "Gt": np.greater, "Le": np.less_equal,
                "Lt": np.less}[key[:2]]
    word = y if key.endswith("Tensor") else 1
    return [x, word], [function(x, word).astype(x.dtype)]


@case("Addcdiv", "Addcmul", "InplaceAddcdiv", "InplaceAddcmul", "InplaceMaskedFillScalar", "InplaceMaskedFillTensor",
      "InplaceDivs", "InplaceSubs", "InplacePowTensorScalar", "InplaceCumprod", "CumsumV2", "IsClose", "AddN",
      "SliceV2", "Real", "ScaledMaskedSoftmaxBackward", "Xlog1py")
def simple(d, name):
    x = reals(d, 1, 2, 3, dtypes=("float32",), low=0.5)
    y, z, t = like(d, x, 0.5, 3), like(d, x, 0.5, 3), T(x)
    tail = [] if "Inplace" in name else [OUT]
    if "Addc" in name:
        function = torch.addcdiv if "div" in name else torch.addcmul
        return [x, y, z, 0.5, *tail], [N(function(t, T(y), T(z), value=0.5), "float32")]
    if "MaskedFill" in name:
        mask = d.array("bool", x.shape)
        return [x, mask, np.array(2, "float32") if "Tensor" in name else 2], [np.where(mask, np.float32(2), x)]
    if name in ("InplaceDivs", "InplaceSubs", "InplacePowTensorScalar"):
        expected = {"InplaceDivs": t / 2, "InplaceSubs": t - 3 * 2, "InplacePowTensorScalar": t ** 2}[name]
        return [x, 2] + ([3] if "Subs" in name else []), [N(expected, "float32")]
    axis = int(d.random.integers(-x.ndim, x.ndim))
    if name == "InplaceCumprod":
        return [x, axis], [N(torch.cumprod(t, axis), "float32")]
    if name == "CumsumV2":
        return [x, axis, False, True, OUT], [N(t.flip(axis).cumsum(axis).flip(axis), "float32")]
    if name == "IsClose":
        y = np.where(d.random.random(x.shape) < 0.5, x, y)
        return [x, y, 1e-3, 1e-3, False, OUT], [np.isclose(x, y, 1e-3, 1e-3)]
    if name == "AddN":
        return [[x, y, z], OUT], [(x.astype("float64") + y + z).astype("float32")]
    if name == "SliceV2":
        return [x, [0], [x.shape[axis]], [axis % x.ndim], [2], OUT], \
            [np.ascontiguousarray(np.take(x, range(0, x.shape[axis], 2), axis))]
    if name == "Real":
        return [x, OUT], [x]
    if name == "Xlog1py":
        return [x, y, OUT], [N(torch.special.xlog1py(t, T(y)), "float32")]
    x = d.array("float32", (1, 2, 3, 4))
    g, mask = like(d, x), d.array("bool", (1, 1, 3, 4))
    mask[..., 0] = False
    function = lambda a: torch.softmax((a * 0.5).masked_fill(torch.from_numpy(np.ascontiguousarray(mask)),  # noqa: E731
                                                             -10000.0), -1)
    return [g, N(function(T(x)), "float32"), mask, 0.5, False, OUT], gradient(function, g, x)


@case("InplaceUniform", "InplaceNormal", "Randperm", "InplaceBernoulli", "InplaceRandom")
def randoms(d, name):
    """Values are those of seed and offset: twice the same; here what all of them have in common."""
    if name == "Randperm":
        return [1, 5, 0, OUT], [np.zeros(1, "int64")]
    x = reals(d, 1, 2, dtypes=("float32",))
    if name == "InplaceUniform":  # of one number
        return [x, 2.0, 2.0, 3, 0], [np.full(x.shape, 2, "float32")]
    if name == "InplaceNormal":
        return [x, 1.5, 0.0, 3, 0], [np.full(x.shape, 1.5, "float32")]
    if name == "InplaceRandom":  # of one number
        x = reals(d, 1, 2, dtypes=("float32", "int64", "int32"))
        return [x, -3, -2, 3, 0], [np.full(x.shape, -3, x.dtype)]
    share = d.pick([0.0, 1.0])
    return [x, share, 3, 0], [np.full(x.shape, share, "float32")]
