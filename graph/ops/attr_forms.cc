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
  std::vector<std::string_view> ports;  // that are attributes
};

const AttrForm kForms[] = {
    {"TransposeD", "Transpose", {"perm"}},      {"ConcatD", "ConcatV2", {"concat_dim"}},
    {"SplitD", "Split", {"split_dim"}},         {"SplitVD", "SplitV", {"size_splits", "split_dim"}},
    {"SliceD", "Slice", {"offsets", "size"}},   {"TileD", "Tile", {"multiples"}},
    {"BroadcastToD", "BroadcastTo", {"shape"}}, {"FillD", "Fill", {"dims"}},
    {"OneHotD", "OneHot", {"depth"}},
};

}  // namespace

void RegisterAttrForms(OpRegistry& registry) {
  for (const AttrForm& form : kForms) {
    const Operator* source = registry.Find(form.same_as);
    assert(source != nullptr && "register the operator first");
    Operator op = *source;
    op.schema.type = form.type;
    for (const std::string_view port : form.ports) {
      std::erase_if(op.schema.inputs, [&](const PortSpec& spec) { return spec.name == port; });
      std::erase(op.value_inputs, port);
      op.schema.attrs.push_back({port, std::nullopt});
    }
    registry.Add(std::move(op));
  }
}

}  // namespace npumesh
