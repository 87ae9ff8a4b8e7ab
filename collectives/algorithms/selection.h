// Selection: what HCCL_ALGO asks for (docs/algorithms.md).
//
//   value  = choice | operator "=" choice { "/" operator "=" choice }
//   choice = row | level { ";" level }          level = "level" digit ":" name
//
// `operator` is allgather, reducescatter, allreduce, broadcast, reduce, scatter or alltoall; the V
// variants follow. `row` is a name from the tables (direct, ring, mpi, ...) and holds everywhere.
// `level0` is NA: inside a node there is nothing to choose. `level1` speaks of groups on several
// nodes, `level2` of super pods, which npumesh does not have. A name of the vendor's that npumesh
// has no row for, or that an operator does not have, leaves the choice to the table.
//
// Thread-safety: immutable after construction.
#ifndef NPUMESH_COLLECTIVES_ALGORITHMS_SELECTION_H_
#define NPUMESH_COLLECTIVES_ALGORITHMS_SELECTION_H_

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "collectives/contract/collective_kind.h"
#include "runtime/base/status.h"

namespace npumesh {

class Selection {
 public:
  static constexpr size_t kOperators = 7;

  // `source` is where the text comes from, for messages ("HCCL_ALGO"). kInvalidArgument names
  // value, source and what is accepted. `rows`: the names of all tables.
  static Result<Selection> Parse(std::string_view text, std::string_view source,
                                 std::span<const std::string_view> rows);
  // The same for the built-in tables.
  static Result<Selection> Parse(std::string_view text, std::string_view source);

  // The row to prefer; empty: no wish. `several_nodes`: where the members of the group are.
  std::string_view RowFor(CollectiveKind kind, bool several_nodes) const;

 private:
  struct Choice {
    std::string row;         // for every group
    std::string level1_row;  // for groups on several nodes
  };
  static Result<Choice> ParseChoice(std::string_view text, std::span<const std::string_view> rows);

  std::array<Choice, kOperators> choices_;
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_ALGORITHMS_SELECTION_H_
