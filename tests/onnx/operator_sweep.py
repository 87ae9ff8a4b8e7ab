#!/usr/bin/env python3
"""Every ONNX operator of the import, with random types, shapes, attributes and operator sets, against ONNX Runtime and
the reference of onnx.

    operator_sweep.py ONNX_CASES [--first N] [--count N] [--only OPERATOR] [--back] [--spoil] [--show N]

A seed gives a model of one node (sweep_operators.py). Its operands are inputs or initialisers; inputs have their shape,
open dimensions or no shape at all. ONNX_CASES --serve runs the model; what comes out must be what ONNX Runtime gives
or, where that lacks the operator or is known to differ (DIFFERENCES), what the reference gives. With --back the model
goes through the import and `graph --onnx`, must pass onnx.checker, and ONNX Runtime must give the same for it.

With --spoil each model is also spoilt: an attribute of another kind or a strange one, an operand too many or too few
or of another type, a name that is made twice. What onnx.checker refuses then, the import has to refuse as well, with
the name of the node.

An error of the import is one of REFUSALS, or a failure; so is every crash. Exit code 77 (skipped) without onnxruntime.
"""

import argparse
import collections
import os
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from in_venv import run_in_venv

try:
    import ml_dtypes
    import numpy
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError as missing:
    run_in_venv()
    print(f"skipped: {missing}; launch/install_deps --torch installs what is needed")
    sys.exit(77)

from sweep_operators import TABLE, Dice
import sweep_bodies  # adds rows

OPERATOR_SETS = range(7, 24)
FORMATS = {7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10,
           22: 10, 23: 11}
BOUNDS = {"float64": 1e-11, "float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2}  # of one rounding, and some
ELEMENTS = (1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13)  # types of operands that are drawn for what is spoilt
STEP = {"float16": 1.2e-7}  # between the smallest numbers, twice

# What the import refuses: (operator, part of the message, why).
REFUSALS = [
    ("", "is not known (before the model runs|when it is imported|when the model is imported)", "needs a shape or a value"),
    ("", "is open; this operator needs it", "needs a size"),
    ("Pad", "pads of mode wrap have to be known", "needs values"),
    ("Hardmax", "has no elements along axis", "of nothing there is no place"),
    ("GridSample", "expected 4 dimensions", "needs a shape to know volumes"),
    ("", "every dimension must be known", "needs a size"),
]
def of(*dtypes):
    return lambda call, opset: call.inputs[0].dtype.name in dtypes


def before(version):
    return lambda call, opset: opset < version


def whole(call, opset):
    return call.inputs[0].dtype.kind in "iu"


def empty(call, opset):
    return any(x is not None and x.size == 0 for x in call.inputs)


def always(call, opset):
    return True


# Where an oracle is not what the text of ONNX says, or rounds otherwise: (operators, oracle, when, why).
DIFFERENCES = [
    ("Adam", "reference", of("float64"), "has steps in float32"),
    ("Erf Gelu", "reference", of("float64"), "rounds to float32"),
    ("GlobalMaxPool", "reference", always, "folds other axes than those of the image"),
    ("GridSample", "reference", always, "computes in float32; has another border of bicubic"),
    ("LRN", "reference", always, "sums over other channels; computes in float32"),
    ("BatchNormalization", "reference", before(14), "takes the statistics of the batch"),
    ("Softmax LogSoftmax Hardmax", "reference", before(13), "knows the meaning of version 13 alone"),
    ("LpNormalization", "reference", always, "takes no magnitudes for p = 1; knows no zero norm"),
    ("MaxPool LpPool", "reference", always, "counts windows in the padding; has other pads for SAME and bytes"),
    ("ReduceSumSquare", "reference", of("int32"), "gives int64"),
    ("Resize", "reference", lambda call, _: call.attributes.get("coordinate_transformation_mode") in
     ("align_corners", "pytorch_half_pixel"), "counts by a size with a fraction, where the text has a length"),
    ("Resize", "reference", lambda call, _: call.attributes.get("mode") in (None, "nearest"),
     "rounds the middle between two places otherwise"),
    ("Resize", "runtime", lambda call, _: call.attributes.get("mode") in (None, "nearest") and
     (len(call.inputs) > 3 or call.attributes.get("coordinate_transformation_mode") == "half_pixel_symmetric"),
     "computes places in float32: one that is whole may be the one before"),
    ("Resize", "runtime", lambda call, _: min(call.attributes.get("axes", [0])) < 0 and
     call.attributes.get("keep_aspect_ratio_policy"), "changes nothing along negative axes"),
    ("LpPool", "runtime", lambda call, _: call.attributes.get("dilations"), "rounds a length below 0 towards it"),
    ("LpPool AveragePool", "runtime", lambda call, _: call.attributes.get("auto_pad", "").startswith("SAME"),
     "begins behind the first place where windows are wider apart than they are long"),
    ("Loop", "reference", always, "joins the rows of the turns instead of stacking them"),
    ("SequenceConstruct SequenceEmpty SequenceInsert SequenceErase SequenceAt SequenceLength ConcatFromSequence",
     "reference", lambda call, _: any(node.op_type == "SequenceInsert" and len(node.input) > 2 for node in call.nodes),
     "inserts at the front what is to stand at the end"),
    ("Optional OptionalHasElement OptionalGetElement", "reference", always, "makes the element of an optional a list"),
    ("ConvTranspose", "reference", always, "has other numbers with groups, dilations and SAME"),
    ("ReduceMean", "reference", lambda call, opset: whole(call, opset) and empty(call, opset),
     "of nothing there is no integer mean"),
    ("Sign", "runtime", of("float16"), "gives 0 for NaN"),
    ("DFT", "runtime", lambda call, _: call.attributes.get("inverse") and call.attributes.get("onesided"),
     "takes imaginary parts of the first and the middle bin for real"),
    ("Unsqueeze", "reference", before(13), "takes negative axes one after the other"),
    ("Slice", "reference", lambda call, opset: opset >= 10, "begins like numpy, where the text limits the begins"),
    ("RoiAlign", "reference", before(16), "moves regions by half a pixel, which came with version 16"),
    ("Unique", "reference", lambda call, _: call.attributes.get("sorted") == 0, "sorts along an axis"),
    ("DynamicQuantizeLinear", "reference", lambda call, _: not call.inputs[0].any(), "of zeros the text says nothing"),
    ("LayerNormalization", "reference", of("float16", "bfloat16"), "gives mean and deviation in float16, not by stash_type"),
    ("HannWindow HammingWindow BlackmanWindow", "runtime",
     always, "computes in float32"),
    ("DFT Gelu", "runtime", of("float64"), "computes in float32"),
    ("Sigmoid Gelu", "runtime", of("float32"), "is an approximation; loses digits below -3"),
    ("Gelu", "reference", always, "loses digits below -3"),
    ("Clip", "runtime", always, "cuts infinities where no limit is given, as the text may be read"),
    ("ReduceProd ReduceSumSquare ReduceL2", "reference", of("float16"), "overflows in float16"),
    ("ConvTranspose", "runtime", lambda call, _: call.attributes.get("auto_pad", "").startswith("SAME"),
     "gives less than stride * size for kernels below the stride"),
    ("Shape", "reference", lambda call, _: call.attributes.get("end", 0) < 0, "takes an end before the first for none"),
    ("MeanVarianceNormalization", "runtime", always, "takes the root of a rounding error below 0"),
    ("ReduceMean ReduceMax ReduceMin", "runtime", empty, "of nothing the text says little"),
    ("ReduceLogSumExp", "runtime", whole, "adds up powers without their fractions"),
    ("GroupNormalization LayerNormalization", "runtime", of("float64"), "rounds to float32 by stash_type"),
    ("GroupNormalization LayerNormalization", "reference", of("float64"), "rounds to float32 by stash_type"),
    ("GroupNormalization InstanceNormalization", "reference", of("float16", "bfloat16"), "computes in 16 bits"),
]


def explained(model, oracle):
    return any(model.call.op in operators.split() and oracle == who and when(model.call, model.opset)
               for operators, who, when, _ in DIFFERENCES)


class Server:
    """onnx_cases --serve: one process for many models."""

    def __init__(self, program):
        self.program, self.process = program, None

    def ask(self, *parts):
        """What was asked for, or None and the error, or raises EOFError where the process ended."""
        if self.process is None:
            self.process = subprocess.Popen([self.program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE)
        request = struct.pack("=I", len(parts)) + b"".join(struct.pack("=I", len(p)) + p for p in parts)
        try:
            self.process.stdin.write(request)
            self.process.stdin.flush()
            answer = [self._read(self._number()) for _ in range(self._number())]
        except (EOFError, BrokenPipeError) as ended:
            self.process.kill()
            code, self.process = self.process.wait(), None
            raise EOFError(f"ended with {code}") from ended
        return (answer[1:], None) if answer[0] == b"ok" else (None, answer[1].decode(errors="replace"))

    def _number(self):
        return struct.unpack("=I", self._read(4))[0]

    def _read(self, size):
        data = self.process.stdout.read(size) if size else b""
        if len(data) != size:
            raise EOFError
        return data

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


class Model:
    """The call of a seed as a model, and the arrays of its inputs."""

    def __init__(self, seed, only):
        self.random = random.Random(seed)
        rows = [row for row in TABLE if only in (None, row[0])]
        name, since, until, draw = self.random.choice(rows)
        self.opset = self.random.choice([v for v in OPERATOR_SETS if since <= v <= until])
        self.call = draw(Dice(self.random, self.opset), name)
        if self.random.random() < 0.4:
            self._take_bfloat16()
        self.given, initialisers, infos, names = {}, [], [], []
        known = self.random.random() < 0.3  # everything
        for number, array in enumerate(self.call.inputs):
            if array is None:
                names.append("")
                continue
            names.append(f"x{number}")
            fixed = number in self.call.fixed or (number > 0 and self.random.random() < 0.25)
            if fixed:
                initialisers.append(numpy_helper.from_array(numpy.ascontiguousarray(array).reshape(array.shape), names[-1]))
            if not fixed or self.opset < 9:
                infos.append(self._info(names[-1], array, known))
            if not fixed:
                self.given[names[-1]] = numpy.ascontiguousarray(array).reshape(array.shape)
        names = names[:self.call.operands]
        while names and not names[-1]:
            names.pop()
        self.outputs = [f"y{i}" for i in range(self.call.outputs)]
        nodes = self.call.nodes or [helper.make_node(name, names, self.outputs, name="node",
                                                     domain=self.call.domain, **self._attributes())]
        graph = helper.make_graph(nodes, "sweep", infos, [onnx.ValueInfoProto(name=y) for y in self.outputs], initialisers)
        domains = [("", self.opset)] + ([(self.call.domain, 1)] if self.call.domain else [])
        self.proto = helper.make_model(graph, opset_imports=[helper.make_opsetid(*domain) for domain in domains])
        self.proto.ir_version = FORMATS[self.opset]

    def _take_bfloat16(self):
        """Halves become bfloat16 where the operator takes that."""
        call = self.call
        schema = onnx.defs.get_schema(call.op, self.opset, call.domain)
        for number, array in enumerate(call.inputs if call.nodes is None else []):
            port = schema.inputs[min(number, len(schema.inputs) - 1)]
            if array is not None and array.dtype == numpy.float16 and "tensor(bfloat16)" in port.types:
                call.inputs[number] = array.astype(ml_dtypes.bfloat16)

    def _attributes(self):
        convert = lambda v: numpy_helper.from_array(v) if isinstance(v, numpy.ndarray) else v
        return {name: convert(value) for name, value in self.call.attributes.items()}

    def _info(self, name, array, known):
        shape = list(array.shape)
        if not known:
            shape = [None if self.random.random() < 0.3 else size for size in shape]
            if self.random.random() < 0.07:
                shape = None
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)

    def describe(self):
        operands = [None if a is None else f"{a.dtype}{list(a.shape)}{'' if f'x{i}' in self.given else ' const'}"
                    for i, a in enumerate(self.call.inputs)]
        return f"{self.call.op}-{self.opset}({', '.join(map(str, operands))}) {self.call.attributes}"


def is_newer(proto, why):
    """Whether the type that the checker does not take came with a newer version of the operator, as the import has it
    in all versions, or is no fault of the node itself."""
    seen = re.search(r"\(op_type:(\w+)[^)]*\): (\S+) typestr: \S+, has unsupported type: (\S+)", why)
    if not seen:  # in the body of a function, which may know float32 alone
        return f"(op_type:{proto.graph.node[0].op_type}" not in why.rpartition("[ShapeInferenceError]")[2]
    domain = proto.graph.node[0].domain
    newest = onnx.defs.get_schema(seen[1], 1 if domain else max(OPERATOR_SETS), domain)
    return any(seen[3] in port.types for port in newest.inputs if port.name == seen[2])


def spoil(model, rng, outputs):
    """A copy with one thing wrong, and what it is. The outputs of the model tell their types."""
    proto = onnx.ModelProto.FromString(model.SerializeToString())
    graph, node = proto.graph, proto.graph.node[0]
    for info, array in zip(graph.output, outputs):
        dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
        info.CopyFrom(helper.make_tensor_value_info(info.name, dtype, [None] * array.ndim))
    kind = rng.choice(["kind", "strange", "more", "fewer", "type", "twice"])
    if kind == "kind" and node.attribute:
        attribute = rng.choice(node.attribute)
        other = helper.make_attribute(attribute.name, rng.choice([1.5, "word", [1, 2], [0.5]]))
        if other.type == attribute.type:
            other = helper.make_attribute(attribute.name, 7)
        attribute.CopyFrom(other)
    elif kind == "more":
        node.input.extend([node.input[0]] * 9 if node.input else [""] * 9)
    elif kind == "fewer" and node.input:
        del node.input[rng.randrange(len(node.input)):]
    elif kind == "type" and graph.input:
        tensor = rng.choice(graph.input).type.tensor_type
        tensor.elem_type = rng.choice([t for t in ELEMENTS if t != tensor.elem_type])
    elif kind == "twice":
        graph.node.add().CopyFrom(node)
    else:
        kind = "strange"
        node.attribute.append(helper.make_attribute("strange", 1))
    return proto, kind


def by_runtime(model, given):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, given)


def by_reference(model, given):
    with numpy.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, given)


def attempt(function, *operands):
    """The arrays, or None and why there are none."""
    try:
        return [numpy.asarray(array) for array in function(*operands)], None
    except Exception as why:  # whatever an oracle raises, it has no answer
        return None, f"{type(why).__name__}: {why}"


def difference(call, seen, right):
    """What differs; empty: nothing."""
    for number, (a, b) in enumerate(zip(seen, right)):
        where = f"y{number}: "
        if a.dtype != b.dtype:
            return where + f"{a.dtype} for {b.dtype}"
        if a.shape != b.shape:
            return where + f"{list(a.shape)} for {list(b.shape)}"
        if a.dtype == bool or a.dtype.kind in "iu":
            far = a != b if a.dtype == bool or not call.steps else abs(a.astype(object) - b.astype(object)) > call.steps
        else:
            x, y = a.astype(numpy.float64), b.astype(numpy.float64)
            finite = y[numpy.isfinite(y)]
            bound = BOUNDS[a.dtype.name] * (min(call.loose, 4) if a.dtype.itemsize == 2 else call.loose)
            most = abs(finite).max() if finite.size else 0
            with numpy.errstate(all="ignore"):
                near = bound * (abs(y) + 0.1 * most + 1e-6) + STEP.get(a.dtype.name, 0)
                far = ~((abs(x - y) <= near) | (x == y) | (numpy.isnan(x) & numpy.isnan(y)))
        if numpy.any(far):
            place = tuple(int(i) for i in numpy.argwhere(far)[0])
            return where + f"{a[place]} for {b[place]} at {list(place)}"
    return ""


class Sweep:
    def __init__(self, server, back, spoils):
        self.server, self.back, self.spoils = server, back, spoils
        self.counts = collections.Counter()
        self.refused = collections.Counter()
        self.failures = []

    def fail(self, seed, model, kind, text):
        self.counts[kind] += 1
        self.failures.append((kind, model.call.op, f"seed {seed}: {model.describe()}: {kind}: {text}"))

    def check(self, seed, only):
        model = Model(seed, only)
        tensors = [numpy_helper.from_array(array).SerializeToString() for array in model.given.values()]
        try:
            answer, error = self.server.ask(b"run", model.proto.SerializeToString(), *tensors)
        except EOFError as ended:
            return self.fail(seed, model, "crash", str(ended))
        runtime, why = attempt(by_runtime, model.proto, model.given)
        reference, why_not = attempt(by_reference, model.proto, model.given)
        if reference and model.call.domain:  # types of steps change in the reference's own formulas
            reference = [array.astype(model.call.inputs[0].dtype) for array in reference]
        self.counts["models"] += 1
        if runtime is None and reference is None:
            self.counts["without oracle"] += 1
            return None
        shaped = all(info.type.tensor_type.HasField("shape") for info in model.proto.graph.input)
        if self.spoils and shaped:  # onnx.checker wants shapes
            self.check_spoilt(seed, model, runtime or reference)
        if answer is None:
            if any(op in ("", model.call.op) and re.search(part, error) for op, part, _ in REFUSALS):
                self.counts["refused"] += 1
                self.refused[model.call.op, re.sub(r'.*?: |\d+', "", error)] += 1
                return None
            return self.fail(seed, model, "refusal", error)
        seen = [numpy_helper.to_array(onnx.TensorProto.FromString(part)) for part in answer]
        by = {"runtime": runtime, "reference": reference}
        wrong = {name: difference(model.call, seen, right) for name, right in by.items() if right is not None}
        differs = [name for name, text in wrong.items() if text and not explained(model, name)]
        for name, text in wrong.items():
            if text and name not in differs:
                self.counts[f"listed difference of the {name}"] += 1
        if not differs:
            self.counts["same as " + " and ".join(n for n, text in wrong.items() if not text)] += 1
        elif len(differs) < len(wrong):
            self.fail(seed, model, f"other than the {differs[0]} alone", wrong[differs[0]])
        else:
            self.fail(seed, model, "difference", ", ".join(f"{name}: {text}" for name, text in wrong.items()))
        if self.back and runtime is not None and shaped:
            self.check_back(seed, model, seen)
        return None

    def check_spoilt(self, seed, model, outputs):
        proto, kind = spoil(model.proto, model.random, outputs)
        try:
            onnx.checker.check_model(proto, full_check=True)
            self.counts["spoilt, but valid"] += 1
            return None
        except Exception as why:
            invalid = " ".join(str(why).split())
        if kind == "type" and is_newer(proto, invalid):
            self.counts["spoilt, but valid"] += 1
            return None
        # Types of outputs, which the import does not ask about; axes of int32, which the checker cannot read.
        if "existing" in invalid or "ParseData type mismatch" in invalid:
            self.counts["spoilt, but valid"] += 1
            return None
        try:
            answer, error = self.server.ask(b"import", proto.SerializeToString())
        except EOFError as ended:
            return self.fail(seed, model, f"crash ({kind})", str(ended))
        if answer is not None:
            return self.fail(seed, model, f"not refused ({kind})", invalid)
        if "\n" in error or not re.search('node "node|node that makes "', error):
            return self.fail(seed, model, f"refused without a name ({kind})", error)
        self.counts["spoilt and refused"] += 1
        return None

    def check_back(self, seed, model, seen):
        answer, error = self.server.ask(b"back", model.proto.SerializeToString())
        if answer is None:
            self.counts["not written back"] += 1
            return
        self.counts["written back"] += 1
        written = onnx.ModelProto.FromString(answer[0])
        try:
            onnx.checker.check_model(written, full_check=True)
        except Exception as why:
            if any(not info.type.tensor_type.HasField("shape") for info in written.graph.output):
                self.counts["back without a rank"] += 1  # which onnx.checker wants
                return None
            return self.fail(seed, model, "invalid back", str(why))
        right, why = attempt(by_runtime, written, model.given)
        if right is None:
            self.counts["back without oracle"] += 1
            return
        text = difference(model.call, seen, right)
        if text and not explained(model, "runtime"):
            self.fail(seed, model, "other back", text)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("onnx_cases")
    words.add_argument("--first", type=int, default=0)
    words.add_argument("--count", type=int, default=400)
    words.add_argument("--only")
    words.add_argument("--back", action="store_true")
    words.add_argument("--spoil", action="store_true")
    words.add_argument("--refusals", action="store_true", help="list what was refused as REFUSALS allow")
    words.add_argument("--show", type=int, default=3, help="of each kind and operator")
    given = words.parse_args()
    server = Server(given.onnx_cases)
    sweep = Sweep(server, given.back, given.spoil)
    for seed in range(given.first, given.first + given.count):
        sweep.check(seed, given.only)
    server.close()
    shown = collections.Counter()
    for kind, op, text in sorted(sweep.failures):
        shown[kind, op] += 1
        if shown[kind, op] <= given.show:
            print(text)
    for (kind, op), count in sorted(shown.items()):
        if count > given.show:
            print(f"{count} times {kind}: {op}")
    for (op, text), count in sorted(sweep.refused.items()) if given.refusals else ():
        print(f"refused {count} times: {op}: {text}")
    print(", ".join(f"{count} {name}" for name, count in sorted(sweep.counts.items())))
    return 1 if sweep.failures else 0


if __name__ == "__main__":
    sys.exit(main())
