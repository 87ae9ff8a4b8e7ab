#include "collectives/hccl/creation/root_info.h"

#include <algorithm>
#include <cstring>

#include "collectives/hccl/creation/socket_address.h"

namespace npumesh {
namespace {

constexpr uint32_t kLayout = 0x4e50'0001;  // "NP", 1

struct Fields {
  char ip[64];
  uint32_t port;
  uint32_t nic_deployment;
  char identifier[128];
  int32_t world_rank;
  uint32_t layout;
  RendezvousToken token;
};
static_assert(sizeof(Fields) == 224 && sizeof(Fields) <= HCCL_ROOT_INFO_BYTES);

template <size_t size>
void PutText(char (&to)[size], const std::string& text) {
  std::memcpy(to, text.data(), std::min(text.size(), size - 1));
}

template <size_t size>
std::string TakeText(const char (&from)[size]) {
  return std::string(from, strnlen(from, size));
}

}  // namespace

HcclRootInfo Encode(const RootInfo& info) {
  Fields fields{};
  PutText(fields.ip, info.ip);
  fields.port = info.port;
  PutText(fields.identifier, info.identifier);
  fields.world_rank = info.world_rank;
  fields.layout = kLayout;
  fields.token = info.token;
  HcclRootInfo blob{};
  std::memcpy(blob.internal, &fields, sizeof(fields));
  return blob;
}

Verdict Decode(const HcclRootInfo& blob, RootInfo* info) {
  Fields fields;
  std::memcpy(&fields, blob.internal, sizeof(fields));
  const std::string ip = TakeText(fields.ip);
  if (fields.layout != kLayout || fields.port == 0 || fields.port > 65535 ||
      !SocketAddress::Parse(ip, static_cast<uint16_t>(fields.port)).ok()) {
    return Refuse(HCCL_E_PARA,
                  "EI0003: the root info was not made by HcclGetRootInfo of this version; carry "
                  "all {} bytes of it from the rank that made it",
                  HCCL_ROOT_INFO_BYTES);
  }
  *info = {ip, static_cast<uint16_t>(fields.port), TakeText(fields.identifier), fields.world_rank,
           fields.token};
  return {};
}

}  // namespace npumesh
