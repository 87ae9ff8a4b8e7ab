// A loop program as the row machine runs it: which function computes each value, where it lies, and
// in which walk along a row it comes about.
//
// Internal to the row machine. Thread-safety: immutable once bound.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_BOUND_ROWS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_BOUND_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/loop_stages.h"
#include "graph/ops/toolbox/lanes/lane_table.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {

// The type in which a value lies in memory; of a sum its double.
DataType KeptAs(LoopType type);

inline constexpr size_t kMostReductions = 4;  // of one walk
// Elements that are computed at once where no whole row is.
inline constexpr auto kRowBlock = static_cast<int64_t>(kJoinBlock);
// Elements of several rows that are computed at once: what waits for the sum of a row has others to
// do meanwhile, and their values lie in the first-level cache.
inline constexpr int64_t kMostTogether = 4 * kRowBlock;

// Where a value lies.
enum class RowPlace : uint8_t {
  kRoom,    // in the memory of the thread
  kInput,   // in the tensor, which has the numbers that are computed with
  kOutput,  // in the output that it is
};

// How a value comes about, and where it lies.
struct BoundLine {
  RowPlace place = RowPlace::kRoom;
  int output = -1;              // with kOutput; of what is rounded, where its numbers are written
  LaneFn lanes = nullptr;       // of what is computed
  std::vector<LoopValue> args;  // of `lanes`: those of the instruction, or of two in one walk
  bool by_rows = false;         // one call of `lanes` for each row
  int number = -1;  // the argument that is one number for the elements of a row; -1: none
  ConvertFn convert = nullptr;         // of what is read or converted
  ConvertFn back = nullptr;            // of what is rounded, to the type of the value
  int input = -1;                      // of the program, of what is read
  int64_t apart = 0;                   // with kInput: elements from row to row
  const RowJoin* reduction = nullptr;  // of a number of the row
  LoopValue joined = -1;               // whose elements are joined
  bool only_given = false;             // what is rounded is read by nothing: it is the output alone
  bool skipped = false;                // its readers do what it does
  bool fixed = false;                  // the same in all rows
  bool spread = false;                 // a number that elements are computed with
  bool kept = false;                   // the whole row of it
  size_t width = 0;                    // bytes of an element
  // With kRoom: where the elements of a block of rows lie, or the whole row of what is kept; of a
  // number, those of the rows.
  size_t room = 0;
  size_t spread_room = 0;  // of a number, as elements
};

// What is done in one walk, and before it.
struct BoundStage {
  std::vector<LoopValue> numbers;
  std::vector<LoopValue> elements;  // read and computed
  std::vector<LoopValue> reductions;
  std::vector<size_t> outputs;  // converted
};

class BoundRows {
 public:
  // The program must outlive this. `placed`: its tensors do not lie as it says.
  BoundRows(const LoopProgram& program, bool placed);

  // False: an instruction is not computed here.
  bool Bind();

  const std::vector<BoundLine>& lines() const { return lines_; }
  // What is done once, before the first row.
  const BoundStage& fixed() const { return fixed_; }
  // The last one has numbers alone.
  const std::vector<BoundStage>& stages() const { return stages_; }
  // Rows that are computed together: several where they are short.
  int64_t rows() const { return rows_; }
  // Columns that are computed at once.
  int64_t columns() const { return whole_ ? columns_ : std::min(columns_, kRowBlock); }
  // Walks are over whole rows.
  bool whole() const { return whole_; }
  // Memory of a thread.
  size_t bytes() const { return bytes_; }
  ConvertFn store(size_t output) const { return stores_[output]; }

 private:
  LoopValue size() const { return static_cast<LoopValue>(program_.instructions.size()); }
  const LoopInstruction& line(LoopValue v) const {
    return program_.instructions[static_cast<size_t>(v)];
  }
  BoundLine& bound(LoopValue v) { return lines_[static_cast<size_t>(v)]; }
  const BoundLine& bound(LoopValue v) const { return lines_[static_cast<size_t>(v)]; }

  void CountUses();
  bool ReadsAtOnce(const LoopInstruction& now) const;
  bool IsReadByCalls(LoopValue v) const;
  bool ReadsInPlace(LoopValue v) const;
  bool IsFixed(LoopValue v) const;
  bool BindFunction(LoopValue v);
  void BindLanes(LoopValue v, LoopType taken);
  bool IsOnlyPassedTo(LoopValue reader, LoopValue v) const;
  void JoinSquares(LoopValue v);
  void JoinPair(LoopValue v);
  void FindOutputs();
  void FindSpread();
  void FindKept();
  int LastReader(LoopValue v) const;
  LoopValue RoomFor(LoopValue v) const;
  void TakeRooms();
  size_t Take(int64_t places, size_t width);
  bool ComesIn(LoopValue v, int stage) const;
  BoundStage StageOf(int stage) const;
  BoundStage Fixed() const;

  const LoopProgram& program_;
  const LoopStages stages_of_;
  const bool placed_;
  const int64_t columns_, rows_;
  const bool whole_;
  const int64_t elements_;  // that are computed at once
  std::vector<int> uses_;   // by value: its readers
  std::vector<BoundLine> lines_;
  BoundStage fixed_;
  std::vector<BoundStage> stages_;
  std::vector<ConvertFn> stores_;  // by output
  size_t bytes_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_ROWS_BOUND_ROWS_H_
