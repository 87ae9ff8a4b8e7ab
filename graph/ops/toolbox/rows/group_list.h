// Lists that cut rows into groups: inclusive prefix sums, or counts.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_GROUP_LIST_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_GROUP_LIST_H_

#include <string>
#include <type_traits>

#include "graph/ops/core/check.h"
#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh {

// Reads the list fed to a slot while a kernel runs.
class GroupRows {
 public:
  GroupRows() = default;
  // `counts`: the list holds counts, otherwise prefix sums. `rows`: what is cut. Without a list, of
  // an optional port or of none (""), all rows are one group. Error (kInvalidArgument): the list is
  // not int32 or int64.
  static Result<GroupRows> Of(const OpContext& op, std::string_view port, bool counts,
                              int64_t rows);

  bool given() const { return list_.given(); }
  int64_t groups() const { return given() ? list_.count() : 1; }

  // Calls body(group, begin, end), which gives a Status or nothing, for each group in turn. Returns
  // where the last one ends. Error (kInvalidArgument): a group ends before it begins or after the
  // rows.
  template <typename Body>
  Result<int64_t> ForEach(const KernelArgs& args, Body body) const {
    int64_t begin = 0;
    for (int64_t group = 0; group < groups(); ++group) {
      NPUMESH_ASSIGN_OR_RETURN(const int64_t end, EndOf(args, group, begin));
      if constexpr (std::is_void_v<decltype(body(group, begin, end))>) {
        body(group, begin, end);
      } else {
        NPUMESH_RETURN_IF_ERROR(body(group, begin, end));
      }
      begin = end;
    }
    return begin;
  }
  template <typename Plan>
  using RunGroup = Status (*)(const Plan& plan, const KernelArgs& args, int64_t group,
                              int64_t begin, int64_t end);
  // Calls `run` for each group that has rows. Returns as above.
  template <typename Plan>
  Result<int64_t> Run(const Plan& plan, const KernelArgs& args,
                      std::type_identity_t<RunGroup<Plan>> run) const {
    return ForEach(args, [&](int64_t group, int64_t begin, int64_t end) {
      return begin == end ? Status() : run(plan, args, group, begin, end);
    });
  }

 private:
  Result<int64_t> EndOf(const KernelArgs& args, int64_t group, int64_t begin) const;

  std::string who_, port_;
  Integers list_;
  bool counts_ = false;
  int64_t rows_ = 0;
};

// ---- rows and the weights of their experts ----

// x[m, k] (slot 0) with the weights [experts, k, n].
struct GroupedRows {
  int64_t m = 0, k = 0, n = 0, experts = 0;
  bool transposed = false;
  DataType x_dtype = DataType::kUndefined;
  DataType w_dtype = DataType::kUndefined;  // int4 for int32, which carries eight of them
  GroupRows list;
};

// Reads x, group_list and the weights in slot `w`: [experts, k, n], or with `stacked` false [k, n]
// of one expert. `transposed` is an attribute. The caller checks the types.
GroupedRows GroupedRowsOf(Check& check, const OpContext& op, int w, bool stacked,
                          std::string_view transposed);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_GROUP_LIST_H_
