// Signatures: the schema of an operator as one line of text, which tables, docs and `npumesh ops`
// show alike:
//
//   GroupQuant(x, scale, group_index, offset?; dst_type=2) -> y
//   ConcatV2(x..., concat_dim; N=1) -> y
//   HcomReduceScatter(x; reduction:string, rank_size:int, group="hccl_world_group", fusion==0) -> y
//
// `name?` is an optional port, `name...` a dynamic one. An attribute is required (`name:kind`), has
// a default whose kind its value shows (`name=2`, `=1.0`, `=true`, `="text"`, `=[1,2]`), or knows
// no other value than its default (`name==0`). A value that does not show its kind says it:
// `name:floats=[]`. Kinds: int, float, bool, string, type, ints, floats, bools, strings, tensor,
// any. A float has a point or an exponent, or is inf or nan; a type is named as in `float16`.
#ifndef NPUMESH_GRAPH_OPS_CORE_SIGNATURE_H_
#define NPUMESH_GRAPH_OPS_CORE_SIGNATURE_H_

#include <string>
#include <string_view>

#include "graph/ops/core/operator.h"

namespace npumesh {

// The schema's names are views into `text`. Error (kInvalidArgument): what does not follow the
// notation, and at which character.
Result<OpSchema> ParseSignature(std::string_view text);

// The same for the texts of our own tables, which live as long as the program. REQUIRES: `text`
// follows the notation; ends the program otherwise, because tests bind every built-in operator.
OpSchema Signature(std::string_view text);

// The text of a schema; ParseSignature reads it back to an equal one.
std::string SignatureText(const OpSchema& schema);

// The value as a signature shows it: `2`, `1e-05`, `"text"`, `[1,2]`, `float16`.
std::string ValueText(const AttrValue& value);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_SIGNATURE_H_
