// A small llama of random weights over the public interface of ggml: ggml_llama BACKEND TYPE SEED
// prints the tokens that greedy decoding gives on a back end ("CPU", "CANN0") with matrices of a
// type (f32, f16, q8_0): a prompt of 12 tokens, 48 more one by one, over a cache of keys and
// values. A second line says by how much each token won: its score less the next best one's, in
// deviations of the scores.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml.h"

namespace {

constexpr int kWords = 256, kWidth = 128, kHeads = 4, kShared = 2, kHead = kWidth / kHeads;
constexpr int kInner = 320, kLayers = 4, kPlaces = 64, kPrompt = 12, kTokens = 48;
constexpr float kEpsilon = 1e-5f;

struct Layer {
  ggml_tensor *norm, *query, *key, *value, *out, *inner_norm, *gate, *up, *down;
  ggml_tensor *keys, *values;  // the cache: kPlaces rows of kShared heads
};

class Llama {
 public:
  Llama(ggml_backend_t backend, ggml_type type, unsigned seed) : backend_(backend), random_(seed) {
    context_ = ggml_init({64 * 1024 * 1024, nullptr, true});
    words_ = New(GGML_TYPE_F32, kWidth, kWords);
    head_norm_ = New(GGML_TYPE_F32, kWidth, 1);
    head_ = New(type, kWidth, kWords);
    for (Layer& layer : layers_) {
      layer.norm = New(GGML_TYPE_F32, kWidth, 1);
      layer.query = New(type, kWidth, kWidth);
      layer.key = New(type, kWidth, kShared * kHead);
      layer.value = New(type, kWidth, kShared * kHead);
      layer.out = New(type, kWidth, kWidth);
      layer.inner_norm = New(GGML_TYPE_F32, kWidth, 1);
      layer.gate = New(type, kWidth, kInner);
      layer.up = New(type, kWidth, kInner);
      layer.down = New(type, kInner, kWidth);
      layer.keys = ggml_new_tensor_2d(context_, GGML_TYPE_F32, kShared * kHead, kPlaces);
      layer.values = ggml_new_tensor_2d(context_, GGML_TYPE_F32, kShared * kHead, kPlaces);
    }
    buffer_ = ggml_backend_alloc_ctx_tensors(context_, backend_);
    ggml_backend_buffer_clear(buffer_, 0);
    for (ggml_tensor* weight : weights_) Draw(weight);
    places_ = ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend_));
  }
  ~Llama() {
    ggml_gallocr_free(places_);
    ggml_backend_buffer_free(buffer_);
    ggml_free(context_);
  }

  struct Choice {
    int32_t token = 0;
    float lead = 0;  // over the next best, in deviations of all scores
  };
  // The most likely token after `tokens`, which follow `past` others.
  Choice Next(const std::vector<int32_t>& tokens, int past) {
    const int n = static_cast<int>(tokens.size());
    ggml_context* c =
        ggml_init({ggml_tensor_overhead() * 2048 + ggml_graph_overhead(), nullptr, true});
    ggml_cgraph* graph = ggml_new_graph(c);
    ggml_tensor* ids = ggml_new_tensor_1d(c, GGML_TYPE_I32, n);
    ggml_tensor* positions = ggml_new_tensor_1d(c, GGML_TYPE_I32, n);
    ggml_tensor* mask = ggml_new_tensor_2d(c, GGML_TYPE_F32, past + n, n);
    for (ggml_tensor* input : {ids, positions, mask}) ggml_set_input(input);
    ggml_tensor* x = ggml_get_rows(c, words_, ids);
    for (const Layer& layer : layers_) {
      x = ggml_add(c, x,
                   Attention(c, graph, layer, Normal(c, x, layer.norm), positions, mask, past, n));
      ggml_tensor* h = Normal(c, x, layer.inner_norm);
      h = ggml_mul(c, ggml_silu(c, ggml_mul_mat(c, layer.gate, h)), ggml_mul_mat(c, layer.up, h));
      x = ggml_add(c, x, ggml_mul_mat(c, layer.down, h));
    }
    ggml_tensor* scores = ggml_mul_mat(c, head_, Normal(c, x, head_norm_));
    ggml_set_output(scores);
    ggml_build_forward_expand(graph, scores);
    if (!ggml_gallocr_alloc_graph(places_, graph)) std::exit(2);
    std::vector<int32_t> place(tokens.size());
    std::vector<float> seen(static_cast<size_t>(past + n) * tokens.size());
    for (int i = 0; i < n; ++i) {
      place[static_cast<size_t>(i)] = past + i;
      for (int j = 0; j < past + n; ++j) {
        seen[static_cast<size_t>(i * (past + n) + j)] = j <= past + i ? 0.0f : -INFINITY;
      }
    }
    ggml_backend_tensor_set(ids, tokens.data(), 0, tokens.size() * sizeof(int32_t));
    ggml_backend_tensor_set(positions, place.data(), 0, place.size() * sizeof(int32_t));
    ggml_backend_tensor_set(mask, seen.data(), 0, seen.size() * sizeof(float));
    if (ggml_backend_graph_compute(backend_, graph) != GGML_STATUS_SUCCESS) std::exit(3);
    std::vector<float> last(kWords);
    ggml_backend_tensor_get(scores, last.data(), sizeof(float) * kWords * (tokens.size() - 1),
                            sizeof(float) * kWords);
    ggml_free(c);
    return Best(last);
  }

 private:
  static Choice Best(const std::vector<float>& scores) {
    const auto best = std::max_element(scores.begin(), scores.end());
    float next = -INFINITY, sum = 0, squares = 0;
    for (auto it = scores.begin(); it != scores.end(); ++it) {
      if (it != best) next = std::max(next, *it);
      sum += *it;
      squares += *it * *it;
    }
    const float count = static_cast<float>(scores.size()), mean = sum / count;
    return {static_cast<int32_t>(best - scores.begin()),
            (*best - next) / std::sqrt(squares / count - mean * mean)};
  }

  ggml_tensor* New(ggml_type type, int columns, int rows) {
    ggml_tensor* made = rows == 1 ? ggml_new_tensor_1d(context_, type, columns)
                                  : ggml_new_tensor_2d(context_, type, columns, rows);
    weights_.push_back(made);
    return made;
  }

  void Draw(ggml_tensor* weight) {
    const int64_t columns = weight->ne[0], rows = weight->ne[1];
    std::normal_distribution<float> normal(
        0.0f, rows == 1          ? 0.1f
              : weight == words_ ? 1.0f
                                 : 1.5f / std::sqrt(static_cast<float>(columns)));
    std::vector<float> values(static_cast<size_t>(columns * rows));
    for (float& value : values) value = normal(random_) + (rows == 1 ? 1.0f : 0.0f);
    std::vector<char> bytes(ggml_nbytes(weight));
    if (weight->type == GGML_TYPE_F32) {
      std::memcpy(bytes.data(), values.data(), bytes.size());
    } else {
      ggml_quantize_chunk(weight->type, values.data(), bytes.data(), 0, rows, columns, nullptr);
    }
    ggml_backend_tensor_set(weight, bytes.data(), 0, bytes.size());
  }

  static ggml_tensor* Normal(ggml_context* c, ggml_tensor* x, ggml_tensor* weight) {
    return ggml_mul(c, ggml_rms_norm(c, x, kEpsilon), weight);
  }

  static ggml_tensor* Turned(ggml_context* c, ggml_tensor* x, ggml_tensor* positions, int heads,
                             int n) {
    return ggml_rope_ext(c, ggml_reshape_3d(c, x, kHead, heads, n), positions, nullptr, kHead,
                         GGML_ROPE_TYPE_NEOX, 0, 10000.0f, 1.0f, 0.0f, 1.0f, 32.0f, 1.0f);
  }

  static void Store(ggml_context* c, ggml_cgraph* graph, ggml_tensor* rows, ggml_tensor* cache,
                    int past, int n) {
    ggml_tensor* place = ggml_view_2d(c, cache, kShared * kHead, n, cache->nb[1],
                                      static_cast<size_t>(past) * cache->nb[1]);
    ggml_build_forward_expand(graph,
                              ggml_cpy(c, ggml_reshape_2d(c, rows, kShared * kHead, n), place));
  }

  ggml_tensor* Attention(ggml_context* c, ggml_cgraph* graph, const Layer& layer, ggml_tensor* h,
                         ggml_tensor* positions, ggml_tensor* mask, int past, int n) {
    ggml_tensor* q = Turned(c, ggml_mul_mat(c, layer.query, h), positions, kHeads, n);
    Store(c, graph, Turned(c, ggml_mul_mat(c, layer.key, h), positions, kShared, n), layer.keys,
          past, n);
    Store(c, graph, ggml_mul_mat(c, layer.value, h), layer.values, past, n);
    const auto cached = [&](ggml_tensor* cache) {
      return ggml_view_3d(c, cache, kHead, past + n, kShared, cache->nb[1], kHead * sizeof(float),
                          0);
    };
    ggml_tensor* weights = ggml_mul_mat(c, cached(layer.keys), ggml_permute(c, q, 0, 2, 1, 3));
    weights =
        ggml_soft_max_ext(c, weights, mask, 1.0f / std::sqrt(static_cast<float>(kHead)), 0.0f);
    ggml_tensor* values = ggml_cont(c, ggml_permute(c, cached(layer.values), 1, 0, 2, 3));
    ggml_tensor* mixed = ggml_permute(c, ggml_mul_mat(c, values, weights), 0, 2, 1, 3);
    return ggml_mul_mat(c, layer.out, ggml_cont_2d(c, mixed, kWidth, n));
  }

  ggml_backend_t backend_;
  std::mt19937 random_;
  ggml_context* context_ = nullptr;
  ggml_backend_buffer_t buffer_ = nullptr;
  ggml_gallocr_t places_ = nullptr;
  std::vector<ggml_tensor*> weights_;
  ggml_tensor *words_ = nullptr, *head_norm_ = nullptr, *head_ = nullptr;
  Layer layers_[kLayers] = {};
};

ggml_type TypeOf(const std::string& name) {
  for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0, GGML_TYPE_Q4_0}) {
    if (name == ggml_type_name(type)) return type;
  }
  std::fprintf(stderr, "ggml_llama: the type is \"%s\", expected f32, f16, q8_0 or q4_0\n",
               name.c_str());
  std::exit(2);
}

unsigned SeedOf(const std::string& text) {
  unsigned seed = 0;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, seed);
  if (error == std::errc() && read == end) return seed;
  std::fprintf(stderr, "ggml_llama: the seed is \"%s\", expected a number from 0 on\n",
               text.c_str());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  ggml_backend_load_all();
  ggml_backend_t backend = ggml_backend_init_by_name(argv[1], nullptr);
  if (backend == nullptr) {
    std::fprintf(stderr, "ggml_llama: there is no back end \"%s\"\n", argv[1]);
    return 2;
  }
  {
    const unsigned seed = SeedOf(argv[3]);
    Llama llama(backend, TypeOf(argv[2]), seed);
    std::mt19937 random(seed + 1);
    std::vector<int32_t> tokens(kPrompt);
    for (int32_t& token : tokens) token = static_cast<int32_t>(random() % kWords);
    int past = 0;
    std::string leads;
    for (int i = 0; i < kTokens; ++i) {
      const Llama::Choice next = llama.Next(tokens, past);
      past += static_cast<int>(tokens.size());
      tokens = {next.token};
      std::printf("%d ", next.token);
      leads += std::to_string(next.lead) + " ";
    }
    std::printf("\n%s\n", leads.c_str());
  }
  ggml_backend_free(backend);
}
