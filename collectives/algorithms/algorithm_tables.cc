#include "collectives/algorithms/algorithm_tables.h"

#include <algorithm>

#include "collectives/algorithms/custom_algorithm.h"

namespace npumesh {
namespace {

using AddAlgorithms = void (*)(AlgorithmList&);

// Request::set_algorithm keeps as many characters, by which ranks compare what they run.
constexpr size_t kLongestName = Request::kAlgorithmBytes - 1;

Status CheckAbi(const AlgorithmAbi& library) {
  if (library == kAlgorithmAbi) return Status();
  if (library.version != kAlgorithmAbi.version) {
    return Error(Code::kUnsupported,
                 "built for algorithm interface {}, this npumesh has {}; build the library again "
                 "with the headers of this npumesh",
                 library.version, kAlgorithmAbi.version);
  }
  return Error(Code::kUnsupported,
               "built for algorithm interface {} with types of other sizes; build the library "
               "again with the headers and the standard library of this npumesh",
               library.version);
}

// What is wrong with a row by itself; empty: nothing.
std::string_view Flaw(const Algorithm& row) {
  if (row.name.empty()) return "has no name";
  if (row.name.size() > kLongestName) return "has a name that is too long";
  if (row.name.find_first_of("=/:; ") != std::string_view::npos) {
    return "has a name that HCCL_ALGO cannot say: no =, /, :, ; and blanks";
  }
  if (row.why_not == nullptr) return "does not say when it can be taken (why_not)";
  if (row.run == nullptr) return "has nothing to run";
  return "";
}

// Messages between two ranks have no table.
bool HasTable(CollectiveKind kind) {
  return kind > CollectiveKind::kNone && kind < CollectiveKind::kSendRecv;
}

Result<AlgorithmList> RowsOf(const LibraryHandle& library) {
  const auto* abi = static_cast<const AlgorithmAbi*>(SymbolOf(library, "NpumeshAlgorithmAbi"));
  const auto add = reinterpret_cast<AddAlgorithms>(SymbolOf(library, "NpumeshAddAlgorithms"));
  if (abi == nullptr || add == nullptr) {
    return Error(Code::kInvalidArgument,
                 "not an algorithm library: it has no symbol {}; define it with "
                 "NPUMESH_ALGORITHM_LIBRARY of collectives/algorithms/custom_algorithm.h",
                 abi == nullptr ? "NpumeshAlgorithmAbi" : "NpumeshAddAlgorithms");
  }
  NPUMESH_RETURN_IF_ERROR(CheckAbi(*abi));
  AlgorithmList list;
  NPUMESH_RETURN_IF_ERROR(WithoutExceptions("NpumeshAddAlgorithms", [&] {
    add(list);
    return Status();
  }));
  for (const auto& [kind, row] : list.rows()) {
    if (!HasTable(kind)) {
      return Error(Code::kInvalidArgument,
                   "algorithm \"{}\" is for collective {}, which has no table", row.name,
                   static_cast<uint32_t>(kind));
    }
    const std::string_view flaw = Flaw(row);
    if (flaw.empty()) continue;
    return Error(Code::kInvalidArgument, "{} algorithm \"{}\" {}", Name(kind), row.name, flaw);
  }
  return list;
}

}  // namespace

Result<std::shared_ptr<const AlgorithmTables>> AlgorithmTables::Load(
    const std::vector<std::string>& paths) {
  auto tables = std::make_shared<AlgorithmTables>();
  for (const std::string& path : paths) {
    NPUMESH_RETURN_IF_ERROR(
        tables->Add(path).WithContext(fmt::format("algorithm library {}", path)));
  }
  return std::shared_ptr<const AlgorithmTables>(std::move(tables));
}

Status AlgorithmTables::Add(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(LibraryHandle library, OpenLibrary(path, LibraryTrust::kOwner, ""));
  NPUMESH_ASSIGN_OR_RETURN(const AlgorithmList list, RowsOf(library));
  for (const auto& [kind, row] : list.rows()) {
    const std::span<const Algorithm> known = For(kind);
    const bool taken =
        std::any_of(known.begin(), known.end(),
                    [name = row.name](const auto& other) { return other.name == name; });
    if (taken) {
      return Error(Code::kInvalidArgument,
                   "{} algorithm \"{}\" is known already; choose another name", Name(kind),
                   row.name);
    }
    std::vector<Algorithm> rows(known.begin(), known.end());
    rows.insert(rows.end() - static_cast<std::ptrdiff_t>(AlgorithmsFor(kind).size()), row);
    tables_[kind] = std::move(rows);
  }
  static_cast<void>(library.release());
  return Status();
}

std::span<const Algorithm> AlgorithmTables::For(CollectiveKind kind) const {
  const auto table = tables_.find(kind);
  return table == tables_.end() ? AlgorithmsFor(kind) : table->second;
}

std::vector<std::string_view> AlgorithmTables::Names() const {
  std::vector<std::string_view> names = AlgorithmNames();
  for (const auto& [kind, rows] : tables_) {
    for (const Algorithm& row : rows) {
      if (std::find(names.begin(), names.end(), row.name) == names.end()) names.push_back(row.name);
    }
  }
  return names;
}

bool AlgorithmTables::IsCustom(CollectiveKind kind, const Algorithm& row) const {
  const std::span<const Algorithm> all = For(kind);
  return &row >= all.data() && &row < all.data() + (all.size() - AlgorithmsFor(kind).size());
}

}  // namespace npumesh
