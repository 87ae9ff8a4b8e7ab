#include "runtime/base/status.h"

#include "runtime/base/text/printable.h"

namespace npumesh {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kCorrupt:
      return "CORRUPT";
    case Code::kUnsupported:
      return "UNSUPPORTED";
    case Code::kIo:
      return "IO";
    case Code::kOutOfMemory:
      return "OUT_OF_MEMORY";
    case Code::kMismatch:
      return "MISMATCH";
    case Code::kTimeout:
      return "TIMEOUT";
    case Code::kPeerLost:
      return "PEER_LOST";
    case Code::kInternal:
      return "INTERNAL";
  }
  return "UNKNOWN";
}

Status::Status(Code code, std::string message)
    : rep_(std::make_shared<const Rep>(Rep{code, PrintableMessage(std::move(message))})) {
  assert(code != Code::kOk);
}

Status Status::WithContext(std::string_view context) const {
  if (ok()) return *this;
  return Error(code(), "{}: {}", context, message());
}

std::string Status::ToString() const {
  return ok() ? std::string("OK") : fmt::format("{}: {}", CodeName(code()), message());
}

int ExitCode(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return 0;
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kCorrupt:
    case Code::kUnsupported:
      return 3;
    case Code::kIo:
    case Code::kOutOfMemory:
    case Code::kInternal:
      return 4;
    case Code::kMismatch:
    case Code::kTimeout:
    case Code::kPeerLost:
      return 5;
  }
  return 4;
}

}  // namespace npumesh
