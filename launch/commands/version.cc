// `npumesh version`: what this build is made of.
#include <fmt/format.h>

#include <array>
#include <ctime>
#include <utility>

#include "launch/commands/answer.h"
#include "launch/commands/build_facts.h"
#include "launch/commands/versions.h"

namespace npumesh {
namespace {

// Libraries as they were found when the build was configured.
constexpr std::array<std::pair<const char*, const char*>, 7> kLibraries = {{
    {NPUMESH_MPI_NAME, NPUMESH_MPI_VERSION},
    {"oneDNN", NPUMESH_ONEDNN_VERSION},
    {"hwloc", NPUMESH_HWLOC_VERSION},
    {"Highway", NPUMESH_HIGHWAY_VERSION},
    {"protobuf", NPUMESH_PROTOBUF_VERSION},
    {"spdlog", NPUMESH_SPDLOG_VERSION},
    {"compiler", NPUMESH_COMPILER},
}};

}  // namespace

std::string VersionsAsText() {
  std::string text = fmt::format("{:<10} {}\n", "npumesh", NPUMESH_VERSION);
  if (NPUMESH_SOURCE[0] != '\0') text += fmt::format("{:<10} {}\n", "source", NPUMESH_SOURCE);
  for (const auto& [name, version] : kLibraries) text += fmt::format("{:<10} {}\n", name, version);
  return text;
}

nlohmann::json VersionsAsJson() {
  nlohmann::json result = {{"version", NPUMESH_VERSION}, {"source", NPUMESH_SOURCE}};
  for (const auto& [name, version] : kLibraries) result[name] = version;
  return result;
}

void AddVersion(CLI::App& app, Action& action) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* version = app.add_subcommand("version", "Versions of npumesh and of its libraries");
  AddFooter(*version, "", {"npumesh version --json"});
  AddJsonFlag(*version, *as_json);
  version->callback([as_json, &action] {
    action = [as_json] {
      return Tell("version", *as_json, Answer{0, VersionsAsText(), {.details = VersionsAsJson()}});
    };
  });
}

PageOrigin OriginOf(std::string command) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  const size_t size = std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %z", &local);
  return {std::move(command), fmt::format("npumesh {}", VersionsAsJson().value("version", "")),
          std::string(text, size)};
}

}  // namespace npumesh
