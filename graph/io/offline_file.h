// The .om files that `npumesh atc` writes (docs/formats/om.md).
//
// The outer form is the vendor's: a header of 256 bytes that begins with "IMOD", a table of
// partitions, the partitions. What is in them is npumesh's: a description, the graph as an .air
// file has it, and the bytes of its weights. There is no compiled kernel in it, so no NPU takes
// such a file, and a file with kernels is refused here.
//
// A weight in the file is a FileConstant whose location is kInThisFile, wherever the file lies and
// whatever it is called. All of it is covered by checksums, so damage is an error, never a number.
#ifndef NPUMESH_GRAPH_IO_OFFLINE_FILE_H_
#define NPUMESH_GRAPH_IO_OFFLINE_FILE_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"

namespace npumesh {

// Attribute `location` of a FileConstant whose bytes are in the file of its model.
inline constexpr std::string_view kInThisFile = ":model:";

// Where the weights of a model go when it is written.
enum class WeightHome : uint8_t {
  kInside,  // into the .om
  kBeside   // FileConstants stay what they are: their files lie beside the .om
};

// True for a file that npumesh has written, damaged or not.
bool IsOfflineFile(std::string_view bytes);

// What an offline model of another maker holds, for the message that refuses it: its name, for
// which NPU, and how many bytes of graph, weights and kernels. REQUIRES: `bytes` begin with "IMOD".
std::string DescribeForeignOffline(std::string_view bytes);

// Writes the model and `description` (a text of UTF-8, which ReadDescription returns) as one file
// that appears whole or not at all. Constants of 4 KiB or more leave the graph; FileConstants do if
// `home` says so. Errors: as LoadWeight and SerializeAir; kIo.
Status SaveOffline(Model model, std::string_view description, WeightHome home,
                   const std::string& path, FileSystem& fs = RealFileSystem());

// The parts of a file, after their checksums were compared. Errors (kCorrupt) say what of the file
// is damaged, expected and seen; kUnsupported for a file of a newer npumesh.
struct OfflineParts {
  std::string_view description;
  std::string_view graph;    // bytes of a ModelDef
  std::string_view weights;  // offsets of FileConstants count from the begin of the file
};
Result<OfflineParts> ReadOfflineParts(std::string_view bytes);

// The same without the checksum of the weights, which may be large: for those who want the
// description only.
Result<std::string> ReadDescription(std::string_view bytes);

// The weights of a model that was read from memory, as constants of the graph: there is no file
// that they could be read from. `bytes` are the whole file. Errors: kCorrupt for a range outside of
// it.
Status TakeWeightsInside(std::string_view bytes, Model* model);

// ---- Bundles ----

// Several offline models in one file: the same outer form, with a partition for each model, which
// is a whole .om at a multiple of 4096.

bool IsOfflineBundle(std::string_view bytes);

// Writes the files, which are offline models, as one that appears whole or not at all. Errors:
// kInvalidArgument for a file that is no offline model, kCorrupt for a damaged one; kIo.
Status SaveBundle(const std::vector<std::string>& files, const std::string& path,
                  FileSystem& fs = RealFileSystem());

// The models in a bundle, without a look at their content. Error (kCorrupt): what of the file is
// damaged.
Result<std::vector<std::string_view>> ReadBundle(std::string_view bytes);

// Model number `index` of a bundle that is mapped, with weights that stay in it. Errors: as
// ReadBundle and LoadModel; kInvalidArgument for another number.
Result<Model> LoadFromBundle(std::string_view bytes, size_t index, const std::string& path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_IO_OFFLINE_FILE_H_
