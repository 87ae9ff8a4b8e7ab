#include "graph/static_kernel/static_kernels.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <utility>

#include "graph/digest/sha256.h"
#include "graph/ops/core/operator.h"
#include "graph/static_kernel/record/run_package.h"
#include "graph/static_kernel/source/kernel_text.h"
#include "runtime/base/advice.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// So many sets of shapes of one graph are no accident.
constexpr int kManyShapes = 8;

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// "RmsNorm+Mul float[128,768]"
std::string TitleOf(const StaticRegion& region) {
  std::vector<std::string_view> types;
  for (const StaticOperator& each : region.operators) types.push_back(each.context->node().type);
  return fmt::format("{} {}", fmt::join(types, "+"), region.operators.back().context->out(0));
}

// A loaded kernel, to be measured. `index` says which of a region's kernels it is.
class EntryKernel final : public LoopKernel {
 public:
  EntryKernel(StaticKernel kernel, size_t index) : LoopKernel(std::move(kernel)), index_(index) {}
  size_t index() const { return index_; }

 private:
  size_t index_;
};

size_t IndexOf(const std::vector<int64_t>& widths, int64_t width) {
  return static_cast<size_t>(std::ranges::find(widths, width) - widths.begin());
}

// The step that a region becomes. The symbol stands for how the operators feed each other.
TunableStep StepOf(const StaticRegion& region, const std::string& symbol) {
  TunableStep step;
  step.name = region.operators.back().context->node().name;
  step.type = symbol;
  for (const StaticOperator& each : region.operators) {
    step.operators.push_back({each.op, each.context});
  }
  step.inputs = region.inputs;
  step.constants.resize(step.inputs.size());
  step.outputs = region.outputs;
  return step;
}

std::string WorkingFolder() {
  std::error_code unknown;
  return std::filesystem::current_path(unknown).string();
}

std::map<std::string, const KernelObject*> ByKey(const std::vector<KernelObject>& objects) {
  std::map<std::string, const KernelObject*> by_key;
  for (const KernelObject& object : objects) by_key[object.key] = &object;
  return by_key;
}

// By line of the complete source; see MapKernelText.
std::vector<int> OriginsOfLines(const std::string& beginning, const LoopProgram& program,
                                const std::string& symbol) {
  const std::string before = CompleteSource(beginning, "");
  // CompleteSource ends each of its parts with a line end.
  std::vector<int> origins(static_cast<size_t>(std::ranges::count(before, '\n')) - 1, -1);
  const std::vector<int> own = MapKernelText(program, symbol).origins;
  origins.insert(origins.end(), own.begin(), own.end());
  return origins;
}

}  // namespace

// An open shared object.
class StaticKernels::Library {
 public:
  explicit Library(void* handle) : handle_(handle) {}
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  LoopEntry Find(const std::string& symbol) const {
    return reinterpret_cast<LoopEntry>(dlsym(handle_, symbol.c_str()));
  }

 private:
  void* handle_;
};

StaticKernels::StaticKernels(StaticKernelOptions options, KernelStore store)
    : options_(std::move(options)), store_(std::move(store)), instructions_(InstructionsHere()) {}

StaticKernels::~StaticKernels() = default;

Result<std::unique_ptr<StaticKernels>> StaticKernels::Create(StaticKernelOptions options) {
  NPUMESH_RETURN_IF_ERROR(OutputTree::Check(options.build_dir));
  if (options.store_root.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(options.store_root, KernelStoreRoot());
  }
  NPUMESH_ASSIGN_OR_RETURN(KernelStore store, KernelStore::Open(options.store_root));
  return std::unique_ptr<StaticKernels>(new StaticKernels(std::move(options), std::move(store)));
}

void StaticKernels::See(const std::vector<int64_t>& sizes) {
  if (options_.open_sizes.empty()) return;
  const auto index = static_cast<size_t>(options_.open_index);
  wanted_ = index < sizes.size() &&
            std::ranges::find(options_.open_sizes, sizes[index]) != options_.open_sizes.end();
}

const Result<SystemCompiler>& StaticKernels::compiler() {
  if (!compiler_) compiler_.emplace(SystemCompiler::Find());
  return *compiler_;
}

// Without a compiler: a kernel that the compiler of another machine made, where a package brought
// it.
std::string StaticKernels::KeyOf(const std::string& content, const std::string& symbol) {
  if (compiler().ok()) {
    return Sha256(fmt::format("{}{}\n{}\n", content, fmt::join(KernelFlags(debugs()), " "),
                              compiler()->version()));
  }
  if (!installed_) {
    installed_.emplace();
    for (const KernelObject& kernel : store_.List()) installed_->emplace(kernel.symbol, kernel.key);
  }
  const auto known = installed_->find(symbol);
  return known != installed_->end() ? known->second : Sha256(content);
}

Status StaticKernels::KeepMeta(int level, const std::string& parent) {
  NPUMESH_ASSIGN_OR_RETURN(KernelMeta meta, KernelMeta::Open(level, parent));
  for (const std::string& path : {meta.folder(), store_.root()}) {
    if (level != 2 || path.find('=') == std::string::npos) continue;
    return Error(Code::kInvalidArgument,
                 "op_debug_level 2: {} has a \"=\" in its path, which compilers do not take for "
                 "lines of a debugger; choose other folders by ASCEND_WORK_PATH and "
                 "NPUMESH_KERNEL_STORE",
                 path);
  }
  meta_ = std::move(meta);
  return Status();
}

// The symbol follows from what is computed and for which processor; the key says with which
// compiler, too. What a debugger shows has paths in it, and is of one kernel in kernel_meta.
KernelSource StaticKernels::SourceOf(const StaticRegion& region, const Records& records,
                                     int64_t width) {
  std::string content = fmt::format(
      "generator {}\ninstructions {}\n{}{}", kGeneratorVersion, NameOf(instructions_),
      width == 0 ? std::string() : fmt::format("width {}\n", width), region.program.ToString());
  KernelSource source;
  if (meta_) source.file = KernelMeta::NameOf(region, content) + ".cce";
  if (debugs()) {
    content += fmt::format("shown as {}/{}\ncompiled in {}\n", meta_->folder(), source.file,
                           WorkingFolder());
  }
  source.symbol = "npumesh_" + Sha256(content).substr(0, 32);
  source.key = KeyOf(content, source.symbol);
  source.title = TitleOf(region);
  source.program = KernelText(region.program, source.symbol, width);
  std::vector<std::string_view> texts;
  for (const StaticOperator& each : region.operators) {
    texts.push_back(records.at(each.context).json);
  }
  source.record = fmt::format("[\n{}]\n", fmt::join(texts, ",\n"));
  return source;
}

std::vector<StaticKernel> StaticKernels::Make(const std::vector<StaticRegion>& regions,
                                              const std::vector<StaticOperator>& all) {
  if (!wanted_) return std::vector<StaticKernel>(regions.size());
  if (++stats_.graphs == kManyShapes) TellOfChangingShapes();
  Records records;
  for (const StaticOperator& each : all) {
    records.emplace(each.context, RecordOf(*each.op, *each.context));
  }
  std::vector<KernelSource> wanted;
  for (const StaticRegion& region : regions) {
    for (const int64_t width : WidthsOf(region)) {
      wanted.push_back(SourceOf(region, records, width));
    }
  }
  const BuildOutcome outcome = Build(wanted);
  if (const Status written = WriteTree(regions, all, records, outcome.objects); !written.ok()) {
    NPUMESH_WARNING("static kernels: records are not complete: {}", written.message());
  }
  if (const Status kept = WriteMeta(regions, wanted, outcome); !kept.ok()) {
    Advise(fmt::format("static kernels: kernel_meta is not complete: {}", kept.message()));
  }
  const std::vector<StaticKernel> loaded = Load(wanted, outcome);
  std::vector<StaticKernel> kernels;
  size_t next = 0;
  for (const StaticRegion& region : regions) {
    const std::string& symbol = wanted[next].symbol;
    std::vector<StaticKernel> by_width;
    for (const int64_t width : WidthsOf(region)) {
      by_width.push_back(loaded[next++]);
      by_width.back().scratch_bytes = KernelScratchBytes(region.program, width);
    }
    kernels.push_back(Best(region, symbol, by_width));
  }
  return kernels;
}

// Kernels that kernel_meta keeps are not tuned: it has one for each region.
std::vector<int64_t> StaticKernels::WidthsOf(const StaticRegion& region) const {
  std::vector<int64_t> widths = {0};
  if (tuner_ == nullptr || meta_) return widths;
  for (const int64_t width : kKernelWidths) {
    if (width != KernelWidth(region.program)) widths.push_back(width);
  }
  return widths;
}

StaticKernel StaticKernels::Best(const StaticRegion& region, const std::string& symbol,
                                 const std::vector<StaticKernel>& by_width) {
  const StaticKernel& ordinary = by_width[0];
  const std::vector<int64_t> widths = WidthsOf(region);
  std::vector<int64_t> options;  // that could be built
  for (size_t i = 0; i < widths.size(); ++i) {
    const int64_t width = i == 0 ? KernelWidth(region.program) : widths[i];
    if (by_width[i].entry != nullptr) options.push_back(width);
  }
  if (tuner_ == nullptr || ordinary.entry == nullptr || options.size() < 2) return ordinary;
  const auto make = [&]() -> Result<std::unique_ptr<Kernel>> {
    const int64_t width = TunedSize(tuner_, "floats at a time", options, options[0]);
    const size_t at = width == options[0] ? 0 : IndexOf(widths, width);
    return std::unique_ptr<Kernel>(std::make_unique<EntryKernel>(by_width[at], at));
  };
  const Result<std::unique_ptr<Kernel>> best = tuner_->Make(StepOf(region, symbol), make);
  return best.ok() ? by_width[static_cast<const EntryKernel&>(**best).index()] : ordinary;
}

BuildOutcome StaticKernels::Build(const std::vector<KernelSource>& wanted) {
  const auto start = std::chrono::steady_clock::now();
  BuildPlan plan;
  plan.beginning = KernelBeginning();
  plan.instructions = instructions_;
  plan.generator = fmt::format("{}", kGeneratorVersion);
  plan.debug = debugs();
  if (debugs()) plan.shown_in = meta_->folder();
  plan.sharers = options_.sharers;
  plan.share = options_.share;
  std::set<std::string> keys;
  for (const KernelSource& source : wanted) {
    if (keys.insert(source.key).second) plan.kernels.push_back(source);
  }
  BuildOutcome outcome;
  Result<BuildOutcome> built = store_.Build(plan, [this] { return compiler(); });
  if (built.ok()) {
    outcome = std::move(*built);
  } else {
    Advise(
        fmt::format("static kernels: {}; the graph runs without them", built.status().message()));
  }
  Warn(outcome.failures);
  stats_.kernels += static_cast<int>(plan.kernels.size());
  stats_.compiled += outcome.compiled;
  stats_.found += outcome.found;
  stats_.awaited += outcome.awaited;
  stats_.failed += static_cast<int>(outcome.failures.size());
  stats_.build_seconds += SecondsSince(start);
  return outcome;
}

// One cause, such as a compiler that is not there, is told once.
void StaticKernels::Warn(const std::vector<BuildFailure>& failures) {
  std::map<std::string, std::vector<const BuildFailure*>> by_cause;
  for (const BuildFailure& failure : failures) {
    if (warned_.insert(failure.key).second) by_cause[failure.why].push_back(&failure);
  }
  for (const auto& [why, kernels] : by_cause) {
    Advise(fmt::format(
        "static kernel {} ({}){} could not be built: {}; the operators run without it",
        ShortKey(kernels[0]->key), kernels[0]->title,
        kernels.size() > 1 ? fmt::format(" and {} more", kernels.size() - 1) : "", why));
  }
}

Status StaticKernels::WriteTree(const std::vector<StaticRegion>& regions,
                                const std::vector<StaticOperator>& all, const Records& records,
                                const std::vector<KernelObject>& kernels) {
  NPUMESH_ASSIGN_OR_RETURN(OutputTree tree, OutputTree::Create(options_.build_dir));
  std::set<const OpContext*> chosen;
  for (const StaticRegion& region : regions) {
    for (const StaticOperator& each : region.operators) chosen.insert(each.context);
  }
  for (const StaticOperator& each : all) {
    NPUMESH_RETURN_IF_ERROR(tree.Add(records.at(each.context), chosen.contains(each.context)));
  }
  if (kernels.empty()) return Status();
  return WriteRunPackage(tree.PackagePath(), store_.root(), kernels, MachineFor(instructions_));
}

Status StaticKernels::WriteMeta(const std::vector<StaticRegion>& regions,
                                const std::vector<KernelSource>& wanted,
                                const BuildOutcome& outcome) {
  if (!meta_) return Status();
  const std::string beginning = KernelBeginning();
  std::vector<std::string> flags = KernelFlags(debugs());
  for (std::string& flag : CompilerFlags(instructions_)) flags.push_back(std::move(flag));
  const std::map<std::string, const KernelObject*> objects = ByKey(outcome.objects);
  Status status;
  for (size_t i = 0; i < regions.size(); ++i) {
    const auto found = objects.find(wanted[i].key);
    MetaKernel kernel{.name = wanted[i].file.substr(0, wanted[i].file.rfind('.')),
                      .region = regions[i],
                      .source = wanted[i],
                      .source_text = CompleteSource(beginning, wanted[i].program),
                      .origins = OriginsOfLines(beginning, regions[i].program, wanted[i].symbol),
                      .object = found != objects.end() ? found->second : nullptr,
                      .flags = flags,
                      .scratch_bytes = KernelScratchBytes(regions[i].program)};
    const Status written = meta_->Write(kernel);
    if (status.ok()) status = written;
  }
  return status;
}

std::vector<StaticKernel> StaticKernels::Load(const std::vector<KernelSource>& wanted,
                                              const BuildOutcome& outcome) {
  const auto start = std::chrono::steady_clock::now();
  const std::map<std::string, const KernelObject*> by_key = ByKey(outcome.objects);
  std::vector<StaticKernel> kernels;
  for (const KernelSource& source : wanted) {
    StaticKernel& kernel = kernels.emplace_back();
    const auto found = by_key.find(source.key);
    if (found == by_key.end()) continue;
    const Result<std::shared_ptr<const Library>> library = Open(found->second->object);
    if (library.ok()) kernel.entry = (*library)->Find(source.symbol);
    if (kernel.entry == nullptr) {
      NPUMESH_WARNING("static kernel {} ({}) cannot be loaded: {}", ShortKey(source.key),
                      source.title,
                      library.ok() ? "it lacks its function" : library.status().message());
      continue;
    }
    kernel.name = ShortKey(source.key);
    kernel.library = *library;
    if (options_.trace) {
      NPUMESH_INFO("static kernel {}: {}", kernel.name, source.title);
    }
  }
  stats_.load_seconds += SecondsSince(start);
  return kernels;
}

Result<std::shared_ptr<const StaticKernels::Library>> StaticKernels::Open(
    const std::string& object) {
  if (const auto known = libraries_.find(object); known != libraries_.end()) return known->second;
  void* handle = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Error(Code::kCorrupt, "{}", dlerror());
  auto library = std::make_shared<const Library>(handle);
  libraries_.emplace(object, library);
  return library;
}

void StaticKernels::TellOfChangingShapes() {
  Advise(
      fmt::format("static kernels: the graph asked for kernels of {} sets of input shapes; they "
                  "pay where shapes "
                  "stay the same, so leave _aclnn_static_shape_kernel off or give fewer shapes",
                  stats_.graphs));
}

}  // namespace npumesh
