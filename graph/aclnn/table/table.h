// The table of aclnn functions: what their parameters are and what they compute, as text
// (functions/*.aclnn).
//
//   [aclnn_add.h]
//   aclnnAdd(self:T, other:T, alpha:S, out:T!)
//     x, y = promote(self, other)
//     out = Add(x, scaled(y, alpha))
//
// A line in brackets names the header that declares what follows. A function stands at the begin of
// a line with its parameters in order; `!` marks those that it writes, `?` those that may be null,
// as all may whose names end with "Optional", `~` those that are in FRACTAL_NZ from then on, `*`
// those whose shape only the run knows: it is at most that of the tensor, which then has the new
// one. The indented lines below say what it computes: a name that is a parameter gets the value
// with the parameter's type and shape, others are values on the way. Expressions have numbers,
// "texts", lists in brackets, names, arithmetic, comparisons, `and`, `or`, `not`, `a if c else b`,
// and calls: of an operator of graphs (large first letter) with inputs by position and attributes
// by name, of a function of meaning.h (small first letter), or, as a statement, of another row
// (aclnn...).
//
// Thread-safety: a table does not change.
#ifndef NPUMESH_GRAPH_ACLNN_TABLE_TABLE_H_
#define NPUMESH_GRAPH_ACLNN_TABLE_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/text/expression.h"

namespace npumesh {

enum class AclnnKind : uint8_t {
  kTensor,    // T
  kTensors,   // TL
  kScalar,    // S
  kScalars,   // SL
  kInts,      // IA
  kFloats,    // FA
  kBools,     // BA
  kInt64,     // i64
  kInt32,     // i32
  kInt8,      // i8
  kUint64,    // u64
  kDouble,    // f64
  kFloat,     // f32
  kBool,      // bool
  kText,      // str
  kDataType,  // dtype
};

struct AclnnParam {
  std::string name;
  AclnnKind kind = AclnnKind::kTensor;
  bool written = false;
  bool optional = false;
  bool becomes_blocks = false;  // FRACTAL_NZ
  bool open = false;            // the run decides its shape
};

using AclnnExpr = Expr;

struct AclnnStatement {
  std::vector<std::string> targets;  // empty: a call of another row
  AclnnExpr value;
};

struct AclnnFunction {
  std::string name;
  std::string header;
  std::vector<AclnnParam> params;
  std::vector<AclnnStatement> body;
};

class AclnnTable {
 public:
  // Errors (kCorrupt) name the line: `name` is that of the text.
  Status Add(std::string_view name, std::string_view text);

  const std::vector<AclnnFunction>& functions() const { return functions_; }
  // Null: no such row.
  const AclnnFunction* Find(std::string_view name) const;

 private:
  std::vector<AclnnFunction> functions_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

// The tables of this library. Ends the process when a row cannot be read, which a test sees to.
const AclnnTable& AclnnFunctions();

// Functions of the vendor that the tables do not have, with the reason (functions/absent.txt).
const std::map<std::string_view, std::string_view>& AclnnAbsences();

// The type in C of a parameter: "const aclTensor*", "aclTensor*" of one that is written.
std::string_view AclnnTypeInC(const AclnnParam& param);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACLNN_TABLE_TABLE_H_
