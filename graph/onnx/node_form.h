// What a node of ONNX may look like: the operands and attributes of its operator. Internal to
// graph/onnx.
//
// A form is one line of words. First the operands, by position. A letter says what an operand may
// be: those with one letter from T to W have the same type, "_" has any; of the other letters each
// is a class of types: B bool, D float32 or float64, F float32, R real, N number, Z integer, S and
// A integers with and without a sign, I int32 or int64, J int32, K uint32 or uint64, L int64, Q
// integers of 8 or 16 bits, Y bytes. "=" and some of these after a T or "_" name its classes; a
// class has the types of the newest version. A "?" after an operand says that it may be left out,
// "..." that there are one or more: "T=RI T? L". Then the attributes, as name:kind, with "!" after
// it where the node has to have it, and with the versions of the operator set that know it:
// "axes:ints<18", "noop_with_empty_axes:int@18".
//
// Thread-safety: may be called by several threads.
#ifndef NPUMESH_GRAPH_ONNX_NODE_FORM_H_
#define NPUMESH_GRAPH_ONNX_NODE_FORM_H_

#include <string_view>
#include <vector>

#include "graph/onnx/onnx_model.h"
#include "runtime/base/status.h"

namespace npumesh {

struct FormOperand {
  char type = '_';
  std::string_view classes;  // empty: of any type
  bool optional = false;
  bool several = false;
};

struct FormAttribute {
  std::string_view name;
  std::string_view kind;  // float, int, string, floats, ints, strings, tensor, graph, type, sparse
  bool required = false;
  int64_t since = 0, until = INT64_MAX;  // versions [since, until)

  bool KnownIn(int64_t version) const { return version >= since && version < until; }
};

struct NodeForm {
  std::vector<FormOperand> operands;
  std::vector<FormAttribute> attributes;
};

// The views are into `form`.
NodeForm ParseForm(std::string_view form);

// Whether an operand may be of this type, as far as its classes say.
bool Takes(const FormOperand& operand, DataType dtype);

// Errors (kCorrupt): the node has an attribute that its operator has not in this version, lacks
// one, or has one of another kind; it has more or fewer operands; an operand has a type of none of
// its classes; operands that have one type have several. `dtypes` by operand, kUndefined where
// nothing is known.
Status CheckForm(const OnnxNode& node, std::string_view form, int64_t version,
                 const std::vector<DataType>& dtypes);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_NODE_FORM_H_
