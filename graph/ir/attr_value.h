// AttrValue: the value of an attribute of a node, graph, model or descriptor.
//
// Mirrors the alternatives of ge.proto.AttrDef, one C++ type each, so that load -> save loses
// nothing. Alternatives that npumesh does not interpret (symbolic expressions, unknown fields) are
// carried as opaque bytes.
#ifndef NPUMESH_GRAPH_IR_ATTR_VALUE_H_
#define NPUMESH_GRAPH_IR_ATTR_VALUE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "graph/ir/shape.h"
#include "graph/ir/tensor.h"
#include "runtime/base/data_type.h"

namespace npumesh {

class AttrValue;
class Graph;
struct TensorDesc;
using AttrMap = std::map<std::string, AttrValue>;

// What AttrDef.list.val_type says; kNone on the name tables and on lists that older producers
// wrote.
enum class ListKind : int32_t {
  kNone = 0,
  kString = 1,
  kInt = 2,
  kFloat = 3,
  kBool = 4,
  kBytes = 5,
  kTensorDesc = 6,
  kTensor = 7,
  kGraph = 8,
  kNamedAttrs = 9,
  kDataType = 10,
};

struct NamedAttrs {
  std::string name;
  std::shared_ptr<AttrMap> attrs;  // never null
  std::string opaque;              // unknown fields
};

// A constant inside an attribute: descriptor and bytes.
struct TensorAttr {
  std::shared_ptr<TensorDesc> desc;  // never null
  // The bytes as stored, which may be more than the shape needs (views export their whole storage).
  std::shared_ptr<const std::string> data;  // never null
  std::string opaque;
};

struct ListAttr {
  ListKind kind = ListKind::kNone;
  std::vector<std::string> s;
  std::vector<int64_t> i;
  std::vector<float> f;
  std::vector<bool> b;
  std::vector<DataType> dt;
  // Everything else (bt, td, t, g, na and unknown fields), as serialised AttrDef.ListValue bytes.
  std::string opaque;
};

struct BytesAttr {
  std::string bytes;
};
// A dtype in the runtime numbering; kept as a number because foreign files hold unknown ones.
struct DataTypeAttr {
  int64_t number = 0;
};
struct ListListInt {
  std::vector<std::vector<int64_t>> values;
};
struct ListListFloat {
  std::vector<std::vector<float>> values;
};
struct TensorDescAttr {
  std::shared_ptr<TensorDesc> desc;  // never null
};
// A whole serialised AttrDef that npumesh does not interpret (graph, expression, nothing set, ...).
struct OpaqueAttr {
  std::string bytes;
};

class AttrValue {
 public:
  using Variant =
      std::variant<OpaqueAttr, int64_t, float, bool, std::string, BytesAttr, DataTypeAttr,
                   TensorAttr, TensorDescAttr, ListAttr, NamedAttrs, ListListInt, ListListFloat>;
  // Defined in one place: every file copies nodes, and the code that a variant needs for that is
  // slow to compile.
  AttrValue();
  AttrValue(Variant value);  // NOLINT: implicit by design
  AttrValue(const AttrValue&);
  AttrValue(AttrValue&&) noexcept;
  AttrValue& operator=(const AttrValue&);
  AttrValue& operator=(AttrValue&&) noexcept;
  ~AttrValue();

  static AttrValue Int(int64_t v);
  static AttrValue Float(float v);
  static AttrValue Bool(bool v);
  static AttrValue String(std::string v);
  static AttrValue Type(DataType v);
  static AttrValue Ints(std::vector<int64_t> v);
  static AttrValue Floats(std::vector<float> v);
  static AttrValue Strings(std::vector<std::string> v);
  static AttrValue Bools(std::vector<bool> v);
  static AttrValue Value(const Tensor& tensor);

  template <typename T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }
  template <typename T>
  T* get() {
    return std::get_if<T>(&value_);
  }
  const Variant& variant() const { return value_; }

  // Unknown fields beside the value, as serialised AttrDef bytes; normally empty.
  const std::string& opaque() const { return opaque_; }
  void set_opaque(std::string bytes) { opaque_ = std::move(bytes); }

  // Name of the alternative for messages: "int", "list", ...
  std::string_view kind() const;

 private:
  Variant value_;
  std::string opaque_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IR_ATTR_VALUE_H_
