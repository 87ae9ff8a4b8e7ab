#include "graph/static_kernel/source/kernel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>
#include <vector>

#include "graph/ops/core/loop_stages.h"

namespace npumesh {
namespace {

constexpr int64_t kJoinBlock = 512;            // as kJoinBlock of lane_table.h
constexpr int64_t kSumBlock = 2 * kJoinBlock;  // as BlockedSum of row_io.h

// How elements of a type are named in the text: their C type, and the end of the functions that
// read and write them.
struct ElementText {
  DataType dtype;
  std::string_view type;
  std::string_view name;
};

constexpr ElementText kElements[] = {
    {DataType::kFloat, "float", "Float"},
    {DataType::kFloat16, "unsigned short", "Half"},
    {DataType::kBfloat16, "unsigned short", "Bfloat"},
    {DataType::kBool, "unsigned char", "Bool"},
    {DataType::kInt8, "signed char", "Int8"},
    {DataType::kUint8, "unsigned char", "Uint8"},
    {DataType::kInt16, "short", "Int16"},
    {DataType::kUint16, "unsigned short", "Uint16"},
    {DataType::kInt32, "int", "Int32"},
    {DataType::kUint32, "unsigned", "Uint32"},
    {DataType::kInt64, "long long", "Int64"},
    {DataType::kUint64, "unsigned long long", "Packed"},
    {DataType::kDouble, "double", "Double"},
};

// How values of a type are named: their C++ type, and the element that keeps them in scratch.
struct ValueText {
  LoopType type;
  std::string_view name;
  DataType kept;
};

constexpr ValueText kValues[] = {
    {LoopType::kFloat, "F", DataType::kFloat},        {LoopType::kBool, "B", DataType::kBool},
    {LoopType::kSum, "double", DataType::kUndefined}, {LoopType::kInt, "I", DataType::kInt32},
    {LoopType::kLong, "L", DataType::kInt64},         {LoopType::kDouble, "D", DataType::kDouble},
};

// How a number of a row is gathered from elements of a type: where it starts, what a step does with
// its elements, what stands where a row has none, what is done after each `block` elements, and how
// it ends. {0} is the value, {1} the elements.
struct ReductionText {
  LoopOp op;
  LoopType type;
  std::string_view start;
  std::string_view step;
  std::string_view filler;
  std::string_view end;
  std::string_view empty = "";
  int64_t block = 0;
};

constexpr ReductionText kReductions[] = {
    {LoopOp::kRowMax, LoopType::kFloat, "F lanes{0} = Set(-__builtin_inff());",
     "Raise(lanes{0}, {1});", "-__builtin_inff()", "const F v{0} = LargestLane(lanes{0});"},
    {LoopOp::kRowLargest, LoopType::kFloat, "F lanes{0} = Set(-__builtin_inff());",
     "lanes{0} = Largest(lanes{0}, {1});", "-__builtin_inff()",
     "const F v{0} = LargestOrNan(lanes{0});"},
    {LoopOp::kRowLargest, LoopType::kDouble, "D lanes{0} = SetWide(-__builtin_inf());",
     "lanes{0} = Largest(lanes{0}, {1});", "-__builtin_inf()",
     "const D v{0} = LargestOrNan(lanes{0});"},
    {LoopOp::kRowLeast, LoopType::kFloat, "F lanes{0} = Set(__builtin_inff());",
     "lanes{0} = Least(lanes{0}, {1});", "__builtin_inff()",
     "const F v{0} = LeastOrNan(lanes{0});"},
    {LoopOp::kRowLeast, LoopType::kDouble, "D lanes{0} = SetWide(__builtin_inf());",
     "lanes{0} = Least(lanes{0}, {1});", "__builtin_inf()", "const D v{0} = LeastOrNan(lanes{0});"},
    {LoopOp::kRowSum, LoopType::kFloat, "double v{0} = 0; S lanes{0} = {{}};",
     "AddLanes(lanes{0}, {1});", "0", "", "Empty(lanes{0}, v{0});", kSumBlock},
    {LoopOp::kRowTotal, LoopType::kDouble, "double total{0} = 0; W lanes{0} = Sixteen(0);",
     "JoinSums(lanes{0}, {1});", "0", "const D v{0} = SetWide(total{0});",
     "EmptySums(lanes{0}, total{0});", kJoinBlock},
    {LoopOp::kRowProduct, LoopType::kDouble, "double total{0} = 1; W lanes{0} = Sixteen(1);",
     "JoinProducts(lanes{0}, {1});", "1", "const D v{0} = SetWide(total{0});",
     "EmptyProducts(lanes{0}, total{0});", kJoinBlock},
};

const ElementText& TextOf(DataType dtype) {
  return *std::find_if(std::begin(kElements), std::end(kElements),
                       [dtype](const ElementText& text) { return text.dtype == dtype; });
}

const ValueText& TextOf(LoopType type) {
  return *std::find_if(std::begin(kValues), std::end(kValues),
                       [type](const ValueText& text) { return text.type == type; });
}

std::string_view TypeText(LoopType type) {
  return TextOf(type).name;
}

const ElementText& KeptText(LoopType type) {
  return TextOf(TextOf(type).kept);
}

std::string NumberText(double value) {
  if (std::isnan(value)) return "__builtin_nan(\"\")";
  if (std::isinf(value)) return value < 0 ? "-__builtin_inf()" : "__builtin_inf()";
  return fmt::format("{:a}", value);
}

std::string SafeTitle(std::string_view title) {
  std::string safe;
  for (const char c : title) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view(" ._/()-").find(c) != std::string_view::npos;
    safe += plain ? c : '?';
  }
  return safe;
}

class TextWriter {
 public:
  TextWriter(const LoopProgram& program, std::string_view symbol, int64_t width)
      : program_(program), stages_(program), symbol_(symbol), width_(width) {
    bfloat_only_ = std::all_of(program.inputs.begin(), program.inputs.end(), [](const auto& input) {
      return input.dtype == DataType::kBfloat16 || input.dtype == DataType::kBool;
    });
  }

  MappedKernelText Text() {
    Line("namespace by{} {{", width_);
    Line("extern \"C\" void {}(const void* const* in, void* const* out, void* scratch) {{",
         symbol_);
    ++depth_;
    Begin();
    for (size_t d = 0; d < program_.outer.size(); ++d) {
      Line("for (long i{0} = 0; i{0} < {1}; ++i{0}) {{", d, program_.outer[d]);
      ++depth_;
    }
    Row();
    while (depth_ > 0) {
      --depth_;
      Line("}}");
    }
    Line("}}  // namespace by{}", width_);
    return {std::move(text_), std::move(origins_)};
  }

 private:
  template <typename... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    Append(fmt::format(format, std::forward<Args>(args)...));
  }
  // The same for a pattern from a table.
  template <typename... Args>
  void Fill(std::string_view pattern, const Args&... args) {
    Append(fmt::vformat(pattern, fmt::make_format_args(args...)));
  }
  void Append(std::string_view line) {
    text_.append(static_cast<size_t>(2 * depth_), ' ');
    text_ += line;
    text_ += '\n';
    origins_.push_back(std::exchange(origin_, -1));
  }

  const LoopInstruction& line(LoopValue value) const {
    return program_.instructions[static_cast<size_t>(value)];
  }
  LoopValue size() const { return static_cast<LoopValue>(program_.instructions.size()); }
  const ReductionText& GatheredBy(LoopValue v) const {
    const LoopType type = line(line(v).args[0]).type;
    return *std::find_if(
        std::begin(kReductions), std::end(kReductions),
        [&](const ReductionText& text) { return text.op == line(v).op && text.type == type; });
  }

  // ---- before the first row ----

  void Begin() {
    Line("(void)in, (void)out, (void)scratch;");
    uint64_t place = 0;
    for (const LoopValue v : stages_.kept()) {
      Line("{0}* const kept{1} = ({0}*)((char*)scratch + {2});", KeptText(line(v).type).type, v,
           place);
      place += KeptBytes(program_, v, width_);
    }
    for (LoopValue v = 0; v < size(); ++v) {
      if (line(v).op != LoopOp::kConstant) continue;
      Title(line(v).origin);
      Line("const {} v{} = {}({});", TypeText(line(v).type), v,
           line(v).type == LoopType::kDouble ? "SetWide" : "Set", NumberText(line(v).params[0]));
    }
    for (size_t o = 0; o < program_.outputs.size(); ++o) {
      Line("{0}* out{1} = ({0}*)out[{1}];", TextOf(program_.outputs[o].dtype).type, o);
    }
  }

 public:
  // Scratch for a kept value, in whole vectors.
  static uint64_t KeptBytes(const LoopProgram& program, LoopValue value, int64_t width) {
    const LoopType type = program.instructions[static_cast<size_t>(value)].type;
    const int bits = BitsOf(TextOf(type).kept);
    const auto places = static_cast<uint64_t>((program.columns + width - 1) / width * width);
    return places * static_cast<uint64_t>(std::max(bits, 32)) / 8;
  }

 private:
  // ---- one row ----

  void Row() {
    for (size_t k = 0; k < program_.inputs.size(); ++k) {
      const LoopInput& input = program_.inputs[k];
      std::string place = fmt::format("{}", input.offset);
      for (size_t d = 0; d < program_.outer.size(); ++d) {
        if (input.strides[d] != 0) place += fmt::format(" + i{} * {}", d, input.strides[d]);
      }
      Line("const {0}* const in{1} = (const {0}*)in[{2}] + ({3});", TextOf(input.dtype).type, k,
           input.tensor, place);
    }
    for (int stage = 0; stage < stages_.count(); ++stage) {
      Numbers(stage);
      Walk(stage);
    }
    Numbers(stages_.count());
    for (size_t o = 0; o < program_.outputs.size(); ++o) EndRowOf(o);
  }

  void EndRowOf(size_t o) {
    const LoopOutput& output = program_.outputs[o];
    const ElementText& element = TextOf(output.dtype);
    if (line(output.value).row) {
      Title(line(output.value).origin);
      Line("StorePart(Store{}, v{}, out{}, 1);", element.name, output.value, o);
    }
    Line("out{} += {};", o, line(output.value).row ? 1 : program_.columns);
  }

  // Numbers of the row that are known before walk `stage`, but for what the walk before gave.
  void Numbers(int stage) {
    for (LoopValue v = 0; v < size(); ++v) {
      if (!line(v).row || Reduces(line(v).op) || line(v).op == LoopOp::kConstant) continue;
      if (stages_.stage(v) == stage) Compute(v);
    }
  }

  // ---- one walk along a row ----

  void Walk(int stage) {
    std::vector<LoopValue> elements, reductions;
    for (LoopValue v = 0; v < size(); ++v) {
      if (Reduces(line(v).op) && stages_.stage(v) == stage + 1) reductions.push_back(v);
      const bool computed = !line(v).row && line(v).op != LoopOp::kInput;
      if (computed && stages_.stage(v) == stage) elements.push_back(v);
    }
    const std::vector<LoopValue> fetched = stages_.FetchedIn(stage);
    if (fetched.empty()) return;
    for (const LoopValue v : reductions) {
      Title(line(v).origin);
      Fill(GatheredBy(v).start, v);
    }
    Step(stage, fetched, elements, reductions, 0);
    const int64_t rest = program_.columns % width_;
    if (rest != 0) Step(stage, fetched, elements, reductions, rest);
    Loops(stage, reductions, rest);
    for (const LoopValue v : reductions) {
      const std::string_view end = GatheredBy(v).end;
      if (end.empty()) continue;
      Title(line(v).origin);
      Fill(end, v);
    }
  }

  // The function that computes a step of columns from column i on, or the last `rest` ones.
  void Step(int stage, const std::vector<LoopValue>& fetched,
            const std::vector<LoopValue>& elements, const std::vector<LoopValue>& reductions,
            int64_t rest) {
    Line("const auto {}{} = [&](long i) __attribute__((always_inline)) {{",
         rest == 0 ? "step" : "rest", stage);
    ++depth_;
    for (const LoopValue v : fetched) Fetch(v, rest);
    for (const LoopValue v : elements) {
      Compute(v);
      Keep(v);
    }
    for (const LoopValue v : reductions) Reduce(v, rest);
    WriteOutputs(stage, rest);
    --depth_;
    Line("}};");
  }

  void Fetch(LoopValue v, int64_t rest) {
    const bool is_input = line(v).op == LoopOp::kInput;
    const std::string_view name =
        is_input ? TextOf(InputOf(v).dtype).name : KeptText(line(v).type).name;
    Title(line(v).origin);
    const std::string place =
        is_input ? fmt::format("in{} + i", line(v).index) : fmt::format("kept{} + i", v);
    // Kept rows are whole vectors long.
    if (rest == 0 || !is_input) {
      Line("const {} v{} = Load{}({});", TypeText(line(v).type), v, name, place);
    } else {
      Line("const {} v{} = LoadPart(Load{}, {}, {});", TypeText(line(v).type), v, name, place,
           rest);
    }
  }

  void Keep(LoopValue v) {
    const std::vector<LoopValue>& kept = stages_.kept();
    if (std::find(kept.begin(), kept.end(), v) == kept.end()) return;
    Title(line(v).origin);
    Line("Store{0}(v{1}, kept{1} + i);", KeptText(line(v).type).name, v);
  }

  void Reduce(LoopValue v, int64_t rest) {
    const ReductionText& text = GatheredBy(v);
    std::string x = fmt::format("v{}", line(v).args[0]);
    if (rest != 0) x = fmt::format("FirstLanes({}, {}, {})", x, rest, text.filler);
    Title(line(v).origin);
    Fill(text.step, v, x);
  }

  void WriteOutputs(int stage, int64_t rest) {
    for (size_t o = 0; o < program_.outputs.size(); ++o) {
      const LoopOutput& output = program_.outputs[o];
      if (line(output.value).row || stages_.stage(output.value) != stage) continue;
      const std::string_view name = TextOf(output.dtype).name;
      Title(line(output.value).origin);
      if (rest == 0) {
        Line("Store{}(v{}, out{} + i);", name, output.value, o);
      } else {
        Line("StorePart(Store{}, v{}, out{} + i, {});", name, output.value, o, rest);
      }
    }
  }

  // What empties the sums of blocks of a size.
  std::string Emptied(const std::vector<LoopValue>& reductions, int64_t block) const {
    std::string text;
    for (const LoopValue v : reductions) {
      const ReductionText& by = GatheredBy(v);
      if (by.block == block) text += " " + fmt::format(fmt::runtime(by.empty), v);
    }
    return text;
  }

  // Calls the steps. Sums are emptied after each of their blocks, and at the end.
  void Loops(int stage, const std::vector<LoopValue>& reductions, int64_t rest) {
    const int64_t whole = program_.columns - rest;
    const std::string joined = Emptied(reductions, kJoinBlock);
    const std::string summed = Emptied(reductions, kSumBlock);
    const int64_t block = joined.empty() ? kSumBlock : kJoinBlock;
    const int64_t in_blocks = joined.empty() && summed.empty() ? 0 : whole / block * block;
    if (in_blocks > 0) {
      Line("for (long first = 0; first < {}; first += {}) {{", in_blocks, block);
      Line("  for (long i = first; i < first + {}; i += {}) step{}(i);", block, width_, stage);
      if (!joined.empty()) Line(" {}", joined);
      if (!summed.empty()) Line("  if ((first + {}) % {} == 0) {{{} }}", block, kSumBlock, summed);
      Line("}}");
    }
    if (in_blocks < whole) {
      Line("for (long i = {}; i < {}; i += {}) step{}(i);", in_blocks, whole, width_, stage);
    }
    if (rest != 0) Line("rest{}({});", stage, whole);
    if (!joined.empty() && in_blocks < program_.columns) Line("{}", joined.substr(1));
    if (!summed.empty() && program_.columns % kSumBlock != 0) Line("{}", summed.substr(1));
  }

  // ---- one instruction ----

  const LoopInput& InputOf(LoopValue v) const {
    return program_.inputs[static_cast<size_t>(line(v).index)];
  }

  void Compute(LoopValue v) {
    const LoopInstruction& now = line(v);
    Title(now.origin);
    Line("const {} v{} = {};", TypeText(now.type), v, Expression(now));
  }

  // The next line is of this operator, whose comment stands above it.
  void Title(int origin) {
    if (origin >= 0 && origin != titled_) {
      titled_ = origin;
      Line("// {}", SafeTitle(program_.titles[static_cast<size_t>(origin)]));
    }
    origin_ = origin;
  }

  std::string Expression(const LoopInstruction& now) const {
    if (now.op == LoopOp::kInput) {
      const LoopInput& input = program_.inputs[static_cast<size_t>(now.index)];
      return fmt::format("One{}(in{})", TextOf(input.dtype).name, now.index);
    }
    std::string text(NameOf(now.op));
    if (HasTarget(now.op)) text += TextOf(now.dtype).name;
    if (now.op == LoopOp::kRound && now.dtype == DataType::kBfloat16 && bfloat_only_)
      text += "Only";
    text += '(';
    for (size_t i = 0; i < now.args.size(); ++i) {
      text += fmt::format("{}v{}", i == 0 ? "" : ", ", now.args[i]);
    }
    for (int i = 0; i < ParamsOf(now.op); ++i) {
      text += fmt::format(", {}", NumberText(now.params[static_cast<size_t>(i)]));
    }
    return text + ')';
  }

  static int ParamsOf(LoopOp op) {
    switch (op) {
      case LoopOp::kExp:
      case LoopOp::kLog:
        return 3;
      case LoopOp::kRootOfMeanOf:
      case LoopOp::kHardSigmoid:
        return 2;
      case LoopOp::kScale:
      case LoopOp::kSwish:
      case LoopOp::kLeakyRelu:
      case LoopOp::kMeanOf:
        return 1;
      default:
        return 0;
    }
  }

  const LoopProgram& program_;
  LoopStages stages_;
  std::string_view symbol_;
  std::string text_;
  std::vector<int> origins_;  // by line of text_
  int origin_ = -1;           // of the next line
  int64_t width_;
  int depth_ = 0;
  int titled_ = -1;
  bool bfloat_only_ = false;  // every float comes from a bfloat16
};

}  // namespace

// Roundings to 16 bits make long chains, whose vectors should overlap; what computes in float waits
// for memory. The last step of a row computes a whole width whatever is left of the row.
int64_t KernelWidth(const LoopProgram& program) {
  const int64_t wide = kKernelWidths[1];
  const bool fits = program.columns % wide == 0 || program.columns >= 8 * wide;
  const bool rounds =
      std::any_of(program.instructions.begin(), program.instructions.end(),
                  [](const LoopInstruction& line) { return line.op == LoopOp::kRound; });
  return fits && rounds ? wide : kKernelWidths[0];
}

std::string KernelText(const LoopProgram& program, std::string_view symbol, int64_t width) {
  return MapKernelText(program, symbol, width).text;
}

MappedKernelText MapKernelText(const LoopProgram& program, std::string_view symbol, int64_t width) {
  return TextWriter(program, symbol, width != 0 ? width : KernelWidth(program)).Text();
}

uint64_t KernelScratchBytes(const LoopProgram& program, int64_t width) {
  if (width == 0) width = KernelWidth(program);
  uint64_t bytes = 0;
  const LoopStages stages(program);
  for (const LoopValue v : stages.kept()) {
    bytes += TextWriter::KeptBytes(program, v, width);
  }
  return bytes;
}

}  // namespace npumesh
