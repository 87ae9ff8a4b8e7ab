// OperatorCall: what a program says of an operator that it calls alone (acl_op.h).
#ifndef NPUMESH_RUNTIME_ACL_OPERATORS_OPERATOR_CALL_H_
#define NPUMESH_RUNTIME_ACL_OPERATORS_OPERATOR_CALL_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "acl/acl_base_mdl.h"

namespace npumesh {

// A value that is known when the operator is compiled.
using KnownBytes = std::shared_ptr<const std::vector<std::byte>>;

struct CallTensor {
  aclDataType dtype = ACL_DT_UNDEFINED;  // undefined: an optional tensor that is absent
  std::vector<int64_t> dims;             // of what lies in memory; -1: open
  aclFormat format = ACL_FORMAT_ND;
  std::vector<int64_t> origin_dims;  // before a conversion into a private format
  aclFormat origin_format = ACL_FORMAT_UNDEFINED;
  std::string name;
  std::string list;  // the dynamic input that it belongs to
  KnownBytes value;  // null: each run brings it

  bool absent() const { return dtype == ACL_DT_UNDEFINED; }
};

using CallAttr = std::variant<bool, int64_t, float, std::string, aclDataType, std::vector<bool>,
                              std::vector<int64_t>, std::vector<float>, std::vector<std::string>,
                              std::vector<aclDataType>, std::vector<std::vector<int64_t>>>;
using CallAttrs = std::map<std::string, CallAttr>;

struct OperatorCall {
  std::string type;
  std::vector<CallTensor> inputs;
  std::vector<CallTensor> outputs;
  CallAttrs attrs;
};

// Equal for calls that one compiled operator serves, and different for others.
std::string KeyOf(const OperatorCall& call);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_OPERATORS_OPERATOR_CALL_H_
