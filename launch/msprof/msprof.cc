#include "launch/msprof/msprof.h"

#include <fmt/format.h>

#include <string_view>

#include "runtime/msprof/vendor_files.h"

namespace npumesh {
namespace {

constexpr std::string_view kHelp =
    "Usage: msprof --export=on --output=FOLDER\n"
    "       msprof --analyze=on --output=FOLDER\n\n"
    "Writes tables and timelines of the profiles that aclprofStop has left in FOLDER: a PROF_* "
    "folder,\n"
    "or one that has some. Both words do the same. Profiles are made by aclprofStart, or by\n"
    "`npumesh launch .. -- run .. --profile FOLDER`, which exports them itself.\n";

struct Wishes {
  bool exports = false;
  std::string folder;
};

Result<Wishes> Parse(const std::vector<std::string>& words) {
  constexpr std::string_view kOutput = "--output=";
  Wishes wishes;
  for (const std::string& word : words) {
    if (word == "--export=on" || word == "--analyze=on") {
      wishes.exports = true;
    } else if (word.starts_with(kOutput)) {
      wishes.folder = word.substr(kOutput.size());
    } else {
      return Error(Code::kInvalidArgument, "{} is not part of npumesh's msprof; see msprof --help",
                   word);
    }
  }
  if (wishes.exports && !wishes.folder.empty()) return wishes;
  return Error(Code::kInvalidArgument,
               "expected --export=on and --output=FOLDER; see msprof --help");
}

}  // namespace

Result<std::string> Msprof(const std::vector<std::string>& words) {
  if (words.size() == 1 && (words[0] == "--help" || words[0] == "-h")) return std::string(kHelp);
  NPUMESH_ASSIGN_OR_RETURN(const Wishes wishes, Parse(words));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> folders, ExportMsprof(wishes.folder));
  std::string text;
  for (const std::string& folder : folders) text += fmt::format("msprof: exported {}\n", folder);
  return text;
}

}  // namespace npumesh
