"""Models as text of proto/ge_ir.proto, one of the forms that npumesh loads; no other package is needed.

    graph = AirText("add")
    x = graph.data("x", "float32", (2, 2))
    graph.output(graph.op("Add", {"x1": x, "x2": x}, "float32", (2, 2)))
    world.load(graph.text())
"""

# Names of element types in files.
PROTO_NAMES = {
    "float32": "DT_FLOAT", "float64": "DT_DOUBLE", "bfloat16": "DT_BF16",
    **{name: "DT_" + name.upper() for name in (
        "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool",
        "complex32", "complex64", "complex128", "int4", "hifloat8", "float8_e5m2", "float8_e4m3fn",
        "float8_e8m0", "float6_e3m2", "float6_e2m3", "float4_e2m1", "float4_e1m2")},
}


def descriptor(dtype, shape, field="output_desc"):
    dims = " ".join(f"dim: {dim}" for dim in shape)
    return f'{field} {{ dtype: {PROTO_NAMES[dtype]} layout: "ND" shape {{ {dims} }} }}'


def attribute(name, value):
    """int, bool, str, bytes or list of int; ("dt", number) for a data type."""
    if isinstance(value, tuple):
        text = f"{value[0]}: {value[1]}"
    elif isinstance(value, bool):
        text = f"b: {str(value).lower()}"
    elif isinstance(value, int):
        text = f"i: {value}"
    elif isinstance(value, str):
        text = f's: "{value}"'
    else:
        items = " ".join(f"i: {item}" for item in value)
        text = f"list {{ {items} val_type: VT_LIST_INT }}"
    return f'attr {{ key: "{name}" value {{ {text} }} }}'


def escaped(data):
    return "".join(f"\\{byte:03o}" for byte in data)


class Value:
    def __init__(self, node, port, dtype, shape):
        self.node, self.port, self.dtype, self.shape = node, port, dtype, shape

    def __str__(self):
        return f"{self.node}:{self.port}"


class AirText:
    def __init__(self, name="model"):
        self.name = name
        self.nodes = []
        self.inputs = 0
        self.outputs = []

    def _node(self, name, kind, inputs, attrs, outputs):
        parts = [f'name: "{name}" type: "{kind}"']
        parts += [f'input: "{value}"' for value in inputs]
        parts += [descriptor(value.dtype, value.shape, "input_desc") for value in inputs]
        parts += [attribute(key, value) for key, value in attrs.items()]
        parts += outputs
        self.nodes.append("op { " + " ".join(parts) + " }")

    def data(self, name, dtype, shape, kind="Data"):
        self._node(name, kind, [], {"index": self.inputs}, [descriptor(dtype, shape)])
        self.inputs += 1
        return Value(name, 0, dtype, shape)

    def const(self, name, dtype, shape, data):
        value = (f'attr {{ key: "value" value {{ t {{ {descriptor(dtype, shape, "desc")} '
                 f'data: "{escaped(data)}" }} }} }}')
        self._node(name, "Const", [], {}, [value, descriptor(dtype, shape)])
        return Value(name, 0, dtype, shape)

    def op(self, kind, inputs, dtype, shape, attrs=None, name=None):
        """An operator with required inputs, in the order of the vendor's interface; one output."""
        name = name or f"{kind}_{len(self.nodes)}"
        self._node(name, kind, list(inputs.values()), attrs or {}, [descriptor(dtype, shape)])
        return Value(name, 0, dtype, shape)

    def output(self, *values):
        self.outputs += values
        return self

    def text(self):
        sink = AirText()
        sink._node("NetOutput", "NetOutput", self.outputs, {}, [])
        body = "\n".join("  " + node for node in self.nodes + sink.nodes)
        head = f'name: "{self.name}"\nversion: 1\n'
        return f'{head}graph {{\n  name: "{self.name}"\n{body}\n}}\n'.encode()
