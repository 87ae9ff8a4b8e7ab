#include "graph/io/weight_places.h"

#include <fmt/ranges.h>

#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include "graph/io/weight_path.h"
#include "graph/ir/node_kind.h"
#include "runtime/base/files/mapped_file.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

// Paths outside of the package that are named one by one.
constexpr size_t kMostOutside = 8;

bool SameContent(const std::string& x, const std::string& y) {
  const auto a = MappedFile::Open(x);
  const auto b = MappedFile::Open(y);
  if (!a.ok() || !b.ok() || (*a)->size() != (*b)->size()) return false;
  return (*a)->size() == 0 || std::memcmp((*a)->data(), (*b)->data(), (*a)->size()) == 0;
}

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string StoredPathOf(const Node& node) {
  const std::string location = node.StringAttr("location", "");
  return location.empty() ? node.StringAttr("file_path", "") : location;
}

class PlaceCheck {
 public:
  PlaceCheck(const Model& model, const WeightRules& rules)
      : model_(model),
        allow_outside_(rules.allow_outside || !IsFile(model.path)),
        package_(PackageFolder(model.path)) {}

  Status Look(const Graph& graph) {
    for (const Node& node : graph.nodes()) {
      if (node.removed || !IsFileConstant(node)) continue;
      NPUMESH_RETURN_IF_ERROR(LookAt(node).WithContext(
          fmt::format("{}: node \"{}\" (FileConstant)", model_.path, node.name)));
    }
    return Status();
  }

  WeightPlaces Found() && {
    if (outside_.size() > kMostOutside) notes_.push_back(MoreOutsideNote());
    if (elsewhere_ > 0) notes_.push_back(ElsewhereNote());
    return {std::move(notes_), std::move(lacking_)};
  }

 private:
  Status LookAt(const Node& node) {
    const std::string stored = StoredPathOf(node);
    if (stored.empty()) return Status();
    const Result<WeightPlace> place = FindWeightFile(stored, model_.path);
    if (!place.ok() || (!place->in_package && (!allow_outside_ || !IsFile(place->file)))) {
      const bool exists = place.ok() && IsFile(place->file);
      lacking_.push_back({node.name, stored,
                          fmt::format("{}", fmt::join(PlacesInPackage(stored, model_.path), ", ")),
                          exists ? place->file : ""});
      return Status();
    }
    NPUMESH_RETURN_IF_ERROR(CheckLinks(*place));
    Note(stored, *place);
    return Status();
  }

  Status CheckLinks(const WeightPlace& place) const {
    if (allow_outside_ || place.folder.empty()) return Status();
    const std::optional<fs::path> target = LinkTargetOutside(place.file, place.folder);
    if (!target) return Status();
    return Error(Code::kInvalidArgument,
                 "weight file {} is a link that leads out of {} to {}; --allow-outside follows it",
                 place.file, place.folder.string(), target->string());
  }

  void Note(const std::string& stored, const WeightPlace& place) {
    if (!place.in_package && fs::path(stored).is_absolute()) {
      NoteOutside(stored);
    } else if (!place.in_package) {
      if (elsewhere_++ == 0) elsewhere_file_ = place.file;
    } else {
      NoteRival(stored, place);
    }
  }

  // Allowed, but a package with hundreds of weights would bury what else there is to say.
  void NoteOutside(const std::string& stored) {
    if (!outside_.insert(stored).second || outside_.size() > kMostOutside) return;
    notes_.push_back(
        fmt::format("weight file {} is outside of the package {}", stored, package_.string()));
  }

  // Another file where the program that wrote the graph, and ATC, would look.
  void NoteRival(const std::string& stored, const WeightPlace& place) {
    std::error_code error;
    if (rival_told_ || !IsFile(stored) || fs::equivalent(stored, place.file, error)) return;
    if (SameContent(stored, place.file)) return;
    rival_told_ = true;
    notes_.push_back(fmt::format(
        "weight file {} is taken from the package; \"{}\"{} has the same name and other "
        "content",
        place.file, stored, fs::path(stored).is_absolute() ? "" : " below the working directory"));
  }

  std::string MoreOutsideNote() const {
    return fmt::format("and {} more weight files are outside of the package {}",
                       outside_.size() - kMostOutside, package_.string());
  }

  std::string ElsewhereNote() const {
    const std::string more = elsewhere_ > 1 ? fmt::format(" and {} more", elsewhere_ - 1) : "";
    return fmt::format("the package {} lacks weight files; taken from outside: {}{}",
                       package_.string(), elsewhere_file_, more);
  }

  const Model& model_;
  bool allow_outside_;
  fs::path package_;
  std::vector<std::string> notes_;
  std::vector<LackingWeight> lacking_;
  std::set<std::string> outside_;  // paths as stored
  size_t elsewhere_ = 0;
  std::string elsewhere_file_;
  bool rival_told_ = false;
};

}  // namespace

Result<WeightPlaces> LookForWeights(const Model& model, const WeightRules& rules) {
  PlaceCheck check(model, rules);
  NPUMESH_RETURN_IF_ERROR(check.Look(model.graph));
  for (const Graph& graph : model.subgraphs) NPUMESH_RETURN_IF_ERROR(check.Look(graph));
  return std::move(check).Found();
}

std::string LackText(size_t count, const LackingWeight& first, std::string_view whose) {
  std::string text = fmt::format(
      "the package lacks {} weight{}{}{}; {}: node \"{}\" (FileConstant), \"{}\", looked for as {}",
      count, count == 1 ? "" : "s", whose.empty() ? "" : " of ", whose,
      count == 1 ? "it is" : "the first", first.node, first.stored, first.looked_for);
  if (first.elsewhere.empty()) return text + "; export again, or copy the files there";
  return text + fmt::format(
                    "; {} is outside of the package: copy it there, or take it with "
                    "--allow-outside",
                    first.elsewhere);
}

Result<std::vector<std::string>> CheckWeightPlaces(const Model& model, const WeightRules& rules) {
  NPUMESH_ASSIGN_OR_RETURN(WeightPlaces places, LookForWeights(model, rules));
  if (places.lacking.empty()) return std::move(places.notes);
  return Error(Code::kNotFound, "{}: {}", model.path,
               LackText(places.lacking.size(), places.lacking.front()));
}

std::string WeightFileOf(const Node& node, const std::string& model_path) {
  const Result<WeightPlace> place = FindWeightFile(StoredPathOf(node), model_path);
  return place.ok() && IsFile(place->file) ? place->file : "";
}

}  // namespace npumesh
