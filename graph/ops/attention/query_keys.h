// The queries of an operator and the keys that each of them sees, as LightningIndexer and
// SparseFlashAttention are fed them.
#ifndef NPUMESH_GRAPH_OPS_ATTENTION_QUERY_KEYS_H_
#define NPUMESH_GRAPH_OPS_ATTENTION_QUERY_KEYS_H_

#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/rows/sequence_rows.h"

namespace npumesh {

struct QueryKeys {
  SequenceRows queries, keys;
  bool causal = true;  // a query does not see the keys after it

  // The ports are query and key, the attribute of the keys' layout and the port of their lengths
  // are `layout` and `lengths`.
  static QueryKeys Of(const OpContext& op, std::string_view layout, std::string_view lengths,
                      Check& check) {
    QueryKeys result;
    result.causal = check.Among("sparse_mode", {0, 3}) == 3;
    check.Among("pre_tokens", {kAllTokens});
    check.Among("next_tokens", {kAllTokens});
    result.queries = check.Take(
        SequenceRows::Of(op, "query", "layout_query", "actual_seq_lengths_query", "", -1));
    result.keys = check.Take(
        SequenceRows::Of(op, "key", layout, lengths, "block_table", result.queries.batch()));
    check.That(result.keys.width() == result.queries.width(),
               "query is {} and key {}, expected the same width", op.in("query"), op.in("key"));
    return result;
  }

  // Calls f(batch, query, keys seen) for each query, and ends at its first error.
  template <typename F>
  Status ForEach(const KernelArgs& args, F f) const {
    for (int64_t b = 0; b < queries.batch(); ++b) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t last, queries.Length(args, b));
      NPUMESH_ASSIGN_OR_RETURN(const int64_t length, keys.Length(args, b));
      for (int64_t t = 0; t < last; ++t) {
        NPUMESH_RETURN_IF_ERROR(f(b, t, KeysSeen(causal, t, last, length)));
      }
    }
    return Status();
  }
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_ATTENTION_QUERY_KEYS_H_
