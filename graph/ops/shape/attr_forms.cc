// Forms of operators that have attributes in place of constant inputs; most names end in D.
#include <cassert>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/core/signature.h"

namespace npumesh {
namespace {

// Inference and kernel are those of the operator itself, which asks OpContext::Ints for either.
struct AttrForm {
  std::string_view signature, same_as;
};

constexpr AttrForm kForms[] = {
    {"TransposeD(x; perm:ints) -> y", "Transpose"},
    {"ConcatD(x...; N=1, concat_dim:int) -> y", "ConcatV2"},
    {"SplitD(x; num_split:int, split_dim:int) -> y...", "Split"},
    {"SplitVD(x; num_split:int, size_splits:ints, split_dim:int) -> y...", "SplitV"},
    {"SliceD(x; offsets:ints, size:ints) -> y", "Slice"},
    {"TileD(x; multiples:ints) -> y", "Tile"},
    {"BroadcastToD(x; shape:ints) -> y", "BroadcastTo"},
    {"FillD(value; dims:ints) -> y", "Fill"},
    {"OneHotD(x, on_value, off_value; axis=-1, depth:int) -> y", "OneHot"},
};

}  // namespace

void DeriveAttrFormOps(OpRegistry& registry) {
  for (const AttrForm& form : kForms) {
    const Operator* source = registry.Find(form.same_as);
    assert(source != nullptr);
    Operator op = *source;
    op.schema = Signature(form.signature);
    for (const AttrSpec& attr : op.schema.attrs) std::erase(op.value_inputs, attr.name);
    registry.Add(std::move(op));
  }
}

}  // namespace npumesh
