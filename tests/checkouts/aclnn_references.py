"""What functions of aclnn compute, said with torch on the CPU: aclnn_examples.py --values compares programs with it.

REFERENCES[name](p) takes the parameters by their names in the header, without "aclnn": tensors with floats as doubles,
lists, numbers, words, None for a null. It gives the written tensor, or for several a dictionary by parameter. A function
that is not here has no reference.
"""

import torch
import torch.nn.functional as F

REFERENCES = {}
# Their tensors have room for the most there can be; what the reference gives stands in front.
SHORTER = {"MaskedSelect", "Nonzero"}
REDUCTIONS = ("none", "mean", "sum")
MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


def reference(*names):
    def register(function):
        for name in names:
            REFERENCES[name] = function
        return function
    return register


def of(names, make):
    """One reference for each name: make(name)."""
    for name in names.split():
        REFERENCES[name] = make(name)


def first(p):
    """The first parameter, whatever its name."""
    return next(iter(vars(p).values()))


def find(p, *names):
    return next(getattr(p, name) for name in names if hasattr(p, name))


def gradient(function, wanted, grad):
    """The gradients of function(*wanted), of one tensor or of a list."""
    leaves = [x.detach().clone().requires_grad_() for x in wanted]
    y = function(*leaves)
    if y.numel() == 1 and grad.numel() > 1:  # of a loss: a gradient for each element
        return [x * grad for x in torch.autograd.grad(y, leaves)]
    return torch.autograd.grad(y, leaves, grad.reshape(y.shape).to(y.dtype), allow_unused=True)


def number(x):
    return x.item() if isinstance(x, torch.Tensor) else x


def dims(p, *names):
    """Dimensions to reduce; an empty list means all of them."""
    x = first(p)
    given = find(p, *names)
    return tuple(given) if given else tuple(range(x.dim()))


# ---- One tensor ----

of("Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Erfc Erfinv Exp Exp2 Expm1 Floor Log Log10 Log1p Log2 Neg "
   "Reciprocal Relu Round Rsqrt Sigmoid Sign Signbit Sin Sinc Sinh Sqrt Square Tan Tanh Trunc Frac Real",
   lambda name: lambda p: getattr(torch, name.lower())(first(p)))
of("Selu Mish Hardswish Hardsigmoid LogSigmoid Softsign",
   lambda name: lambda p: getattr(F, name.lower())(first(p)))
of("IsFinite IsPosInf IsNegInf", lambda name: lambda p: getattr(torch, name.lower())(first(p)))
of("BitwiseNot LogicalNot", lambda name: lambda p: (torch.bitwise_not if name == "BitwiseNot" else torch.logical_not)(first(p)))
REFERENCES.update({
    "Gelu": lambda p: F.gelu(p.self),
    "GeluV2": lambda p: F.gelu(p.x, approximate="tanh" if p.approximate else "none"),
    "FastGelu": lambda p: p.self / (1 + torch.exp(-1.702 * p.self.abs())) * torch.exp(0.851 * (p.self - p.self.abs())),
    "Swish": lambda p: p.self * torch.sigmoid((1 if p.betaOptional is None else p.betaOptional) * p.self),
    "Silu": lambda p: F.silu(p.self),
    "Softplus": lambda p: F.softplus(p.self, p.beta, p.threshold),
    "Softshrink": lambda p: F.softshrink(p.self, p.lambd),
    "Hardshrink": lambda p: F.hardshrink(p.self, p.lambd),
    "Shrink": lambda p: torch.where(p.self > p.lambd, p.self - p.bias,
                                    torch.where(p.self < -p.lambd, p.self + p.bias, torch.zeros_like(p.self))),
    "Celu": lambda p: F.celu(p.self, p.alpha),
    "Elu": lambda p: torch.where(p.self > 0, p.scale * p.self,
                                 p.scale * p.alpha * torch.expm1(p.self * p.inputScale)),
    "Threshold": lambda p: torch.where(p.self > p.threshold, p.self, torch.full_like(p.self, p.value)),
    "Hardtanh": lambda p: torch.clamp(find(p, "self", "selfRef"), p.clipValueMin, p.clipValueMax),
    "LeakyRelu": lambda p: F.leaky_relu(p.self, p.negativeSlope),
    "Prelu": lambda p: F.prelu(p.self, p.weight.reshape(-1)),
    "Glu": lambda p: F.glu(p.self, p.dim),
    "NanToNum": lambda p: torch.nan_to_num(p.self, p.nan, p.posinf, p.neginf),
    "RoundDecimals": lambda p: torch.round(p.self, decimals=p.decimals),
    "Logit": lambda p: torch.logit(p.input, None if p.eps < 0 else p.eps),
    "Cast": lambda p: p.self,
    "Zero": lambda p: torch.zeros_like(first(p)),
    "One": lambda p: torch.ones_like(first(p)),
    "FillScalar": lambda p: torch.full_like(first(p), p.value),
    "FillTensor": lambda p: torch.full_like(first(p), number(p.value)),
    "Copy": lambda p: p.src.expand(first(p).shape),
    "LogSigmoidForward": lambda p: {"out": F.logsigmoid(p.self)},
    "Complex": lambda p: torch.complex(p.real, p.imag),
    "Polar": lambda p: torch.polar(p.input, p.angle),
})

# ---- Two tensors, or a tensor and a number ----

REFERENCES.update({
    "Add": lambda p: p.self + p.alpha * p.other,
    "Adds": lambda p: p.self + p.alpha * p.other,
    "Sub": lambda p: p.self - p.alpha * p.other,
    "Subs": lambda p: p.self - p.alpha * p.other,
    "Mul": lambda p: p.self * p.other,
    "Muls": lambda p: p.self * p.other,
    "Div": lambda p: p.self / p.other,
    "Divs": lambda p: p.self / p.other,
    "AddRelu": lambda p: torch.relu(p.self + p.alpha * p.other),
    "FloorDivide": lambda p: torch.floor_divide(p.self, p.other),
    "FloorDivides": lambda p: torch.floor_divide(p.self, p.other),
    "FmodTensor": lambda p: torch.fmod(p.self, p.other),
    "FmodScalar": lambda p: torch.fmod(p.self, p.other),
    "RemainderTensorScalar": lambda p: torch.remainder(p.self, p.other),
    "RemainderTensorTensor": lambda p: torch.remainder(p.self, p.other),
    "PowTensorTensor": lambda p: torch.pow(p.self, p.exponent),
    "PowTensorScalar": lambda p: torch.pow(p.self, p.exponent),
    "Maximum": lambda p: torch.maximum(p.self, p.other),
    "Minimum": lambda p: torch.minimum(p.self, p.other),
    "Atan2": lambda p: torch.atan2(p.self, p.other),
    "LogAddExp": lambda p: torch.logaddexp(p.self, p.other),
    "LogAddExp2": lambda p: torch.logaddexp2(p.self, p.other),
    "Heaviside": lambda p: torch.heaviside(p.input, p.values),
    "XLogYTensor": lambda p: torch.xlogy(p.self, p.other),
    "XLogYScalarOther": lambda p: torch.xlogy(p.self, p.other),
    "XLogYScalarSelf": lambda p: torch.xlogy(p.self, p.other),
    "Xlog1py": lambda p: torch.special.xlog1py(p.x, p.y),
    "LeftShift": lambda p: torch.bitwise_left_shift(p.self, p.shiftBits),
    "LeftShifts": lambda p: torch.bitwise_left_shift(p.self, p.shiftBits),
    "RightShift": lambda p: torch.bitwise_right_shift(p.input, p.shiftBits),
    "Equal": lambda p: torch.tensor([torch.equal(p.self, p.other)]),
    "IsClose": lambda p: torch.isclose(p.self, p.other, p.rtol, p.atol, p.equalNan),
    "Lerp": lambda p: torch.lerp(p.self, p.end, p.weight),
    "SWhere": lambda p: torch.where(p.condition.bool(), p.self, p.other),
    "Clamp": lambda p: torch.clamp(p.self, p.clipValueMin, p.clipValueMax),
    "ClampMin": lambda p: torch.clamp_min(p.self, p.clipValueMin),
    "ClampMax": lambda p: torch.clamp_max(p.self, p.clipValueMax),
    "ClampMinTensor": lambda p: torch.maximum(p.self, p.clipValueMin),
    "ClampMaxTensor": lambda p: torch.minimum(p.self, p.max),
    "ClampTensor": lambda p: torch.clamp(p.self, p.clipValueMin, p.clipValueMax),
    "Addcmul": lambda p: p.self + p.value * p.tensor1 * p.tensor2,
    "Addcdiv": lambda p: p.self + p.value * p.tensor1 / p.tensor2,
    "AddN": lambda p: sum(p.tensors),
    "Sum": lambda p: sum(p.tensors),
    "MaxN": lambda p: torch.stack(torch.broadcast_tensors(*p.tensors)).amax(0),
    "MinN": lambda p: torch.stack(torch.broadcast_tensors(*p.tensors)).amin(0),
    "ChunkCat": lambda p: torch.ops.aten._chunk_cat(p.tensors, p.dim, p.numChunks),
    "IsInTensorScalar": lambda p: (p.element == p.testElement) != p.invert,
    "IsInScalarTensor": lambda p: torch.tensor(bool((p.testElements == p.element).any()) != p.invert),
    "MaskedScale": lambda p: p.self * p.mask * p.scale,
})
for _sign, _function in (("Eq", torch.eq), ("Ne", torch.ne), ("Lt", torch.lt), ("Le", torch.le), ("Gt", torch.gt),
                         ("Ge", torch.ge)):
    for _kind in ("Tensor", "Scalar"):
        REFERENCES[_sign + _kind] = lambda p, function=_function: function(p.self, p.other)
for _word in ("And", "Or", "Xor"):
    for _kind in ("Tensor", "Scalar"):
        REFERENCES[f"Bitwise{_word}{_kind}"] = \
            lambda p, function=getattr(torch, "bitwise_" + _word.lower()): function(p.self, p.other)
    REFERENCES["Logical" + _word] = \
        lambda p, function=getattr(torch, "logical_" + _word.lower()): function(p.self, p.other)

# ---- Lists ----

_ADD = {"Add": lambda x, y: x + y, "Sub": lambda x, y: x - y, "Mul": lambda x, y: x * y, "Div": lambda x, y: x / y,
        "Maximum": torch.maximum, "Minimum": torch.minimum, "Pow": torch.pow}
of(" ".join("Foreach" + name for name in "Abs Acos Asin Atan Cos Cosh Erf Erfc Exp Expm1 Log Log10 Log1p Log2 Neg "
            "Reciprocal Sigmoid Sign Sin Sinh Sqrt Tan Tanh".split()),
   lambda name: lambda p: [getattr(torch, name[7:].lower())(x) for x in p.x])


def _each(function, xs, values):
    several = isinstance(values, list) or (isinstance(values, torch.Tensor) and values.numel() > 1)
    words = [number(v) for v in values] if several else [number(values)] * len(xs)
    return [function(x, torch.as_tensor(v, dtype=x.dtype)) for x, v in zip(xs, words)]


for _name, _function in _ADD.items():
    for _kind in ("Scalar", "ScalarV2", "ScalarList"):
        REFERENCES[f"Foreach{_name}{_kind}"] = \
            lambda p, function=_function: _each(function, p.x, find(p, "scalar", "scalars"))
    if _name in ("Add", "Sub"):
        for _kind in ("List", "ListV2"):
            REFERENCES[f"Foreach{_name}{_kind}"] = \
                lambda p, function=_function: [function(x, number(p.alpha) * y) for x, y in zip(p.x1, p.x2)]
    else:
        REFERENCES[f"Foreach{_name}List"] = \
            lambda p, function=_function: [function(x, y) for x, y in zip(p.x1, p.x2)]


def _product(function):
    def each(p):
        values = find(p, "scalar", "scalars")
        several = isinstance(values, (list, torch.Tensor)) and len(torch.as_tensor(values).reshape(-1)) > 1
        words = [number(v) for v in values] if several else [number(values)] * len(p.x1)
        return [x + w * function(y, z) for x, y, z, w in zip(p.x1, p.x2, p.x3, words)]
    return each


for _kind in ("Scalar", "ScalarV2", "ScalarList"):
    REFERENCES["ForeachAddcmul" + _kind] = _product(torch.mul)
    REFERENCES["ForeachAddcdiv" + _kind] = _product(torch.div)
REFERENCES.update({
    "ForeachCopy": lambda p: p.x,
    "ForeachLerpScalar": lambda p: [torch.lerp(x, y, p.weight) for x, y in zip(p.x1, p.x2)],
    "ForeachLerpList": lambda p: [torch.lerp(x, y, w) for x, y, w in zip(p.x1, p.x2, p.weights)],
    "ForeachPowScalarAndTensor": lambda p: [torch.pow(p.scalar, x) for x in p.x],
    "ForeachNorm": lambda p: [torch.linalg.vector_norm(x, p.scalar).reshape(-1) for x in p.x],
})

# ---- Products ----

REFERENCES.update({
    "Mm": lambda p: p.self @ p.mat2,
    "Matmul": lambda p: p.self @ p.mat2,
    "BatchMatMul": lambda p: p.self @ p.mat2,
    "Mv": lambda p: p.self @ p.vec,
    "Dot": lambda p: torch.dot(p.self, p.tensor),
    "Ger": lambda p: torch.outer(p.self, p.vec2),
    "Addmm": lambda p: p.beta * first(p) + p.alpha * (p.mat1 @ p.mat2),
    "Addbmm": lambda p: p.beta * first(p) + p.alpha * (p.batch1 @ p.batch2).sum(0),
    "Baddbmm": lambda p: p.beta * first(p) + p.alpha * (p.batch1 @ p.batch2),
    "Addmv": lambda p: p.beta * p.self + p.alpha * (p.mat @ p.vec),
    "Addr": lambda p: (1 if p.betaOptional is None else p.betaOptional) * first(p)
            + (1 if p.alphaOptional is None else p.alphaOptional) * torch.outer(p.vec1, p.vec2),
    "Gemm": lambda p: p.alpha * ((p.A.T if p.transA else p.A) @ (p.B.T if p.transB else p.B)) + p.beta * p.C,
    "Cdist": lambda p: torch.cdist(p.x1, p.x2, p.p),
    "LinalgCross": lambda p: torch.linalg.cross(*torch.broadcast_tensors(p.self, p.other), dim=p.dim),
    "Inverse": lambda p: torch.linalg.inv(p.self),
    "Logdet": lambda p: torch.logdet(p.self),
    "LinalgCholesky": lambda p: torch.linalg.cholesky(p.self, upper=p.upper),
    "Slogdet": lambda p: dict(zip(("signOut", "logOut"), torch.linalg.slogdet(p.self))),
    "Trace": lambda p: torch.trace(p.self),
})


@reference("TransposeBatchMatMul")
def transpose_batch_matmul(p):
    if p.scale is not None:
        return None
    x1 = p.x1.permute(p.permX1) if p.permX1 else p.x1
    x2 = p.x2.permute(p.permX2) if p.permX2 else p.x2
    y = x1 @ x2
    return (y if p.bias is None else y + p.bias).permute(p.permY)


def _quantised(p, scale, left=None, right=False):
    """x1 x2, with the factors of columns `scale` and of rows `left`."""
    x1, x2 = (x.double().transpose(-1, -2) if turned else x.double()
              for x, turned in ((p.x1, getattr(p, "transposeX1", False)), (p.x2, getattr(p, "transposeX2", False))))
    y = x1 @ x2
    if p.bias is not None and not p.bias.is_floating_point():
        y = y + p.bias.double()
    y = y * scale
    if left is not None:
        y = y * left.reshape(-1, 1)
    return y + p.bias if p.bias is not None and p.bias.is_floating_point() else y


@reference("QuantMatmulV4")
def quant_matmul(p):
    if p.scale is None or not p.scale.is_floating_point() or p.offset is not None or p.x1.dtype != torch.int8:
        return None
    return _quantised(p, p.scale, p.pertokenScaleOptional)


# ---- Reductions ----

REFERENCES.update({
    "ReduceSum": lambda p: p.self.sum(dims(p, "dims"), keepdim=p.keepDims),
    "Mean": lambda p: p.self.double().mean(dims(p, "dim"), keepdim=p.keepDim),
    "MeanV2": lambda p: p.self if p.noopWithEmptyAxes and not p.dim else p.self.mean(dims(p, "dim"), keepdim=p.keepDim),
    "MaxV2": lambda p: p.self if p.noopWithEmptyDims and not p.dims else p.self.amax(dims(p, "dims"), keepdim=p.keepDims),
    "Amax": lambda p: p.self.amax(dims(p, "dim"), keepdim=p.keepDim),
    "Amin": lambda p: p.self.amin(dims(p, "dim"), keepdim=p.keepDim),
    "All": lambda p: p.self.bool().all() if not p.dim else torch.all(p.self.bool(), tuple(p.dim), keepdim=p.keepdim),
    "Any": lambda p: p.self.bool().any() if not p.dim else torch.any(p.self.bool(), tuple(p.dim), keepdim=p.keepdim),
    "Max": lambda p: p.self.max(),
    "Min": lambda p: p.self.min(),
    "Median": lambda p: p.self.median(),
    "NanMedian": lambda p: p.self.nanmedian(),
    "Prod": lambda p: p.self.prod(),
    "ProdDim": lambda p: p.self.prod(p.dim, keepdim=p.keepDim),
    "LogSumExp": lambda p: torch.logsumexp(p.self.double(), dims(p, "dim"), keepdim=p.keepDim),
    "ReduceNansum": lambda p: torch.nansum(p.self, dims(p, "dim"), keepdim=p.keepDim),
    "Norm": lambda p: torch.linalg.vector_norm(p.self, 2 if p.pScalar is None else p.pScalar, dims(p, "dim"), p.keepdim),
    "LinalgVectorNorm": lambda p: torch.linalg.vector_norm(p.self, p.ord, dims(p, "dims"), p.keepDims),
    "Renorm": lambda p: torch.renorm(first(p), p.p, p.dim, p.maxNorm),
    "Var": lambda p: torch.var(p.self, dims(p, "dim"), correction=int(p.unbiased), keepdim=p.keepdim),
    "Std": lambda p: torch.std(p.self, dims(p, "dim"), correction=p.correction, keepdim=p.keepdim),
    "VarMean": lambda p: dict(zip(("varOut", "meanOut"), torch.var_mean(
        p.self, dims(p, "dim"), correction=p.correction, keepdim=p.keepdim))),
    "StdMeanCorrection": lambda p: dict(zip(("stdOut", "meanOut"), torch.std_mean(
        p.self, dims(p, "dim"), correction=p.correction, keepdim=p.keepdim))),
    "Aminmax": lambda p: {"minOut": p.self.amin(dims(p, "dim"), p.keepDim), "maxOut": p.self.amax(dims(p, "dim"), p.keepDim)},
    "AminmaxAll": lambda p: {"minOut": p.self.min(), "maxOut": p.self.max()},
    "AminmaxDim": lambda p: {"minOut": p.self.amin(p.dim, p.keepDim), "maxOut": p.self.amax(p.dim, p.keepDim)},
    "ArgMax": lambda p: p.self.argmax(p.dim, p.keepdim),
    "ArgMin": lambda p: p.self.argmin(p.dim, p.keepdim),
    "MaxDim": lambda p: {"out": p.self.amax(p.dim, p.keepdim)},
    "MinDim": lambda p: {"out": p.self.amin(p.dim, p.keepdim)},
    "Kthvalue": lambda p: {"valuesOut": torch.kthvalue(p.self, p.k, p.dim, p.keepdim).values},
    "MedianDim": lambda p: {"valuesOut": torch.median(p.self, p.dim, p.keepDim).values},
    "NanMedianDim": lambda p: {"valuesOut": torch.nanmedian(p.self, p.dim, p.keepDim).values},
    "Sort": lambda p: {"valuesOut": torch.sort(p.self, dim=p.dim, descending=p.descending).values},
    "Argsort": lambda p: torch.argsort(p.self, stable=True, dim=p.dim, descending=p.descending),
    "Topk": lambda p: {"valuesOut": torch.topk(p.self, p.k, p.dim, p.largest).values},
    "Cumsum": lambda p: p.self.cumsum(p.dim),
    "Cumprod": lambda p: first(p).cumprod(int(p.dim)),
    "Cummax": lambda p: dict(zip(("valuesOut", "indicesOut"), torch.cummax(p.self, p.dim))),
    "Cummin": lambda p: dict(zip(("valuesOut", "indicesOut"), torch.cummin(p.self, p.dim))),
    "Histc": lambda p: torch.histc(p.self.double(), p.bins, p.min, p.max),
    "Bincount": lambda p: torch.bincount(p.self, p.weights, p.minlength),
})

# ---- Softmax, losses, norms ----

REFERENCES.update({
    "Softmax": lambda p: torch.softmax(p.self, p.dim),
    "LogSoftmax": lambda p: torch.log_softmax(p.self, p.dim),
    "SoftmaxBackward": lambda p: p.output * (p.gradOutput - (p.gradOutput * p.output).sum(p.dim, keepdim=True)),
    "LogSoftmaxBackward": lambda p: p.gradOutput - p.output.exp() * p.gradOutput.sum(p.dim, keepdim=True),
    "L1Loss": lambda p: F.l1_loss(p.self, p.target, reduction=REDUCTIONS[p.reduction]),
    "MseLoss": lambda p: F.mse_loss(p.self, p.target, reduction=REDUCTIONS[p.reduction]),
    "SmoothL1Loss": lambda p: F.smooth_l1_loss(p.self, p.target, reduction=REDUCTIONS[p.reduction], beta=p.beta),
    "SoftMarginLoss": lambda p: F.soft_margin_loss(p.self, p.target, reduction=REDUCTIONS[p.reduction]),
    "KlDiv": lambda p: F.kl_div(p.self, p.target, reduction=REDUCTIONS[p.reduction], log_target=p.logTarget),
    "BinaryCrossEntropy": lambda p: F.binary_cross_entropy(p.self, p.target, p.weight, reduction=REDUCTIONS[p.reduction]),
    "BinaryCrossEntropyWithLogits": lambda p: F.binary_cross_entropy_with_logits(
        p.self, p.target, p.weightOptional, reduction=REDUCTIONS[p.reduction], pos_weight=p.posWeightOptional),
    "NLLLoss": lambda p: {"out": F.nll_loss(p.self, p.target.long(), p.weight, ignore_index=p.ignoreIndex,
                                            reduction=REDUCTIONS[p.reduction])},
    "MseLossBackward": lambda p: gradient(lambda x: F.mse_loss(x, p.target, reduction=REDUCTIONS[p.reduction]),
                                          [p.self], p.gradOutput)[0],
    "L1LossBackward": lambda p: gradient(lambda x: F.l1_loss(x, p.target, reduction=REDUCTIONS[p.reduction]),
                                         [p.self], p.gradOutput)[0],
    "SmoothL1LossBackward": lambda p: gradient(
        lambda x: F.smooth_l1_loss(x, p.target, reduction=REDUCTIONS[p.reduction], beta=p.beta), [p.self], p.gradOut)[0],
    "SoftMarginLossBackward": lambda p: gradient(
        lambda x: F.soft_margin_loss(x, p.target, reduction=REDUCTIONS[p.reduction]), [p.self], p.gradOutput)[0],
    "KlDivBackward": lambda p: gradient(
        lambda x: F.kl_div(x, p.target, reduction=REDUCTIONS[p.reduction], log_target=p.logTarget),
        [p.self], p.gradOutput)[0],
    "BinaryCrossEntropyBackward": lambda p: gradient(
        lambda x: F.binary_cross_entropy(x, p.target, p.weightOptional, reduction=REDUCTIONS[p.reduction]),
        [p.self], p.gradOutput)[0],
    "BinaryCrossEntropyWithLogitsBackward": lambda p: gradient(
        lambda x: F.binary_cross_entropy_with_logits(x, p.target, p.weightOptional, reduction=REDUCTIONS[p.reduction],
                                                     pos_weight=p.posWeightOptional), [p.self], p.gradOutput)[0],
})


def _moments(x, axes, eps):
    mean = x.mean(axes, keepdim=True)
    return mean, 1 / torch.sqrt(((x - mean) ** 2).mean(axes, keepdim=True) + eps)


@reference("LayerNorm", "LayerNormWithImplMode", "FastLayerNorm")
def layer_norm(p):
    axes = tuple(range(-len(p.normalizedShape), 0))
    mean, rstd = _moments(p.input, axes, p.eps)
    return {"out": F.layer_norm(p.input, p.normalizedShape, p.weightOptional, p.biasOptional, p.eps),
            "meanOutOptional": mean, "rstdOutOptional": rstd}


@reference("RmsNorm")
def rms_norm(p, adds=0):
    axes = tuple(range(-p.gamma.dim(), 0))
    rstd = 1 / torch.sqrt((p.x ** 2).mean(axes, keepdim=True) + p.epsilon)
    return {"yOut": p.x * rstd * (p.gamma + adds), "rstdOut": rstd}


REFERENCES["GemmaRmsNorm"] = lambda p: rms_norm(p, 1)


@reference("AddRmsNorm")
def add_rms_norm(p):
    x = p.x1 + p.x2
    axes = tuple(range(-p.gamma.dim(), 0))
    rstd = 1 / torch.sqrt((x ** 2).mean(axes, keepdim=True) + p.epsilon)
    return {"yOut": x * rstd * p.gamma, "rstdOut": rstd, "xOut": x}


@reference("InplaceAddRmsNorm")
def inplace_add_rms_norm(p):
    x = p.x1Ref + p.x2Ref
    rstd = 1 / torch.sqrt((x ** 2).mean(tuple(range(-p.gamma.dim(), 0)), keepdim=True) + p.epsilon)
    return {"x1Ref": x * rstd * p.gamma, "x2Ref": x, "rstdOut": rstd}


@reference("GroupNorm", "GroupNormSilu", "GroupNormSiluV2")
def group_norm(p):
    gamma, beta = find(p, "gamma", "gammaOptional"), find(p, "beta", "betaOptional")
    x = p.self
    mean, rstd = _moments(x.reshape(x.shape[0], p.group, -1), (-1,), p.eps)
    y = F.group_norm(x, p.group, gamma, beta, p.eps)
    if getattr(p, "activateSilu", not hasattr(p, "HxW")):
        y = F.silu(y)
    return {"out": y, "meanOut": mean, "rstdOut": rstd}


@reference("BatchNorm")
def batch_norm(p):
    if p.training:
        return None
    return {"output": F.batch_norm(p.input, p.runningMean, p.runningVar, p.weight, p.bias, False, p.momentum, p.eps)}


# ---- Gradients of one tensor ----

def _of(forward):
    return lambda p: gradient(forward(p), [p.self], find(p, "gradOutput", "gradOut"))[0]


REFERENCES.update({
    "GeluBackward": _of(lambda p: F.gelu),
    "GeluBackwardV2": _of(lambda p: lambda x: F.gelu(x, approximate=p.approximate)),
    "SiluBackward": _of(lambda p: F.silu),
    "SwishBackward": _of(lambda p: lambda x: x * torch.sigmoid((1 if p.betaOptional is None else p.betaOptional) * x)),
    "MishBackward": _of(lambda p: F.mish),
    "HardswishBackward": _of(lambda p: F.hardswish),
    "HardswishBackwardV2": _of(lambda p: F.hardswish),
    "HardsigmoidBackward": _of(lambda p: F.hardsigmoid),
    "HardshrinkBackward": _of(lambda p: lambda x: F.hardshrink(x, p.lambd)),
    "SoftshrinkBackward": _of(lambda p: lambda x: F.softshrink(x, vars(p)["lambda"])),
    "SoftplusBackward": _of(lambda p: lambda x: F.softplus(x, p.beta, p.threshold)),
    "HardtanhBackward": _of(lambda p: lambda x: F.hardtanh(x, p.min, p.max)),
    "LeakyReluBackward": _of(lambda p: lambda x: F.leaky_relu(x, p.negativeSlope)),
    "ThresholdBackward": _of(lambda p: lambda x: F.threshold(x, p.threshold, 0)),
    "GluBackward": _of(lambda p: lambda x: F.glu(x, p.dim)),
    "LogSigmoidBackward": _of(lambda p: F.logsigmoid),
    "SigmoidBackward": lambda p: p.gradOutput * p.output * (1 - p.output),
    "TanhBackward": lambda p: p.gradOutput * (1 - p.output ** 2),
    "LogitGrad": lambda p: gradient(lambda x: torch.logit(x, None if p.eps < 0 else p.eps), [p.x], p.dy)[0],
    "PreluBackward": lambda p: dict(zip(("gradInput", "gradWeight"), gradient(
        lambda x, w: F.prelu(x, w.reshape(-1)), [p.self, p.weight], p.gradOutput))),
    "SwiGlu": lambda p: F.silu(p.x.chunk(2, p.dim)[0]) * p.x.chunk(2, p.dim)[1],
    "SwiGluGrad": lambda p: gradient(lambda x: F.silu(x.chunk(2, p.dim)[0]) * x.chunk(2, p.dim)[1], [p.x], p.yGrad)[0],
})

# ---- Places ----

REFERENCES.update({
    "Permute": lambda p: p.self.permute(p.dims),
    "Flip": lambda p: p.self.flip(p.dims),
    "Roll": lambda p: torch.roll(p.x, p.shifts, p.dims or None),
    "Tril": lambda p: torch.tril(first(p), p.diagonal),
    "Triu": lambda p: torch.triu(first(p), p.diagonal),
    "Diag": lambda p: torch.diag(p.self, p.diagonal),
    "DiagFlat": lambda p: torch.diagflat(p.self, p.diagonal),
    "Repeat": lambda p: p.self.repeat(p.repeats),
    "Expand": lambda p: p.self.expand(p.size),
    "Flatten": lambda p: p.self.reshape(p.self.shape[:p.axis].numel(), -1),
    "Cat": lambda p: torch.cat(p.tensors, p.dim),
    "Stack": lambda p: torch.stack(p.tensors, p.dim),
    "SplitWithSize": lambda p: list(torch.split(p.self, p.splitSize, p.dim)),
    "SplitTensor": lambda p: list(torch.split(p.self, p.splitSections, p.dim)),
    "ConstantPadNd": lambda p: F.pad(p.self, p.pad, value=p.value),
    "Eye": lambda p: torch.eye(p.n, p.m),
    "Arange": lambda p: torch.arange(p.start, p.end, p.step, dtype=torch.float64),
    "Linspace": lambda p: torch.linspace(p.start, p.end, p.steps, dtype=torch.float64),
    "Slice": lambda p: p.self[tuple([slice(None)] * (p.dim % p.self.dim()) + [slice(p.start, p.end, p.step)])],
    "IndexSelect": lambda p: torch.index_select(p.self, p.dim, p.index.long()),
    "IndexAdd": lambda p: torch.index_add(p.self, p.dim, p.index.long(), p.source, alpha=p.alpha),
    "IndexCopy": lambda p: torch.index_copy(p.selfRef, p.dim, p.index.long(), p.source),
    "InplaceIndexCopy": lambda p: torch.index_copy(p.selfRef, p.dim, p.index.long(), p.source),
    "IndexFill": lambda p: torch.index_fill(first(p), p.dim, torch.as_tensor(p.index).long(), p.value),
    "IndexFillTensor": lambda p: torch.index_fill(first(p), p.dim, torch.as_tensor(p.index).long(), p.value),
    "Gather": lambda p: torch.gather(p.self, p.dim, p.index.long()),
    "Take": lambda p: torch.take(p.self, p.index.long()),
    "ScatterAdd": lambda p: torch.scatter_add(p.self, p.dim, p.index.long(), p.src),
    "MaskedSelect": lambda p: torch.masked_select(p.self, p.mask.bool()),
    "Nonzero": lambda p: torch.nonzero(p.self),
    "MaskedFillScalar": lambda p: torch.masked_fill(first(p), p.mask.bool(), p.value),
    "MaskedFillTensor": lambda p: torch.masked_fill(first(p), p.mask.bool(), number(p.value)),
    "MaskedScatter": lambda p: torch.masked_scatter(first(p), p.mask.bool(), p.source),
    "Embedding": lambda p: F.embedding(p.indices.long(), p.weight),
    "RepeatInterleave": lambda p: torch.repeat_interleave(p.self, p.repeats),
    "RepeatInterleaveInt": lambda p: torch.repeat_interleave(p.self, p.repeats),
    "RepeatInterleaveWithDim": lambda p: torch.repeat_interleave(p.self, p.repeats, p.dim),
    "RepeatInterleaveIntWithDim": lambda p: torch.repeat_interleave(p.self, p.repeats, p.dim),
    "RepeatInterleaveTensor": lambda p: torch.repeat_interleave(p.repeats),
    "SearchSorted": lambda p: torch.searchsorted(p.sortedSequence, p.self, right=p.right, sorter=p.sorter),
    "SearchSorteds": lambda p: torch.searchsorted(p.sortedSequence, p.self, right=p.right, sorter=p.sorter),
    "Bucketize": lambda p: torch.bucketize(p.self, p.boundaries, right=p.right),
    "FillDiagonal": lambda p: first(p).clone().fill_diagonal_(p.fillValue, p.wrap),
    "ChannelShuffle": lambda p: F.channel_shuffle(p.self, p.groups),
    "Im2col": lambda p: F.unfold(p.self, p.kernelSize, p.dilation, p.padding, p.stride),
    "Im2colBackward": lambda p: F.fold(p.gradOutput, p.inputSize, p.kernelSize, p.dilation, p.padding, p.stride),
    "UnfoldGrad": lambda p: torch.ops.aten.unfold_backward(p.gradOut, p.inputSizes, p.dim, p.size, p.step),
    "AffineGrid": lambda p: F.affine_grid(p.theta, p.size, align_corners=p.alignCorners),
})
for _rank in (1, 2, 3):
    for _word, _mode in (("Reflection", "reflect"), ("Replication", "replicate")):
        REFERENCES[f"{_word}Pad{_rank}d"] = lambda p, mode=_mode, rank=_rank: _padded(p.self, p.padding, mode, rank)
        REFERENCES[f"{_word}Pad{_rank}dBackward"] = lambda p, mode=_mode, rank=_rank: gradient(
            lambda x: _padded(x, p.padding, mode, rank), [p.self], p.gradOutput)[0]


def _padded(x, padding, mode, rank):
    lead = x.shape[:-rank]
    y = F.pad(x.reshape(1, -1, *x.shape[-rank:]), padding, mode)
    return y.reshape(*lead, *y.shape[-rank:])


@reference("Scatter", "ScatterValue")
def scatter(p):
    x, index = first(p), p.index.long()
    src = p.src if hasattr(p, "src") else torch.full(index.shape, p.value, dtype=x.dtype)
    if p.reduce == 0:
        return torch.scatter(x, p.dim, index, src)
    return torch.scatter_reduce(x, p.dim, index, src, "sum" if p.reduce == 1 else "prod")


@reference("Index")
def index(p):
    if any(i is not None and i.dtype == torch.bool for i in p.indices):
        return None
    given = list(p.indices)
    while given and (given[-1] is None or given[-1].numel() == 0):
        given.pop()
    return p.self[tuple(slice(None) if i is None or i.numel() == 0 else i.long() for i in given)]


@reference("IndexPutImpl")
def index_put(p):
    if any(i is None or i.dtype == torch.bool or i.numel() == 0 for i in p.indices):
        return None
    return p.selfRef.clone().index_put_(tuple(i.long() for i in p.indices), p.values, p.accumulate)


@reference("GatherNd")
def gather_nd(p):
    return p.self[tuple(p.indices.long()[..., axis] for axis in range(p.indices.shape[-1]))]


@reference("ScatterNdUpdate", "ScatterNd")
def scatter_nd_update(p):
    y = find(p, "varRef", "data").clone()
    y[tuple(p.indices.long()[..., axis] for axis in range(p.indices.shape[-1]))] = p.updates
    return y


@reference("Scale")
def scale(p):
    def seen(factor):
        axis = p.axis % p.x.dim()
        return factor.reshape(factor.shape + (1,) * (p.x.dim() - axis - factor.dim()))
    return p.x * seen(p.scale) + (0 if p.bias is None else seen(p.bias))


@reference("MaxUnpool2dBackward", "MaxUnpool3dBackward")
def max_unpool_backward(p):
    lead = p.indices.dim() - len(p.outputSize)
    places = p.indices.long().flatten(lead)
    return torch.gather(p.gradOutput.flatten(lead), lead, places).reshape(p.indices.shape)


@reference("EmbeddingBag")
def embedding_bag(p):
    return {"output": F.embedding_bag(p.indices.long(), p.weight, p.offsets.long(), mode=("sum", "mean", "max")[p.mode],
                                      per_sample_weights=p.perSampleWeights, include_last_offset=p.includeLastOffset,
                                      padding_idx=p.paddingIdx if p.paddingIdx >= 0 else None)}


@reference("StridedSlice")
def strided_slice(p):
    if p.ellipsisMask or p.newAxisMask or any(step < 0 for step in p.strides):
        return None
    words = []
    for axis, (begin, end, step) in enumerate(zip(p.begin, p.end, p.strides)):
        if p.shrinkAxisMask >> axis & 1:
            words.append(begin)
        else:
            words.append(slice(None if p.beginMask >> axis & 1 else begin, None if p.endMask >> axis & 1 else end, step))
    return p.self[tuple(words)]


@reference("OneHot")
def one_hot(p):
    hot = F.one_hot(p.self.long().clamp(0, p.numClasses - 1), p.numClasses).bool()
    hot &= ((p.self >= 0) & (p.self < p.numClasses))[..., None]
    y = torch.where(hot, p.onValue.reshape(()), p.offValue.reshape(()))
    return y if p.axis in (-1, p.self.dim()) else y.movedim(-1, p.axis)


# ---- More of norms, losses and gates ----

def _sum_to(x, shape):
    """x, summed over what broadcasting repeated."""
    while x.dim() > len(shape):
        x = x.sum(0)
    for axis, size in enumerate(shape):
        if size == 1:
            x = x.sum(axis, keepdim=True)
    return x


def _masked(values, mask):
    """Of a mask of outputs, those that are asked for."""
    return {name: x for (name, x), wanted in zip(values.items(), mask) if wanted}


@reference("AddLayerNorm")
def add_layer_norm(p):
    x = p.x1 + p.x2 + (0 if p.biasOptional is None else p.biasOptional)
    axes = tuple(range(-p.gamma.dim(), 0))
    mean, rstd = _moments(x, axes, p.epsilon)
    return {"yOut": (x - mean) * rstd * p.gamma + p.beta, "meanOut": mean, "rstdOut": rstd,
            "xOut": x if p.additionalOutput else None}


@reference("AddLayerNormGrad")
def add_layer_norm_grad(p):
    x, axes = p.x1 + p.x2, tuple(range(-p.gamma.dim(), 0))
    normal = (x - p.mean) * p.rstd
    scaled = p.dy * p.gamma
    dx = p.rstd * (scaled - scaled.mean(axes, keepdim=True) - normal * (scaled * normal).mean(axes, keepdim=True))
    lead = tuple(range(x.dim() - p.gamma.dim()))
    return {"dxOut": dx + (0 if p.dsumOptional is None else p.dsumOptional), "dgammaOut": (p.dy * normal).sum(lead),
            "dbetaOut": p.dy.sum(lead)}


@reference("LayerNormBackward")
def layer_norm_backward(p):
    axes = tuple(range(-len(p.normalizedShape), 0))
    normal = (p.input - p.mean) * p.rstd
    scaled = p.gradOut * (1 if p.weightOptional is None else p.weightOptional)
    dx = p.rstd * (scaled - scaled.mean(axes, keepdim=True) - normal * (scaled * normal).mean(axes, keepdim=True))
    lead = tuple(range(p.input.dim() - len(axes)))
    found = {"gradInputOut": dx, "gradWeightOut": (p.gradOut * normal).sum(lead), "gradBiasOut": p.gradOut.sum(lead)}
    return _masked(found, p.outputMask)


@reference("RmsNormGrad")
def rms_norm_grad(p):
    axes = tuple(range(-p.gamma.dim(), 0))
    rstd = p.rstd.reshape(p.x.shape[:p.x.dim() - p.gamma.dim()] + (1,) * p.gamma.dim())
    scaled = p.dy * p.gamma
    dx = rstd * scaled - rstd ** 3 * p.x * (scaled * p.x).mean(axes, keepdim=True)
    return {"dxOut": dx, "dgammaOut": (p.dy * p.x * rstd).sum(tuple(range(p.x.dim() - p.gamma.dim())))}


@reference("AddRmsNormCast")
def add_rms_norm_cast(p):
    x = p.x1 + p.x2
    rstd = 1 / torch.sqrt((x ** 2).mean(tuple(range(-p.gamma.dim(), 0)), keepdim=True) + p.epsilon)
    y = x * rstd * p.gamma
    return {"y1Out": y, "y2Out": y, "rstdOut": rstd, "xOut": x}


@reference("DeepNorm")
def deep_norm(p):
    x = p.alpha * p.x + p.gx
    mean, rstd = _moments(x, tuple(range(-p.gamma.dim(), 0)), p.epsilon)
    return {"meanOut": mean, "rstdOut": rstd, "yOut": (x - mean) * rstd * p.gamma + p.beta}


@reference("AdaLayerNorm", "AdaLayerNormV2")
def ada_layer_norm(p):
    mean, rstd = _moments(p.x, (-1,), p.epsilon)
    y = (p.x - mean) * rstd
    y = y * (1 if p.weightOptional is None else p.weightOptional) + (0 if p.biasOptional is None else p.biasOptional)
    scale, shift = (x if x.dim() == p.x.dim() else x[:, None] for x in (p.scale, p.shift))
    return {"out": y * (1 + scale) + shift, "meanOutOptional": mean, "rstdOutOptional": rstd}


@reference("Modulate")
def modulate(p):
    scale, shift = (x if x is None or x.dim() == p.self.dim() else x[:, None] for x in (p.scaleOptional, p.shiftOptional))
    return p.self * (1 if scale is None else 1 + scale) + (0 if shift is None else shift)


@reference("GroupNormSwish")
def group_norm_swish(p):
    mean, rstd = _moments(p.x.reshape(p.x.shape[0], p.numGroups, -1), (-1,), p.eps)
    y = F.group_norm(p.x, p.numGroups, p.gamma, p.beta, p.eps)
    return {"yOut": y * torch.sigmoid(p.swishScale * y) if p.activateSwish else y, "meanOut": mean, "rstdOut": rstd}


@reference("GroupNormSwishGrad")
def group_norm_swish_grad(p):
    def forward(x, gamma, beta):
        rows = x.reshape(x.shape[0], p.numGroups, -1)
        mean = rows.mean(-1, keepdim=True)
        rstd = p.rstd.reshape(mean.shape)
        # the statistics are given, and the gradient runs through their formula
        own = 1 / torch.sqrt(((rows - mean) ** 2).mean(-1, keepdim=True) + 1 / rstd ** 2
                             - ((rows - mean) ** 2).mean(-1, keepdim=True).detach())
        shape = (1, -1) + (1,) * (x.dim() - 2)
        y = ((rows - mean) * own).reshape(x.shape) * gamma.reshape(shape) + beta.reshape(shape)
        return y * torch.sigmoid(p.swishScale * y)
    found = gradient(forward, [p.x, p.gamma, p.beta], p.dy)
    return _masked(dict(zip(("dxOut", "dgammaOut", "dbetaOut"), found)), [True, p.dgammaIsRequire, p.dbetaIsRequire])


def _channels(x, like):
    return x.reshape((1, -1) + (1,) * (like.dim() - 2))


REFERENCES.update({
    "BatchNormStats": lambda p: dict(zip(("mean", "invstd"), (x.reshape(-1) for x in _moments(
        p.input, (0,) + tuple(range(2, p.input.dim())), p.eps)))),
    "BatchNormElemt": lambda p: (p.input - _channels(p.mean, p.input)) * _channels(p.invstd * p.weight, p.input)
            + _channels(p.bias, p.input),
    "BatchNormReduce": lambda p: {"sum": p.x.sum((0,) + tuple(range(2, p.x.dim()))),
                                  "squareSum": (p.x ** 2).sum((0,) + tuple(range(2, p.x.dim())))},
})
REFERENCES["BatchNormElemtBackward"] = lambda p: (
    p.gradOut - _channels(p.sumDy / p.counter.sum(), p.input)
    - (p.input - _channels(p.mean, p.input)) * _channels(p.invstd ** 2 * p.sumDyXmu / p.counter.sum(), p.input)
) * _channels(p.invstd * p.weight, p.input)


@reference("BatchNormReduceBackward")
def batch_norm_reduce_backward(p):
    axes = (0,) + tuple(range(2, p.input.dim()))
    dy = p.gradOut.sum(axes)
    weighed = (p.gradOut * (p.input - _channels(p.mean, p.input))).sum(axes)
    return {"sumDy": dy if p.inputG else None, "sumDyXmu": weighed if p.inputG else None,
            "gradWeight": weighed * p.invstd if p.weightG else None, "gradBias": dy if p.biasG else None}


@reference("BatchNormBackward", "FastBatchNormBackward")
def batch_norm_backward(p):
    if not p.training:
        found = torch.ops.aten.native_batch_norm_backward(
            p.gradOut, p.input, p.weight, p.runningMean, p.runningVar, None, None, False, p.eps, [True] * 3)
    else:
        found = torch.ops.aten.native_batch_norm_backward(
            p.gradOut, p.input, p.weight, p.runningMean, p.runningVar, p.saveMean, p.saveInvstd, True, p.eps, [True] * 3)
    return _masked(dict(zip(("gradInput", "gradWeight", "gradBias"), found)), p.outputMask)


REFERENCES.update({
    "SeluBackward": lambda p: p.gradOutput * torch.where(
        p.result > 0, torch.full_like(p.result, 1.0507009873554805), p.result + 1.0507009873554805 * 1.6732632423543772),
    "FastGeluBackward": lambda p: gradient(lambda x: x * torch.sigmoid(1.702 * x), [p.self], p.gradOutput)[0],
    "EluBackward": lambda p: p.gradOutput * torch.where(
        p.selfOrResult > 0, torch.full_like(p.selfOrResult, p.scale),
        p.inputScale * (p.selfOrResult + p.scale * p.alpha) if p.isResult
        else p.inputScale * p.scale * p.alpha * torch.exp(p.selfOrResult * p.inputScale)),
    "GeluMul": lambda p: F.gelu(p.input.chunk(2, -1)[0], approximate=p.approximateOptional) * p.input.chunk(2, -1)[1],
    "SoftmaxCrossEntropyWithLogits": lambda p: {
        "loss": -(p.labels * torch.log_softmax(p.features, -1)).sum(-1),
        "backprop": torch.softmax(p.features, -1) - p.labels},
    "KlDivTargetBackward": lambda p: gradient(
        lambda t: F.kl_div(p.self, t, reduction=REDUCTIONS[p.reduction], log_target=p.logTarget), [p.target], p.gradOutput)[0],
    "NLLLossBackward": lambda p: gradient(
        lambda x: F.nll_loss(x, p.target.long(), p.weight, ignore_index=p.ignoreIndex, reduction=REDUCTIONS[p.reduction]),
        [p.self], p.gradOutput)[0],
    "NLLLoss2dBackward": lambda p: gradient(
        lambda x: F.nll_loss(x, p.target.long(), p.weight, ignore_index=p.ignoreIndex, reduction=REDUCTIONS[p.reduction]),
        [p.self], p.gradOutput)[0],
    "ReduceLogSum": lambda p: torch.log(p.data.sum(dims(p, "axes"), keepdim=p.keepDims)),
    "CumsumV2": lambda p: _running(p.self, p.dim, p.exclusive, p.reverse),
    "Range": lambda p: torch.arange(p.start, p.end + p.step / 2, p.step, dtype=torch.float64),
    "NonzeroV2": lambda p: torch.nonzero(p.self).T,
    "ForeachZeroInplace": lambda p: {"x": [torch.zeros_like(x) for x in p.x]},
    "GridSampler2DBackward": lambda p: _masked(dict(zip(("inputGrad", "gridGrad"), gradient(
        lambda x, g: F.grid_sample(x, g, MODES[p.interpolationMode], PADDINGS[p.paddingMode], p.alignCorners),
        [p.input, p.grid], p.gradOutput))), p.outputMask),
    "MaxPool2dWithIndicesBackward": lambda p: torch.ops.aten.max_pool2d_with_indices_backward(
        p.gradOutput, p.self, p.kernelSize, p.stride, p.padding, p.dilation, p.ceilMode, p.indices.long()),
    "MaxPool3dWithArgmaxBackward": lambda p: torch.ops.aten.max_pool3d_with_indices_backward(
        p.gradOutput, p.self, p.kernelSize, p.stride, p.padding, p.dilation, p.ceilMode, p.indices.long()),
    "AdaptiveMaxPool2dBackward": lambda p: torch.ops.aten.adaptive_max_pool2d_backward(
        p.gradOutput, p.self, p.indices.long()),
    "AdaptiveMaxPool3dBackward": lambda p: torch.ops.aten.adaptive_max_pool3d_backward(
        p.gradOutput, p.self, p.indices.long()),
    "EmbeddingDenseBackward": lambda p: torch.ops.aten.embedding_dense_backward(
        p.grad, p.indices.long(), int(p.numWeights),
        int(p.paddingIdx) if p.paddingIdx < 1 << 62 else -1, p.scaleGradByFreq),
    "InplacePut": lambda p: torch.put(p.selfRef, p.index.long(), p.source, p.accumulate),
    "IndexAddV2": lambda p: torch.index_add(p.self, p.dim, p.index.long(), p.source, alpha=p.alpha),
    "TriangularSolve": lambda p: {"xOut": torch.linalg.solve_triangular(
        p.A.transpose(-1, -2) if p.transpose else p.A, p.self, upper=p.upper != p.transpose, unitriangular=p.unitriangular)},
    "ConfusionTranspose": lambda p: p.x.permute(p.perm).reshape(p.shape) if p.transpose_first
            else p.x.reshape(p.shape).permute(p.perm),
    "ScaledMaskedSoftmax": lambda p: torch.softmax(torch.where(
        p.mask.bool(), torch.full_like(p.x, -10000.0), p.x * p.scale), -1),
    "RotaryPositionEmbedding": lambda p: None if p.mode > 1 else p.x * p.cos + p.sin * (
        torch.cat([-p.x.chunk(2, -1)[1], p.x.chunk(2, -1)[0]], -1) if p.mode == 0
        else torch.stack([-p.x[..., 1::2], p.x[..., ::2]], -1).flatten(-2)),
    "MoeComputeExpertTokens": lambda p: torch.searchsorted(
        p.sortedExperts, torch.arange(p.numExperts, dtype=p.sortedExperts.dtype), right=True),
})


def _running(x, dim, exclusive, reverse):
    y = x.flip(dim) if reverse else x
    total = y.cumsum(dim)
    total = total - y if exclusive else total
    return total.flip(dim) if reverse else total


@reference("GeGlu", "GeGluV3")
def ge_glu(p):
    first_half, second_half = p.self.chunk(2, p.dim)
    if getattr(p, "activateLeft", False):
        gated, value = first_half, second_half
    else:
        gated, value = second_half, first_half
    gelu = F.gelu(gated, approximate="tanh" if p.approximate else "none")
    return {"out": gelu * value, "outGelu": gelu}


@reference("GeGluBackward", "GeGluV3Backward")
def ge_glu_backward(p):
    def forward(x):
        first_half, second_half = x.chunk(2, p.dim)
        gated, value = (first_half, second_half) if getattr(p, "activateLeft", False) else (second_half, first_half)
        return F.gelu(gated, approximate="tanh" if p.approximate else "none") * value
    return gradient(forward, [p.self], p.gradOutput)[0]


@reference("SliceV2")
def slice_v2(p):
    words = [slice(None)] * p.self.dim()
    for axis, start, end, step in zip(p.axes, p.starts, p.ends, p.steps):
        words[axis] = slice(start, end, step)
    return p.self[tuple(words)]


@reference("ScatterReduce")
def scatter_reduce(p):
    index = p.index.long()
    if p.reduce == 0:
        return torch.scatter(p.self, p.dim, index, p.src)
    return torch.scatter_reduce(p.self, p.dim, index, p.src, ("sum", "prod", "amax", "amin", "mean")[p.reduce - 1],
                                include_self=p.includeSelf)


@reference("Unique")
def unique(p):
    return {"inverseOut": torch.unique(p.self, return_inverse=True)[1] if p.returnInverse else None}


@reference("Qr", "LinalgQr")
def qr(p):
    mode = getattr(p, "mode", 0 if getattr(p, "some", True) else 1)
    return dict(zip(("Q", "R"), torch.linalg.qr(p.self, ("reduced", "complete", "r")[mode])))


@reference("ApplyAdam")
def apply_adam(p):
    if p.useNesterov:
        return None
    words = {name: number(getattr(p, name)) for name in ("beta1Power", "beta2Power", "lr", "beta1", "beta2", "epsilon")}
    m = p.m + (p.grad - p.m) * (1 - words["beta1"])
    v = p.v + (p.grad ** 2 - p.v) * (1 - words["beta2"])
    rate = words["lr"] * (1 - words["beta2Power"]) ** 0.5 / (1 - words["beta1Power"])
    return {"varRef": p.varRef - rate * m / (v ** 0.5 + words["epsilon"]), "m": m, "v": v}


@reference("ApplyAdamW")
def apply_adam_w(p):
    if p.amsgrad:
        return None
    words = {name: number(getattr(p, name)) for name in
             ("beta1Power", "beta2Power", "lr", "weightDecay", "beta1", "beta2", "eps")}
    grad = -p.grad if p.maximize else p.grad
    m = p.mRef * words["beta1"] + grad * (1 - words["beta1"])
    v = p.vRef * words["beta2"] + grad ** 2 * (1 - words["beta2"])
    x = p.varRef * (1 - words["lr"] * words["weightDecay"])
    powers = words["beta1Power"] * words["beta1"], words["beta2Power"] * words["beta2"]
    bottom = (v / (1 - powers[1])) ** 0.5 + words["eps"]
    return {"varRef": x - words["lr"] * m / (1 - powers[0]) / bottom, "mRef": m, "vRef": v}


@reference("MoeGatingTopKSoftmax", "MoeGatingTopKSoftmaxV2")
def moe_gating(p):
    if getattr(p, "renorm", 0) or p.finishedOptional is not None:
        return None
    values, order = torch.topk(torch.softmax(p.x, -1), p.k, -1)
    return {"yOut": values, "expertIdxOut": order}


@reference("FakeQuantPerTensorAffineCachemask")
def fake_quant(p):
    scale, zero = number(p.scale), number(p.zeroPoint)
    q = torch.round(p.self / scale) + zero
    inside = (q >= p.quantMin) & (q <= p.quantMax)
    return {"out": (q.clamp(p.quantMin, p.quantMax) - zero) * scale, "mask": inside}


@reference("AscendAntiQuant")
def ascend_anti_quant(p):
    if p.x.dtype != torch.int8:
        return None
    scale = p.scale ** 2 if p.sqrtMode else p.scale
    return (p.x.double() + (0 if p.offset is None else p.offset)) * scale


@reference("DynamicQuant")
def dynamic_quant(p):
    x = p.x * (1 if p.smoothScalesOptional is None else p.smoothScalesOptional)
    return {"scaleOut": x.abs().amax(-1) / 127}


@reference("ClippedSwiglu")
def clipped_swiglu(p):
    if p.groupIndexOptional is not None or not p.interleaved:
        return None
    x = p.x.reshape(*p.x.shape[:p.dim % p.x.dim()], -1)
    gate, linear = x[..., ::2].clamp(max=p.limit), x[..., 1::2].clamp(-p.limit, p.limit)
    return gate * torch.sigmoid(p.alpha * gate) * (linear + p.bias)


# ---- Windows ----

def _batched(x, rank):
    return x if x.dim() == rank + 2 else x[None]


@reference("Convolution")
def convolution(p):
    rank = p.weight.dim() - 2
    padding = p.padding
    if len(padding) != rank:
        return None
    return torch.convolution(_batched(p.input, rank), p.weight, p.bias, p.stride, padding, p.dilation, p.transposed,
                             p.outputPadding if p.outputPadding else [0] * rank, p.groups)


@reference("ConvolutionBackward")
def convolution_backward(p):
    rank = p.weight.dim() - 2
    sizes = p.biasSizes or [p.weight.shape[1] * p.groups if p.transposed else p.weight.shape[0]]
    found = torch.ops.aten.convolution_backward(
        p.gradOutput, p.input, p.weight, sizes, p.stride, p.padding, p.dilation, p.transposed,
        p.outputPadding or [0] * rank, p.groups, [bool(b) for b in p.outputMask])
    return dict(zip(("gradInput", "gradWeight", "gradBias"), found))


REFERENCES.update({
    "ConvDepthwise2d": lambda p: F.conv2d(p.self, p.weight, p.bias, p.stride, p.padding, p.dilation, p.self.shape[1]),
    "ConvTbc": lambda p: torch.conv_tbc(p.self, p.weight, p.bias, p.pad),
    "AvgPool2d": lambda p: F.avg_pool2d(p.self, p.kernelSize, p.strides or None, p.paddings, p.ceilMode,
                                        p.countIncludePad, p.divisorOverride or None),
    "AvgPool3d": lambda p: F.avg_pool3d(p.self, p.kernelSize, p.stride or None, p.padding, p.ceilMode,
                                        p.countIncludePad, p.divisorOverride or None),
    "AvgPool2dBackward": lambda p: gradient(lambda x: F.avg_pool2d(
        x, p.kernelSize, p.stride or None, p.padding, p.ceilMode, p.countIncludePad, p.divisorOverride or None),
        [p.self], p.gradOutput)[0],
    "AvgPool3dBackward": lambda p: gradient(lambda x: F.avg_pool3d(
        x, p.kernelSize, p.stride or None, p.padding, p.ceilMode, p.countIncludePad, p.divisorOverride or None),
        [p.self], p.gradOutput)[0],
    "AdaptiveAvgPool2d": lambda p: F.adaptive_avg_pool2d(p.self, p.outputSize),
    "AdaptiveAvgPool3d": lambda p: F.adaptive_avg_pool3d(p.self, p.outputSize),
    "AdaptiveAvgPool2dBackward": lambda p: gradient(
        lambda x: F.adaptive_avg_pool2d(x, p.gradOutput.shape[-2:]), [p.self], p.gradOutput)[0],
    "AdaptiveAvgPool3dBackward": lambda p: gradient(
        lambda x: F.adaptive_avg_pool3d(x, p.gradOutput.shape[-3:]), [p.self], p.gradOutput)[0],
    "MaxPool2dWithIndices": lambda p: dict(zip(("out", "indices"), F.max_pool2d_with_indices(
        p.self, p.kernelSize, p.stride or None, p.padding, p.dilation, p.ceilMode))),
    "MaxPool3dWithArgmax": lambda p: dict(zip(("out", "indices"), F.max_pool3d_with_indices(
        p.self, p.kernelSize, p.stride or None, p.padding, p.dilation, p.ceilMode))),
    "GlobalAveragePool": lambda p: p.self.mean(tuple(range(2, p.self.dim())), keepdim=True),
    "GlobalMaxPool": lambda p: p.self.amax(tuple(range(2, p.self.dim())), keepdim=True),
    "GridSampler2D": lambda p: F.grid_sample(p.input, p.grid, MODES[p.interpolationMode], PADDINGS[p.paddingMode],
                                             p.alignCorners),
    "GridSampler3D": lambda p: F.grid_sample(p.input, p.grid, MODES[p.interpolationMode], PADDINGS[p.paddingMode],
                                             p.alignCorners),
})


def _scales(p):
    return [value if value > 0 else None for name, value in vars(p).items() if name.lower().startswith("scale")]


def _upsample(name, aligned):
    function = getattr(torch.ops.aten, name)
    def forward(p):
        words = [p.alignCorners] if aligned else []
        return function(first(p), p.outputSize, *words, *_scales(p))
    return forward


def _upsample_back(name, aligned):
    function = getattr(torch.ops.aten, name + "_backward")
    def backward(p):
        words = [p.alignCorners] if aligned else []
        return function(first(p), p.outputSize, p.inputSize, *words, *_scales(p))
    return backward


for _word, _name, _aligned in (
        ("UpsampleLinear1d", "upsample_linear1d", True), ("UpsampleBilinear2d", "upsample_bilinear2d", True),
        ("UpsampleTrilinear3d", "upsample_trilinear3d", True), ("UpsampleBicubic2d", "upsample_bicubic2d", True),
        ("UpsampleNearest1d", "upsample_nearest1d", False), ("UpsampleNearest2d", "upsample_nearest2d", False),
        ("UpsampleNearest3d", "upsample_nearest3d", False), ("UpsampleNearest1dV2", "upsample_nearest1d", False),
        ("UpsampleNearest2dV2", "upsample_nearest2d", False),
        ("UpsampleNearestExact1d", "_upsample_nearest_exact1d", False),
        ("UpsampleNearestExact2d", "_upsample_nearest_exact2d", False),
        ("UpsampleNearestExact3d", "_upsample_nearest_exact3d", False),
        ("UpsampleBilinear2dAA", "_upsample_bilinear2d_aa", True), ("UpsampleBicubic2dAA", "_upsample_bicubic2d_aa", True)):
    REFERENCES[_word] = _upsample(_name, _aligned)
    REFERENCES[_word + "Backward"] = _upsample_back(_name, _aligned)
REFERENCES["UpsampleBicubic2dAAGrad"] = REFERENCES.pop("UpsampleBicubic2dAABackward")
REFERENCES["UpsampleBilinear2dBackwardV2"] = REFERENCES["UpsampleBilinear2dBackward"]


def find_reference(name):
    """The reference of a function; one in place computes what the other gives. None: there is none."""
    if name in REFERENCES:
        return REFERENCES[name]
    if name.startswith("Inplace") and name[7:] in REFERENCES:
        def in_place(p):
            p.self = first(p)
            return REFERENCES[name[7:]](p)
        return in_place
    return None
