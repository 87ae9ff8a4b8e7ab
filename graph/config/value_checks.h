// What can be wrong with the text of an option. Each returns the objection, or an empty text.
// Internal to graph/config.
#ifndef NPUMESH_GRAPH_CONFIG_VALUE_CHECKS_H_
#define NPUMESH_GRAPH_CONFIG_VALUE_CHECKS_H_

#include <string>

namespace npumesh {

// Rules of TorchAir's PathManager: at most 4096 characters, 255 for each part, only letters,
// digits, blanks and ./_-~, no symbolic link at its end.
std::string ObjectionToPath(const std::string& path);
// The same, and there is such a folder that this process may read and write.
std::string ObjectionToFolder(const std::string& path);
// The same, and there is such a file that this process may read.
std::string ObjectionToFile(const std::string& path);
std::string ObjectionToJsonFile(const std::string& path);

// Steps: numbers or ranges a-b with a < b, joined by bars, at most 100.
std::string ObjectionToSteps(const std::string& text);
// Operator names (digits, letters and _"/\.) with blanks between.
std::string ObjectionToLayers(const std::string& text);
// "24|48", "24|" or "24".
std::string ObjectionToCores(const std::string& text);
// "PassA:on;PassB:off".
std::string ObjectionToSwitches(const std::string& text);
// RL, GA, or both, joined by a comma or a bar.
std::string ObjectionToTuneModes(const std::string& text);
std::string ObjectionToProfiling(const std::string& text);
// A .json file that ReadMixList takes.
std::string ObjectionToMixList(const std::string& path);
// Only Pooling.
std::string ObjectionToImplTypes(const std::string& text);
std::string ObjectionToNoText(const std::string& text);
// 0 and 1 would leave no operator that could be static.
std::string ObjectionToOpsLimit(int64_t value);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_CONFIG_VALUE_CHECKS_H_
