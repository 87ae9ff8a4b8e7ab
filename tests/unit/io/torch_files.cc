#include "tests/unit/io/torch_files.h"

namespace npumesh::testing {
namespace {

void Little(std::string& bytes, uint64_t number, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    bytes += static_cast<char>(i < sizeof(number) ? number >> (8 * i) & 255 : 0);
  }
}

std::string Text(const std::string& text) {
  std::string bytes = "X";
  Little(bytes, text.size(), 4);
  return bytes + text;
}

std::string Integer(int64_t number) {
  std::string bytes = "\x8a\x08";
  Little(bytes, static_cast<uint64_t>(number), 8);
  return bytes;
}

// "torch FloatStorage" is module and name.
std::string Global(std::string name) {
  name[name.find(' ')] = '\n';
  return "c" + name + "\n";
}

std::string Tuple(const std::vector<int64_t>& numbers) {
  std::string bytes = "(";
  for (const int64_t number : numbers) bytes += Integer(number);
  return bytes + "t";
}

std::string NoHooks() {
  return Global("collections OrderedDict") + ")R";
}

}  // namespace

std::string StoredZip(const std::vector<std::pair<std::string, std::string>>& members, bool in_64) {
  std::string file, directory;
  for (const auto& [name, bytes] : members) {
    const uint64_t offset = file.size();
    file += "PK\x03\x04";
    Little(file, 0, 22);  // versions, method 0, time, checksum, sizes: those of the directory count
    Little(file, name.size(), 2);
    Little(file, 0, 2);
    file += name + bytes;
    directory += "PK\x01\x02";
    Little(directory, 0, 16);
    Little(directory, in_64 ? 0xffffffff : bytes.size(), 4);
    Little(directory, in_64 ? 0xffffffff : bytes.size(), 4);
    Little(directory, name.size(), 2);
    Little(directory, in_64 ? 28 : 0, 2);
    Little(directory, 0, 10);
    Little(directory, in_64 ? 0xffffffff : offset, 4);
    directory += name;
    if (!in_64) continue;
    Little(directory, 1, 2);
    Little(directory, 24, 2);
    for (const uint64_t number : {uint64_t{bytes.size()}, uint64_t{bytes.size()}, offset}) {
      Little(directory, number, 8);
    }
  }
  const uint64_t begin = file.size();
  file += directory;
  if (in_64) {
    const uint64_t end = file.size();
    file += "PK\x06\x06";
    Little(file, 44, 8);
    Little(file, 0, 12);
    Little(file, members.size(), 8);
    Little(file, members.size(), 8);
    Little(file, directory.size(), 8);
    Little(file, begin, 8);
    file += "PK\x06\x07";
    Little(file, 0, 4);
    Little(file, end, 8);
    Little(file, 1, 4);
  }
  file += "PK\x05\x06";
  Little(file, 0, 4);
  Little(file, in_64 ? 0xffff : members.size(), 2);
  Little(file, in_64 ? 0xffff : members.size(), 2);
  Little(file, directory.size(), 4);
  Little(file, in_64 ? 0xffffffff : begin, 4);
  Little(file, 0, 2);
  return file;
}

std::string TorchPickle(const SavedTensor& saved) {
  const std::string version = saved.dtype.empty() ? "2" : "3";
  const std::string call = Global("torch._utils _rebuild_tensor_v" + version) + "((" +
                           Text("storage") + Global(saved.storage) + Text("0") + Text("cpu") +
                           Integer(static_cast<int64_t>(saved.bytes.size())) + "tQ" +
                           Integer(saved.offset) + Tuple(saved.shape) + Tuple(saved.strides) +
                           "\x89" + NoHooks() +
                           (saved.dtype.empty() ? "" : Global("torch " + saved.dtype)) + "tR";
  const std::string whole = saved.parameter ? Global("torch._utils _rebuild_parameter") + "(" +
                                                  call + "\x88" + NoHooks() + "tR"
                                            : call;
  return "\x80\x02" + whole + ".";
}

std::string TorchFile(const SavedTensor& saved, bool in_64) {
  return StoredZip({{"x/data.pkl", TorchPickle(saved)},
                    {"x/byteorder", "little"},
                    {"x/data/0", saved.bytes},
                    {"x/version", "3\n"}},
                   in_64);
}

}  // namespace npumesh::testing
