// Forms of operators that have attributes in place of constant inputs; most names end in D.
// Inference and kernel are those of the operator itself, which asks OpContext::Ints for either.
#include <algorithm>
#include <cassert>

#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

struct AttrForm {
  std::string_view type;
  std::string_view same_as;
  std::vector<AttrSpec> ports;  // that are attributes
};

const AttrForm kForms[] = {
    {"TransposeD", "Transpose", {{"perm", Required::kInts}}},
    {"ConcatD", "ConcatV2", {{"concat_dim", Required::kInt}}},
    {"SplitD", "Split", {{"split_dim", Required::kInt}}},
    {"SplitVD", "SplitV", {{"size_splits", Required::kInts}, {"split_dim", Required::kInt}}},
    {"SliceD", "Slice", {{"offsets", Required::kInts}, {"size", Required::kInts}}},
    {"TileD", "Tile", {{"multiples", Required::kInts}}},
    {"BroadcastToD", "BroadcastTo", {{"shape", Required::kInts}}},
    {"FillD", "Fill", {{"dims", Required::kInts}}},
    {"OneHotD", "OneHot", {{"depth", Required::kInt}}},
};

}  // namespace

void RegisterAttrForms(OpRegistry& registry) {
  for (const AttrForm& form : kForms) {
    const Operator* source = registry.Find(form.same_as);
    assert(source != nullptr && "register the operator first");
    Operator op = *source;
    op.schema.type = form.type;
    for (const AttrSpec& attr : form.ports) {
      std::erase_if(op.schema.inputs, [&](const PortSpec& port) { return port.name == attr.name; });
      std::erase(op.value_inputs, attr.name);
      op.schema.attrs.push_back(attr);
    }
    registry.Add(std::move(op));
  }
}

}  // namespace npumesh
