// What must hold for any bytes that a reader is given. Each target returns an empty text, or what
// did not hold; a crash, a sanitizer report or boundless memory is found by its caller.
//
// Of every error holds: it has a message, and the message is fit for a terminal and of bounded
// length (runtime/base/text/printable.h).
#ifndef NPUMESH_TESTS_FUZZ_TARGETS_H_
#define NPUMESH_TESTS_FUZZ_TARGETS_H_

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace npumesh::fuzz {

// What is wrong with an error; empty for success.
std::string FlawOf(const Status& status);

// A model file of any form: an error, or a model that can be saved, loaded again and saved to the
// same bytes; its weights load or give errors, its text forms can be written.
std::string CheckModel(std::string_view bytes);

// The front of a .npy file: an error, or a header whose own text reads the same.
std::string CheckNpy(std::string_view bytes);

// An ONNX model, and the same bytes as a single tensor: an error, or a model whose tensors have the
// bytes of their types, not many times as many as the file. Files beside it are not there.
std::string CheckOnnx(std::string_view bytes);

// A dump data file: an error, or a record whose tensors lie in the file and whose own header reads
// the same.
std::string CheckDumpData(std::string_view bytes);

// The JSON of dump_config_path.
std::string CheckDumpConfig(std::string_view text);

// The JSON of --config and, line by line, assignments of -o; then a file of pass switches.
std::string CheckOptions(std::string_view text);

// The text of rules of cards, and as a table of chips: an error that names the line, or rules that
// have what each needs, and facts with sources.
std::string CheckCardTables(std::string_view text);

// model_relation_config.json and, behind the first zero byte, numa_config.json: as a session reads
// the groups, and as `npumesh validate` checks them.
std::string CheckPackageConfigs(std::string_view texts);

// A rank table: a refusal, or ranks 0 to N-1 in order.
std::string CheckRankTable(std::string_view text);

// The flight record of one rank: an error, or a record that can be joined with others and shown.
std::string CheckRecord(std::string_view bytes);

// What another library leaves of a job, by its first bytes: an error, or records that can be
// joined, shown and exported.
std::string CheckForeignRecord(std::string_view bytes);

// What torch.save wrote of a tensor: an error, or elements that all lie in the file.
std::string CheckTorchFile(std::string_view bytes);

// The dump.json of msProbe: an error, or calls of different names whose tensors load or are known
// by their statistics.
std::string CheckMsprobe(std::string_view text);

// HCCL_ALGO; a text that is accepted is accepted again and chooses the same.
std::string CheckAlgorithms(std::string_view text);

// A synthetic topology: an error, or a machine with room for ranks.
std::string CheckTopology(std::string_view text);

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_TARGETS_H_
