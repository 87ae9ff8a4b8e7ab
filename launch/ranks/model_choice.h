// Which file of an export a rank runs.
//
// A multi-rank export holds one file a rank, and the digits at the end of a file's stem are its
// rank: mp_rank0.air, llama_tp1.air, zoo_rank3.air.
#ifndef NPUMESH_LAUNCH_RANKS_MODEL_CHOICE_H_
#define NPUMESH_LAUNCH_RANKS_MODEL_CHOICE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// A file name cut into what it shares with the files of the other ranks and its number:
// "mp_rank0.air" is {"mp_rank", 0, ".air"}.
struct NumberedName {
  std::string prefix;
  std::optional<int> number;  // absent: the stem does not end in digits
  std::string extension;
};
NumberedName SplitNumber(const std::string& file_name);

// The file that `rank` of `size` runs when the user names `path`.
//   a folder:  the only .air on one rank, otherwise the .air whose number is the rank; in a folder
//              without .air the same of .om;
//   a file:    with several ranks its sibling with this rank's number, or, when its stem does not
//              end in digits, the same file on every rank.
// Errors: kNotFound lists what was found and what was expected; kInvalidArgument for a choice that
// is ambiguous or an export for more ranks than were started.
Result<std::string> ChooseModelFile(const std::string& path, int rank, int size);

// The same decisions over the names in a folder, without a disk.
Result<std::string> ChooseFromFolder(const std::vector<std::string>& names, int rank, int size);
Result<std::string> ChooseSibling(const std::string& name, const std::vector<std::string>& names,
                                  int rank, int size);

// The folder a file lies in; "." for a bare name.
std::string FolderOf(const std::string& file);

// How many ranks the export of `file` is for: as many as the numbers of its siblings say, and one
// for a file without a number.
int RanksOfExport(const std::string& file);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RANKS_MODEL_CHOICE_H_
