#include "runtime/base/text/json.h"

template class nlohmann::basic_json<>;
