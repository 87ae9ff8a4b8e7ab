#include "launch/npu_smi/npu_smi.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/acl/limits/soc.h"
#include "runtime/base/text/parse.h"
#include "runtime/device/device_memory.h"

namespace npumesh {
namespace {

constexpr const char* kProduct = "npumesh simulated NPU";

constexpr const char* kUsage =
    "npu-smi of npumesh tells of simulated NPUs.\n\n"
    "npu-smi info                              all NPUs in a table\n"
    "npu-smi info -l                           their number and identifiers\n"
    "npu-smi info -m                           their chips\n"
    "npu-smi info -t TYPE [-i NPU] [-c CHIP]   one NPU; TYPE is one of\n"
    "                                          {}\n"
    "npu-smi -v                                the version\n";

// The host's NPUs as this tool sees them.
struct Npus {
  int count = 1;
  uint64_t hbm_megabytes = 0;
  std::string_view chip;  // without "Ascend"
};

Npus NpusOf(const Env& env) {
  Npus npus;
  npus.count = env.device_count.value_or(1);
  npus.hbm_megabytes = env.hbm_bytes.value_or(kSocHbmBytes) >> 20;
  npus.chip = std::string_view(kSocName).substr(std::string_view("Ascend").size());
  return npus;
}

std::string Title() {
  return fmt::format("npu-smi of npumesh {}, simulated", NPUMESH_VERSION);
}

std::string Field(std::string_view name, std::string_view value) {
  return fmt::format("        {:<30} : {}\n", name, value);
}

std::string Field(std::string_view name, uint64_t value) {
  return Field(name, fmt::to_string(value));
}

// Scripts read the third word of line 7, columns between bars, and what follows "Process id".
std::string Table(const Npus& npus) {
  const std::string top = fmt::format("+{0:-<96}+\n", "");
  const std::string thin = fmt::format("+{0:-<27}+{0:-<15}+{0:-<52}+\n", "");
  const std::string thick = fmt::format("+{0:=<27}+{0:=<15}+{0:=<52}+\n", "");
  std::string text = top + fmt::format("| {:<94} |\n", Title()) + thin;
  text += fmt::format("| {:<25} | {:<13} | {:<51}|\n", "NPU   Name", "Health",
                      "Power(W)    Temp(C)           Hugepages-Usage(page)");
  text += fmt::format("| {:<25} | {:<13} | {:<50} |\n", "Chip", "Bus-Id",
                      "AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)");
  text += thick;
  for (int npu = 0; npu < npus.count; ++npu) {
    text += fmt::format("| {:<5} {:<19} | {:<13} | {:<11} {:<17} {:<20} |\n", npu, npus.chip, "OK",
                        "NA", "NA", "0    / 0");
    text += fmt::format("| {:<25} | {:<13} | {:<11} {:<17} {:<20} |\n", 0, "NA", 0, "0    / 0",
                        fmt::format("0    / {}", npus.hbm_megabytes));
    text += thick;
  }
  const std::string processes = fmt::format("+{0:-<27}+{0:-<15}+{0:-<26}+{0:-<25}+\n", "");
  text += processes;
  text += fmt::format("| {:<25} | {:<13} | {:<24} | {:<23} |\n", "NPU     Chip", "Process id",
                      "Process name", "Process memory(MB)");
  text += fmt::format("+{0:=<27}+{0:=<15}+{0:=<26}+{0:=<25}+\n", "");
  for (int npu = 0; npu < npus.count; ++npu) {
    text += fmt::format("| {:<94} |\n", fmt::format("No running processes found in NPU {}", npu));
    text += fmt::format("+{0:=<27}+{0:=<15}+{0:=<26}+{0:=<25}+\n", "");
  }
  return text;
}

std::string Listing(const Npus& npus) {
  std::string text = Field("Total Count", static_cast<uint64_t>(npus.count));
  for (int npu = 0; npu < npus.count; ++npu) {
    text += "\n" + Field("NPU ID", static_cast<uint64_t>(npu)) + Field("Product Name", kProduct) +
            Field("Serial Number", "NA") + Field("Board ID", "NA") + Field("Chip Count", "1");
  }
  return text;
}

std::string Mapping(const Npus& npus) {
  const auto row = [](auto npu, auto chip, auto logic, std::string_view name) {
    return fmt::format("        {:<30} {:<30} {:<30} {:<30}\n", npu, chip, logic, name);
  };
  std::string text = row("NPU ID", "Chip ID", "Chip Logic ID", "Chip Name");
  for (int npu = 0; npu < npus.count; ++npu) {
    text += row(npu, 0, npu, fmt::format("Ascend {}", npus.chip));
  }
  return text;
}

// What `-t TYPE` tells of one NPU, below its number.
struct Detail {
  std::string_view type;
  std::string (*fields)(const Npus& npus, bool of_chip);
};

std::string Board(const Npus& npus, bool of_chip) {
  if (of_chip) {
    return Field("Chip ID", "0") + Field("Chip Type", "Ascend") + Field("Chip Name", npus.chip) +
           Field("Chip Version", "NA") + Field("Board ID", "NA") + Field("PCB ID", "NA") +
           Field("BOM ID", "NA") + Field("VDie ID", "NA") + Field("NPU Name", npus.chip);
  }
  return Field("Product Name", kProduct) + Field("Model", "NA") + Field("Manufacturer", "npumesh") +
         Field("Serial Number", "NA") + Field("Software Version", NPUMESH_VERSION) +
         Field("Firmware Version", "NA") + Field("Compatibility", "OK") + Field("Board ID", "NA") +
         Field("PCB ID", "NA") + Field("BOM ID", "NA") + Field("PCIe Bus Info", "NA") +
         Field("Chip Count", "1") + Field("Faulty Chip Count", "0");
}

std::string Memory(const Npus& npus, bool /*of_chip*/) {
  return Field("DDR Capacity(MB)", "0") + Field("HBM Capacity(MB)", npus.hbm_megabytes) +
         Field("HBM Clock Speed(MHz)", "NA") + Field("HBM Manufacturer ID", "NA");
}

std::string Usages(const Npus& npus, bool /*of_chip*/) {
  return Field("DDR Capacity(MB)", "0") + Field("DDR Usage Rate(%)", "0") +
         Field("HBM Capacity(MB)", npus.hbm_megabytes) + Field("HBM Usage Rate(%)", "0") +
         Field("Aicore Usage Rate(%)", "0") + Field("Aicpu Usage Rate(%)", "0") +
         Field("Ctrlcpu Usage Rate(%)", "0") + Field("HBM Bandwidth Usage Rate(%)", "0");
}

std::string Common(const Npus& /*npus*/, bool /*of_chip*/) {
  return Field("Chip Count", "1") + Field("Chip ID", "0") + Field("HBM Usage Rate(%)", "0") +
         Field("Aicore Usage Rate(%)", "0") + Field("Temperature(C)", "NA") +
         Field("NPU Real-time Power(W)", "NA");
}

std::string Product(const Npus& /*npus*/, bool /*of_chip*/) {
  return Field("Product Type", kProduct);
}

std::string Health(const Npus& /*npus*/, bool /*of_chip*/) {
  return Field("Health Status", "OK") + Field("Error Code", "0") + Field("Error Information", "NA");
}

constexpr std::array<Detail, 6> kDetails = {{{"board", Board},
                                             {"common", Common},
                                             {"health", Health},
                                             {"memory", Memory},
                                             {"product", Product},
                                             {"usages", Usages}}};

std::string DetailTypes() {
  std::vector<std::string_view> types;
  types.reserve(kDetails.size());
  for (const Detail& detail : kDetails) types.push_back(detail.type);
  return fmt::format("{}", fmt::join(types, ", "));
}

struct Question {
  bool list = false;
  bool map = false;
  std::optional<std::string> type;
  std::optional<int> npu;
  std::optional<int> chip;
};

Result<Question> ParseQuestion(std::span<const std::string> words, const Npus& npus) {
  Question question;
  for (size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "-l") {
      question.list = true;
    } else if (word == "-m") {
      question.map = true;
    } else if (word == "-t" || word == "-i" || word == "-c") {
      if (++at == words.size()) {
        return Error(Code::kInvalidArgument, "{}: expected a word behind it", word);
      }
      if (word == "-t") {
        question.type = words[at];
        continue;
      }
      const int most = word == "-i" ? npus.count - 1 : 0;
      NPUMESH_ASSIGN_OR_RETURN(const int64_t number, ParseInt(words[at], 0, most, word));
      (word == "-i" ? question.npu : question.chip) = static_cast<int>(number);
    } else {
      return Error(Code::kInvalidArgument, "\"{}\": expected -l, -m, -t TYPE, -i NPU or -c CHIP",
                   word);
    }
  }
  return question;
}

Result<std::string> Info(std::span<const std::string> words, const Npus& npus) {
  NPUMESH_ASSIGN_OR_RETURN(const Question question, ParseQuestion(words, npus));
  if (question.list) return Listing(npus);
  if (question.map) return Mapping(npus);
  if (!question.type) return Table(npus);
  for (const Detail& detail : kDetails) {
    if (detail.type != *question.type) continue;
    std::string text;
    for (int npu = 0; npu < npus.count; ++npu) {
      if (question.npu && *question.npu != npu) continue;
      if (!text.empty()) text += "\n";
      text += Field("NPU ID", static_cast<uint64_t>(npu)) +
              detail.fields(npus, question.chip.has_value());
    }
    return text;
  }
  return Error(Code::kInvalidArgument, "-t {}: expected one of {}", *question.type, DetailTypes());
}

}  // namespace

Result<std::string> NpuSmi(const Env& env, std::span<const std::string> words) {
  if (words.empty() || words[0] == "-h" || words[0] == "--help") {
    return fmt::format(fmt::runtime(kUsage), DetailTypes());
  }
  if (words[0] == "-v") return Title() + "\n";
  if (words[0] == "info") return Info(words.subspan(1), NpusOf(env));
  return Error(Code::kInvalidArgument, "\"{}\": expected info, -v or -h", words[0]);
}

}  // namespace npumesh
