// DumpSettings: what is to be dumped, wherever it was asked for.
//
// Three ways lead here: the options `dump_config.*` of a compiler configuration and those of a
// session (options.h), and the JSON of `dump_config_path` (config_file.h).
#ifndef NPUMESH_GRAPH_DUMP_OPTIONS_SETTINGS_H_
#define NPUMESH_GRAPH_DUMP_OPTIONS_SETTINGS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

enum class DumpMode { kInput, kOutput, kAll };
enum class DumpContent { kTensor, kStatistics };

// The order is that of the columns.
enum class Statistic { kMax, kMin, kAvg, kNan, kNegativeInf, kPositiveInf, kL2norm };
// The six that are written unless others are chosen.
std::vector<Statistic> DefaultStatistics();

// What is written of an operator that fails.
enum class ExceptionDump {
  kOff,
  kBrief,   // only its arguments: names, types, addresses
  kNormal,  // its inputs, outputs and workspaces
};

// The steps to dump: "0|3-5|10". Empty: every step.
class StepSet {
 public:
  // At most 100 numbers and ranges. `equal_ends`: whether "3-3" is a range; in the options it is an
  // error, in the JSON it is not. Errors (kInvalidArgument) begin with `key`.
  static Result<StepSet> Parse(std::string_view text, bool equal_ends, std::string_view key);

  bool empty() const { return ranges_.empty(); }
  bool Contains(uint64_t step) const;

 private:
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;  // both ends included
};

// One tensor of an operator, or all of them.
struct BlackTensor {
  bool input = false;
  int index = 0;
  bool operator==(const BlackTensor&) const = default;
};
struct BlackEntry {
  std::string name;                  // an operator type or name
  std::vector<BlackTensor> tensors;  // empty: the operator is not dumped at all
};

// From `begin` to `end`, both included, in the order of execution.
struct OperatorRange {
  std::string begin;
  std::string end;
};

// An item of dump_list: operators of one model, or of all.
struct OperatorChoice {
  std::string model_name;           // empty: every model
  std::vector<std::string> layers;  // operator names; with `ranges` empty too: all operators
  std::vector<OperatorRange> ranges;
  std::vector<std::string> watched;  // watch mode only
  std::vector<BlackEntry> type_blacklist;
  std::vector<BlackEntry> name_blacklist;
};

struct DumpSettings {
  // Existing folder that everything is written below.
  std::string path;
  DumpMode mode = DumpMode::kOutput;
  DumpContent content = DumpContent::kTensor;
  std::vector<Statistic> statistics = DefaultStatistics();
  StepSet steps;
  // Operators of models, as `choices` say.
  bool models = false;
  std::vector<OperatorChoice> choices;
  // The operators that `choices` leave out, in the layout of operators that run by themselves.
  bool single_operators = false;
  // Graph inputs, beside each operator that reads them.
  bool graph_inputs = true;
  // Only operators that overflow, with a record of each.
  bool overflow = false;
  // After each chosen operator the outputs of the watched ones.
  bool watch = false;
  ExceptionDump exception = ExceptionDump::kOff;
  // Where it is written, made when it is missing; empty: `path`.
  std::string exception_path;
  bool quant_dumpable = false;
  // A folder "worldsize{N}_global_rank{R}" even for a single rank; with several there always is.
  bool always_rank_folder = true;

  // False: only exceptions are written, if at all.
  bool dumps_steps() const { return models || single_operators || overflow || watch; }
};

// kInvalidArgument, naming `key`: no folder, or this process may not read and write it.
Status CheckDumpFolder(const std::string& path, std::string_view key);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_OPTIONS_SETTINGS_H_
