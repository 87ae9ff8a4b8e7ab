// SplitTrait: what an operator says of tensors that are split over ranks (graph/shard). A rank has
// an equal piece of such a tensor along one axis; which axes may be split is known to the operator.
#ifndef NPUMESH_GRAPH_OPS_CORE_SPLIT_TRAIT_H_
#define NPUMESH_GRAPH_OPS_CORE_SPLIT_TRAIT_H_

#include <cstdint>
#include <string_view>

namespace npumesh {

class OpContext;

enum class SplitForm : uint8_t {
  // Element i of every output depends on the elements at i of inputs that are broadcast as NumPy
  // does; along `axes`, if there are any, on all of them.
  kElementwise,
  // Works along `axes` of input 0 and of inputs of the same shape; other inputs are parameters that
  // all pieces share. Without axes: along those whose size it changes.
  kAlong,
  // Joins its inputs along `axes`.
  kJoin,
  // Cuts input `data` along `axes` into its outputs.
  kParts,
  // As kParts with two halves that are combined into one output of half the size.
  kHalves,
  // Takes rows of input `data` along `axes` at `positions`.
  kLookup,
  // The sizes of input 0.
  kShape,
  // A tensor with the sizes of port `sizes`, all of whose elements are equal.
  kFill,
  // Broadcasts input 0 to the sizes of port `sizes`.
  kBroadcast,
  // Attention: query, key and value with heads, see `heads` below.
  kHeads,
  // Overwrites parts of input 0 with `data`, which has its axes, counted from the end.
  kUpdate,
  // Copies rows of each input of `data`, as many as there are `positions`, into its cache in
  // `caches`, in the same order: output i is cache i.
  kRows,
};

struct SplitTrait {
  SplitForm form = SplitForm::kElementwise;
  // Axes that cannot be split: a port whose value is known, or an attribute; counted from the end
  // where negative. Empty: none, or as the form says.
  std::string_view axes = {};
  // As many last axes as this input has cannot be split.
  std::string_view trailing = {};
  // This many last, and first, axes cannot be split.
  int last = 0;
  int first = 0;
  // As many first axes cannot be split as the last axis of this input is long.
  std::string_view leading = {};
  // The outputs lose `axes` unless the attribute "keep_dims" says otherwise.
  bool reduces = false;
  // The port with the sizes of the output.
  std::string_view sizes = {};
  std::string_view data = "x";
  // Inputs that are updated in place, names with blanks between them; and the axis with which a row
  // of one begins.
  std::string_view caches = {};
  int (*row_axis)(const OpContext& op) = nullptr;
  std::string_view positions = {};
  // The attribute with how many axes from the first are batches of a lookup.
  std::string_view batch = {};
  // Attributes with the numbers of heads of queries, and of keys and values (0: the same); with the
  // arrangement of axes, a word in which N is the axis of heads and H that of all heads' elements
  // where there is no N. A piece has its part of the heads.
  std::string_view heads = {};
  std::string_view shared_heads = {};
  std::string_view arrangement = {};
  // Inputs with the heads of keys and values; with an axis 1 of heads, or one of size 1; that are
  // the same for all heads. Names with blanks between them. A fed input that is in no list is not
  // split.
  std::string_view shared = {};
  std::string_view by_head = {};
  std::string_view of_all = {};
  // Where it is fed, keys and values are pages.
  std::string_view pages = {};
  // The output that the heads make.
  std::string_view mixed = {};
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_SPLIT_TRAIT_H_
