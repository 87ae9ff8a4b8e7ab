#include "python/torchair_native/graph_type.h"

#include <limits>

#include "python/torchair_native/graph.h"

namespace npumesh::torchair {
namespace {

struct GraphObject {
  PyObject_HEAD Graph* graph;  // null before __init__
};

// Protobuf's own limit for a message.
constexpr Py_ssize_t kMostBytes = std::numeric_limits<int32_t>::max();

Graph* GraphOf(PyObject* self) {
  Graph* const graph = reinterpret_cast<GraphObject*>(self)->graph;
  if (graph == nullptr) Fail("TorchNpuGraphBase.__init__ was not called");
  return graph;
}

int Init(PyObject* self, PyObject* args, PyObject*) {
  const char* name = nullptr;
  if (PyArg_ParseTuple(args, "s", &name) == 0) return -1;
  auto* const object = reinterpret_cast<GraphObject*>(self);
  if (!PrepareTorch()) return -1;
  delete object->graph;
  object->graph = new Graph(name);
  return 0;
}

void Dealloc(PyObject* self) {
  delete reinterpret_cast<GraphObject*>(self)->graph;
  PyTypeObject* const type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

PyObject* Load(PyObject* self, PyObject* args) {
  Graph* const graph = GraphOf(self);
  PyObject *bytes = nullptr, *options = nullptr, *placements = nullptr, *dtypes = nullptr;
  long long executor = 0;
  if (graph == nullptr ||
      PyArg_ParseTuple(args, "SOOOL", &bytes, &options, &placements, &dtypes, &executor) == 0) {
    return nullptr;
  }
  LoadedGraph loaded;
  loaded.executor = executor;
  const Py_ssize_t size = PyBytes_Size(bytes);
  if (size > kMostBytes) {
    return Fail("graph " + graph->name() + ": Proto size " + std::to_string(size) +
                " exceed 2G limit");
  }
  loaded.bytes.assign(PyBytes_AsString(bytes), static_cast<size_t>(size));
  if (!ReadTexts(options, "options", loaded.options) ||
      !ReadInts(placements, "input placements", loaded.placements) ||
      !ReadInts(dtypes, "output dtypes", loaded.dtypes) || !graph->Load(std::move(loaded))) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* SetHintShape(PyObject* self, PyObject* args) {
  Graph* const graph = GraphOf(self);
  PyObject *inputs = nullptr, *outputs = nullptr;
  if (graph == nullptr || PyArg_ParseTuple(args, "OO", &inputs, &outputs) == 0) return nullptr;
  std::vector<Dims> input_shapes, output_shapes;
  if (!ReadShapes(inputs, "input shapes", input_shapes) ||
      !ReadShapes(outputs, "output shapes", output_shapes) ||
      !graph->SetHintShape(std::move(input_shapes), std::move(output_shapes))) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* Compile(PyObject* self, PyObject*) {
  Graph* const graph = GraphOf(self);
  if (graph == nullptr || !graph->Compile()) return nullptr;
  Py_RETURN_NONE;
}

PyObject* AutoTune(PyObject* self, PyObject* args) {
  Graph* const graph = GraphOf(self);
  PyObject *inputs = nullptr, *stream = nullptr;
  if (graph == nullptr || PyArg_ParseTuple(args, "(OO)", &inputs, &stream) == 0 ||
      !graph->AutoTune(inputs)) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* Summary(PyObject*, PyObject*) {
  return PyUnicode_FromString("");
}

PyObject* Run(PyObject* self, PyObject* args) {
  Graph* const graph = GraphOf(self);
  PyObject *inputs = nullptr, *assigned = nullptr, *stream = nullptr;
  // The stream is the CPU's: a run has ended when it returns.
  if (graph == nullptr || PyArg_ParseTuple(args, "(OOO)", &inputs, &assigned, &stream) == 0) {
    return nullptr;
  }
  return graph->Run(inputs, assigned);
}

// What the session has counted, by the names of npumesh_session_stats. Beside the vendor's methods.
PyObject* Stats(PyObject* self, PyObject*) {
  Graph* const graph = GraphOf(self);
  npumesh_session_stats stats{};
  if (graph == nullptr || !graph->GetStats(stats)) return nullptr;
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  return Py_BuildValue("{s:K,s:K,s:K,s:K}", "runs", number(stats.runs), "plans",
                       number(stats.plans), "input_bytes_copied", number(stats.input_bytes_copied),
                       "output_bytes_copied", number(stats.output_bytes_copied));
}

PyMethodDef methods[] = {
    {"load", Load, METH_VARARGS, "load(bytes, options, placements, dtypes, executor)"},
    {"set_hint_shape", SetHintShape, METH_VARARGS, "set_hint_shape(inputs, outputs)"},
    {"compile", Compile, METH_NOARGS, "Collective over the ranks whose graphs communicate."},
    {"auto_tune", AutoTune, METH_VARARGS, "auto_tune((inputs, stream))"},
    {"summary", Summary, METH_NOARGS, "Always empty."},
    {"run", Run, METH_VARARGS, "run((inputs, assigned outputs, stream)): a list of tensors"},
    {"stats", Stats, METH_NOARGS, "What the session has counted, a dict."},
    {nullptr, nullptr, 0, nullptr}};

PyType_Slot slots[] = {{Py_tp_init, reinterpret_cast<void*>(Init)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(Dealloc)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};

PyType_Spec spec = {"_torchair.TorchNpuGraphBase", sizeof(GraphObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

}  // namespace

Ref MakeGraphType() {
  return Ref(PyType_FromSpec(&spec));
}

}  // namespace npumesh::torchair
