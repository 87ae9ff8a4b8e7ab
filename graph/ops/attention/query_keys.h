// QueryKeys: the queries and keys of operators that look keys up by position, and which keys each
// query sees. LightningIndexer and SparseFlashAttention share it.
#ifndef NPUMESH_GRAPH_OPS_ATTENTION_QUERY_KEYS_H_
#define NPUMESH_GRAPH_OPS_ATTENTION_QUERY_KEYS_H_

#include "graph/ops/core/define.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/rows/sequence_rows.h"

namespace npumesh {

// The queries of an operator and the keys that each of them sees.
struct QueryKeys : Planned {
  SequenceRows queries, keys;
  DataType dtype = DataType::kUndefined;
  int64_t heads = 0, width = 0;  // of queries
  bool causal = true;            // a query does not see the keys after it

  // The ports are query and key; the attribute of the keys' layout and the port of their lengths
  // are `layout` and `lengths`.
  void ReadRows(const OpContext& op, std::string_view layout, std::string_view lengths,
                Check& check) {
    causal = check.Among("sparse_mode", {0, 3}) == 3;
    check.Only("pre_tokens", kAllTokens);
    check.Only("next_tokens", kAllTokens);
    queries = check.Take(
        SequenceRows::Of(op, "query", "layout_query", "actual_seq_lengths_query", "", -1));
    keys = check.Take(SequenceRows::Of(op, "key", layout, lengths, "block_table", queries.batch()));
    dtype = op.in("query").dtype;
    heads = queries.heads();
    width = queries.width();
  }

  // The same where both are of one of the types and have one width.
  void Read(const OpContext& op, TypeSet types, std::string_view layout, std::string_view lengths,
            Check& check) {
    ReadRows(op, layout, lengths, check);
    check.That(keys.width() == queries.width(), "query is {} and key {}, expected the same width",
               op.in("query"), op.in("key"));
    check.Type("query", types);
    check.SameType("key", "query");
  }

  // The shape of a list of `count` entries for each query and head of keys. REQUIRES: no objection.
  Shape ListsOf(const OpContext& op, int64_t count) const {
    Shape lists = WithLast(op.in("query").shape, count);
    lists[lists.rank() - 2] = keys.heads();
    return lists;
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
