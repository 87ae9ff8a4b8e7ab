// What Operator::axes cannot say of tensors that are split over ranks (graph/shard): heads of
// attention, and rows that are copied into caches.
#ifndef NPUMESH_GRAPH_OPS_CORE_SHARD_TRAITS_H_
#define NPUMESH_GRAPH_OPS_CORE_SHARD_TRAITS_H_

#include <string_view>
#include <vector>

namespace npumesh {

class OpContext;

// Attention: a piece has its part of the heads of queries, keys and values.
struct HeadsTrait {
  std::string_view query = "query";
  // Attributes with the numbers of heads of queries, and of keys and values (0: the same; empty:
  // as their sizes say).
  std::string_view heads;
  std::string_view shared_heads = {};
  // An attribute with the arrangement of axes, a word in which N is the axis of heads and H that of
  // all heads' elements where there is no N.
  std::string_view arrangement = "input_layout";
  // Inputs with the heads of keys and values; with an axis 1 of heads, or one of size 1; that are
  // the same for all heads. A fed input that is in no list is not split.
  std::vector<std::string_view> shared = {"key", "value"};
  std::vector<std::string_view> by_head = {};
  std::vector<std::string_view> of_all = {};
  // Where it is fed, keys and values are pages.
  std::string_view pages = {};
  // The output that the heads make.
  std::string_view mixed = "attention_out";
};

// Copies rows of inputs, as many as there are `positions`, into caches that it updates: output i is
// cache i. A piece has its part of every row.
struct RowsTrait {
  std::vector<std::string_view> rows;
  std::vector<std::string_view> caches;
  std::string_view positions;
  // The axis of a cache with which a row begins.
  int (*axis)(const OpContext& op);
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_SHARD_TRAITS_H_
